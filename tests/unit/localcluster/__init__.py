"""Tests of the parts of the local cluster that need no control plane."""
