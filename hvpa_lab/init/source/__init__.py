"""Sources of the workload, its autoscalers and its history: files, a cluster, a Prometheus."""
