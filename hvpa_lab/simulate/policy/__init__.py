"""Scales the simulated workload: by an Hvpa, an HPA, a VPA, or an HPA and a VPA."""
