"""Many random workloads under an Hvpa and under its rivals (`command`)."""
