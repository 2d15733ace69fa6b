"""The HPA controller of Kubernetes, exactly."""
