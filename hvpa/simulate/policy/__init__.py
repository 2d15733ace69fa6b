"""What scales the simulated workload: an Hvpa, an HPA, a VPA, or several."""
