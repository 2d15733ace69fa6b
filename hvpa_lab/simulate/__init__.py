"""The simulated cluster: load, pods and time, and reports of each policy's result (docs/simulate.md).

A scenario file becomes plain values, the engine runs each policy on them step by step, and reports show the result.

- `model`: the plain values, from `Scenario` to `SimulationResult`. Start here.
- `scenario/`: from the file to a `Scenario` (`read`); `load/`: its load in steps.
- `parallel` runs several policies at once, each in a process; `engine` runs a single policy, step by step.
- `policy/`: the autoscalers. `base` (shared: when HPA and VPA sync, and their input), `hvpa` (the operator itself, on
  `cluster/port`, its port in memory), `autoscalers` (HPA and VPA by themselves, with `updater` and `admission`).
- `cluster/`: the workload. `pods` (the workload moved through time), `state` (a pod and its containers), `usage`,
  `rollout`, `resizes`, `nodes`, `metrics_server`.
- `measure` (each step, and the totals), `reactions` (how fast a policy reacted to a rise of the load).
- `report/`: `compare` (costs and dominated policies), then table, JSON and page.
"""
