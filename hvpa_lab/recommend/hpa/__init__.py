"""The HPA controller of Kubernetes, exactly.

Selectors and pods, which the operator needs as well, are in `hvpa.recommend.hpa`.
"""
