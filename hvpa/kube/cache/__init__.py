"""The local copy of the cluster, kept up to date by list and watch."""
