"""Reads the usage of pods from the kubelets of their nodes. The operator does not use it yet (docs/roadmap.md, the fast
signal)."""
