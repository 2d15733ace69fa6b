"""An exact model of the HPA controller of Kubernetes."""
