"""The simulated cluster: load, pods and time. Empty so far (docs/roadmap.md)."""
