"""HVPA: scales a Kubernetes workload horizontally and vertically at once. `docs/` says how. The subpackages are its
rooms, and each says in its docstring what belongs there."""
