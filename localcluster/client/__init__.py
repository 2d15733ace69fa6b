"""Access to an API server: requests, credentials and the audit log."""
