"""Talking to an API server: credentials, transport, errors, limits."""
