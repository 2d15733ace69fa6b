"""Builders of the objects that a decision reads; tests and benchmarks share them."""
