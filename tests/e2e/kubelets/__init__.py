"""What kubelets do with running pods, observed in the same way on real and on simulated nodes (docs/real-node.md)."""
