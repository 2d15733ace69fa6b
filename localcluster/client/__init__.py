"""Access to an API server: requests, credentials, and its audit log."""
