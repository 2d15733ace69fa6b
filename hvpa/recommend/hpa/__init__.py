"""Selectors, pods and metrics as the HPA controller of Kubernetes reads them."""
