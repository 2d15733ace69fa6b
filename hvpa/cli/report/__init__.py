"""`hvpa report`: what an Hvpa would set for each workload, what that costs, and what is risky."""
