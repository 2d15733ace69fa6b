"""The demo on real nodes: its pods are processes of this machine in their own cgroups, and serve HTTP requests. All
printed figures are measured."""
