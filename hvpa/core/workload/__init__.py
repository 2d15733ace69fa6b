"""The current workload: containers and their requests, pods, rollout."""
