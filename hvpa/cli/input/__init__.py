"""Objects for a command: from files or from a cluster."""
