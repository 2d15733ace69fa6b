"""The resource and what is read of others: pydantic models of Hvpa, its CRD as data, quantities, narrow read-models.

No decision is made here, nothing is fetched, and no clock is read. Modules import one another and pydantic, msgspec and
PyYAML, nothing else of this package.
"""
