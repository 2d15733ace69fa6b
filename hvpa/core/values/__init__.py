"""Values of the decision that are independent of Kubernetes objects: the clock, weights, integers."""
