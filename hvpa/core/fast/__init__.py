"""Usage of containers from the counters of their kubelets, between two measurements of the HPA. The operator does not
use it yet (docs/roadmap.md, the fast signal)."""
