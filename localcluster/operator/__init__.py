"""The operator as a process next to the control plane, also with internal faults."""
