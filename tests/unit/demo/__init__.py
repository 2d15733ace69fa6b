"""Tests of what the demo computes and prints, without a cluster."""
