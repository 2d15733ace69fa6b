"""Measurements of the operator on a real API server; run them with `make bench` or `python -m benchmarks`."""
