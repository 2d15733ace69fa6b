"""The operator's own HTTP endpoints: metrics, health, readiness."""
