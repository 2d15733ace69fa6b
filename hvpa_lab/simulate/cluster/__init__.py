"""The simulated cluster: nodes, pods, rollouts, resizes, metrics."""
