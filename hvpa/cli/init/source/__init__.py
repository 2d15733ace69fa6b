"""Where the workload, what scales it, and its history come from: files, a cluster, a Prometheus."""
