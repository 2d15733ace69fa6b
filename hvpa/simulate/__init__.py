"""The simulated cluster: load, pods and time, and the reports of what a policy did in it (docs/simulate.md).

A scenario's file becomes plain values, the engine runs each policy on them step by step, and reports tell the result.

- `model`: those plain values, from `Scenario` to `SimulationResult`. Begin here.
- Reading: `scenario` (from the file to a `Scenario`), `scenario_*` (the file's form, its policies, what is refused),
  `loads` (a load in steps) from `loads_csv`, `loads_prometheus` and `formula`.
- Running: `parallel` (several policies at once, each in a process), `engine` (one policy, step by step).
- What scales: `scalers` (what is common), `scaler_hvpa` (the operator itself, on `cluster`, its port in memory, and
  `objects`, what it reads there), `scaler_acting` (HPA and VPA by themselves); `recommenders` (when and at what HPA and
  VPA look), `metrics_server` (what they see), `updater`, `updater_in_place` and `admission` (what a VPA does with
  pods).
- What is scaled: `pods` (the workload moved through time), `pods_state` (a pod and its containers), `pods_usage`,
  `pods_groups` and `pods_meters` (what pods use under a load), `rollout` (which come and go), `resizes` (which are
  resized in place), `nodes` (where they run).
- Recording: `measure` (each step, and the totals), `rises` (how fast a rise of the load was answered).
- Comparing: `compare` (costs, the difference to a baseline, what beats what), `conclusion` (the same in words).
- Reports: `table`, `wire` (the JSON), `page` (HTML) and `picture` (PNG), of `figures`, `plots` and `text`.
"""
