"""The workload as it is: containers and their requests, pods, rollout."""
