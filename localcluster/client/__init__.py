"""Access to an API server: requests, credentials, and what the audit log says."""
