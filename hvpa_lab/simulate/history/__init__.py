"""A workload's history, and the usage model that is fitted to it. Pure: no clock, no I/O.

- `record`: the history as plain series; `table` reads it from CSV, `answers` from Prometheus' responses.
- `regression`: least squares; `fit`: usage of each container per unit of the load and per replica.
- `pattern`: the load by hour of the day; `pods`: the start-up time of pods.
"""
