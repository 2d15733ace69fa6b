"""`hvpa explain`: one decision, step by step."""
