"""The load of a scenario, from a formula, a CSV file, or a Prometheus response."""
