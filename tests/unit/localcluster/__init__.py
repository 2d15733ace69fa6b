"""Tests of the parts of the test world that need no control plane."""
