"""The load of a scenario: a formula, a CSV file, or a response of Prometheus."""
