"""Workloads, recommenders and load for a control plane."""
