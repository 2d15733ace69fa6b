"""The parts of the HPA controller's model that the operator needs: selectors, and the requests and readiness of pods.

`hvpa_lab.recommend` has the rest: the complete models of the HPA controller and of the VPA recommender. No clock, no
cluster."""
