"""The running operator: its part of the work, servers, logs, start and shutdown."""
