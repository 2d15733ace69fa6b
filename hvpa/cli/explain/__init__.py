"""`hvpa explain`: a decision, step by step."""
