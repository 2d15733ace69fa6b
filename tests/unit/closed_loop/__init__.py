"""Closed loops: the real decision with the exact models of the HPA and the VPA, over workloads whose pods may differ
from their template, in virtual time. What they are checked for is in the tests; each is a promise of DESIGN."""
