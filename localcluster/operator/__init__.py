"""The operator as a process beside the control plane, with optional faults from inside."""
