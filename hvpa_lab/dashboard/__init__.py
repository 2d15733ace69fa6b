"""`hvpa dashboard`: a read-only page of all Hvpas, and of each Hvpa with charts, served from this process."""
