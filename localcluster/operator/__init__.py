"""The operator as a process beside the control plane, also with faults from inside."""
