"""Narrow read models of the cluster's other objects."""
