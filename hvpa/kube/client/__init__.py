"""The client of the API server: credentials, transport, errors, limits."""
