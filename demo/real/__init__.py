"""The demo on real nodes: its pods are processes of this machine, in cgroups of their own, and serve HTTP requests. All
that it prints was measured."""
