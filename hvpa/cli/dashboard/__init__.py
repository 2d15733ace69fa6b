"""`hvpa dashboard`: a read-only page of all Hvpas, and of one of them with charts, served from this process."""
