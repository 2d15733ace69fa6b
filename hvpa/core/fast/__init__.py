"""The fast signal (`spec.fastSignal`): usage from the kubelets' own counters, between two measurements of the HPA."""
