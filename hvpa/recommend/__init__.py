"""Pure models of the recommenders: the HPA controller (hpa.py and the hpa_*.py beside it) and the VPA recommender
(vpa.py, the vpa_*.py and histogram.py). They know the API's read-models, but no clock and no cluster."""
