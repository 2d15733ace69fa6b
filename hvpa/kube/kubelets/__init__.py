"""Reads the usage of pods from the kubelets of their nodes, for the fast signal (`spec.fastSignal`)."""
