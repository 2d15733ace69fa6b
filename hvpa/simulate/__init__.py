"""The simulated cluster: load, pods and time, and the reports of what a policy did in it (docs/simulate.md).

A scenario's file becomes plain values, the engine runs each policy on them step by step, and reports show the result.

- `model`: those plain values, from `Scenario` to `SimulationResult`. Begin here.
- `scenario/`: from the file to a `Scenario` (`read`); `load/`: its load in steps.
- `parallel` runs several policies at once, each in a process; `engine` runs one, step by step.
- `policy/`: what scales. `base` (what is common: when and at what HPA and VPA look), `hvpa` (the operator itself, on
  `cluster/port`, its port in memory), `autoscalers` (HPA and VPA by themselves, with `updater` and `admission`).
- `cluster/`: what is scaled. `pods` (the workload moved through time), `state` (a pod and its containers), `usage`,
  `rollout`, `resizes`, `nodes`, `metrics_server`.
- `measure` (each step, and the totals), `reactions` (how fast a policy reacted to a rise of the load).
- `report/`: `compare` (costs, what beats what), then table, JSON, page and picture.
"""
