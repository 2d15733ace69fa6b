"""Connections between a client and the API server, with faults that a test injects."""
