"""Exact models of the HPA controller (`hpa/`) and of the VPA recommender (`vpa/`), without clock and cluster."""
