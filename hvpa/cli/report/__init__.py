"""`hvpa report`: what an Hvpa would set for each workload that is there, what that costs, and what is risky. Writes
nothing.

`inventory` finds the workloads and drafts the Hvpas that don't exist, `rows` lets `hvpa.core` decide about each,
`risks` looks for what should be mended first; `table` and `json` are the output as text and as JSON. Nothing of a
decision is made here.
"""
