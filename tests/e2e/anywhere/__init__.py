"""Scenarios that any cluster shows: simulated nodes, real ones, or a cluster of yours (`make e2e KUBECONFIG=FILE`).
They need an API server, an HPA controller and kubelets, but no metrics and no VPA recommender: its status is written
by the tests."""
