"""Pure models of the recommenders: the HPA controller (`hpa/`) and the VPA recommender (`vpa/`). They use the API's
read models, but no clock and no cluster."""
