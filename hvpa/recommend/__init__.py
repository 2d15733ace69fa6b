"""Pure models of the recommenders, the HPA's algorithm and the VPA recommender. Empty so far: they come with the
simulator (docs/roadmap.md)."""
