"""What a workload did in the past, and what can be learnt from it. Pure: no clock, no I/O.

- `record`: the history as plain series; `table` reads it from CSV, `answers` from what Prometheus responded.
- `regression`: the arithmetic; `fit`: usage of each container per unit of the load and per replica.
- `pattern`: the day's shape; `pods`: how long pods take to be ready.
"""
