"""The local copy of the cluster, kept by list and watch."""
