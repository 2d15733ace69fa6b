"""End-to-end tests: a real API server, HPA controller, VPA recommender and metrics-server, and the
operator."""
