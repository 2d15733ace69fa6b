"""The resource Hvpa: spec and status as pydantic models."""
