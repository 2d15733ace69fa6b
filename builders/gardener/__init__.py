"""gardener's objects from before it gave HVPA up: its CustomResourceDefinition, and the Hvpas of its generators."""
