"""The HPA and the VPA of an Hvpa: which ones it reads and owns, and what each of them wants."""
