"""The running operator put together: its part of the work, servers, logs, start and end."""
