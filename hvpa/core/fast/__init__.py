"""Usage of containers from the counters of their kubelets, for the fast signal (`spec.fastSignal`)."""
