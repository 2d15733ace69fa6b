"""The lines between a client and the API server, and the faults that a test gives them."""
