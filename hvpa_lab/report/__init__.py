"""`hvpa report`: the values that an Hvpa would set for each workload, their costs, and the risks."""
