"""Policies: which workloads get an Hvpa from which policy, and the writes that bring the Hvpas there. Pure."""
