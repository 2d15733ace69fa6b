module hvpa.test/monitoring-crds

go 1.24.0

require github.com/prometheus-operator/prometheus-operator v0.85.0
