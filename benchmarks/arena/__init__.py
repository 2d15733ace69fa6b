"""Many workloads drawn from a seed, under an Hvpa and under what it competes with (`command`)."""
