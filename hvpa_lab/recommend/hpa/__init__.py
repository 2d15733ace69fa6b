"""The HPA controller of Kubernetes, exactly. Selectors and pods, which the operator needs too, are in `hvpa.recommend.hpa`."""
