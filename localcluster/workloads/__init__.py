"""Workloads, recommenders and load that are put on a control plane."""
