"""The models of HvpaPolicy and ClusterHvpaPolicy: one object from which the operator makes many Hvpas."""
