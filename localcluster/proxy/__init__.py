"""The connections between a client and the API server, and the faults that a test adds to them."""
