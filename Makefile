# Each target sets up its own prerequisites: a virtual environment from the lock file and, for the end-to-end tests and the
# demo, a control plane that is built once into the user's cache. `make` without a target lists the targets.

PYTHON ?= python3
KUBECTL ?= kubectl
DOCKER ?= docker
KIND ?= kind
VERSION := $(shell sed -n 's/^version = "\(.*\)"$$/\1/p' pyproject.toml)
REGISTRY ?=
IMG ?= $(if $(REGISTRY),$(REGISTRY)/)hvpa:$(VERSION)
SIGN_KEY ?=
KIND_CLUSTER ?= hvpa-e2e
CHROMIUM ?=
SCENARIO ?= examples/large-base/scenario.yaml
OUT ?= simulation.html
OUT_DIR ?= evidence
PYTHON_IMAGE ?=
CONFIG ?= config/default
SBOM ?= hvpa.cdx.json
RELEASE ?= dist/hvpa-$(VERSION)
IMAGE ?= dist/hvpa-image.tar
MINUTES ?= 20
LOAD ?= 500m
NODES ?=
TARGET ?= decision
FUZZ_SECONDS ?= 300
REPO_URL ?=
export REPO_URL

# Tests and demo start hundreds of Python processes, which should not compile all modules each time.
unexport PYTHONDONTWRITEBYTECODE

VENV := .venv
PY := $(VENV)/bin/python
DOCS_VENV := .venv-docs
SOURCES := hvpa hvpa_lab localcluster builders tests demo benchmarks tools examples
PRESENT = $(wildcard $(SOURCES))
# The decision, the models, what both stand on, and the simulator: every branch is tested.
COVERAGE := --cov=hvpa.api --cov=hvpa.core --cov=hvpa.recommend --cov=hvpa_lab.recommend --cov=hvpa_lab.simulate --cov-branch --cov-report=term-missing:skip-covered --cov-fail-under=100

# The end-to-end tests mostly wait, so JOBS workers run at once, each with its own control planes (700 MB).
# tests/shares.py decides which tests stay together and which start first.
JOBS ?= 6
PARALLEL = -n $(JOBS) --dist loadfile --no-loadscope-reorder

# Prints all manifests of CONFIG with IMG instead of the image in config/manager. Changes no file.
RENDER = $(KUBECTL) kustomize $(CONFIG) | sed 's|image: hvpa:$(VERSION)$$|image: $(IMG)|'

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

.PHONY: help
help: ## list the targets
	@awk 'BEGIN {FS = ":.*## "} \
	  /^##@ / {printf "\n%s\n", substr($$0, 5)} \
	  /^[a-z0-9-]+:.*## / {printf "  %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

##@ Start here
.PHONY: demo
demo: venv ## run the demo (KEEP=1: leave it running; DEMO=rollout: replace pods; DEMO=fast: the fast signal; NODES=simulated: no containers)
	@$(PY) -m demo

.PHONY: simulate
simulate: venv ## compare policies under a load: SCENARIO=FILE, page with plots in OUT (SIMULATE_ARGS: more flags)
	@$(VENV)/bin/hvpa simulate $(SCENARIO) --html $(OUT) $(SIMULATE_ARGS)
	@echo "plots: $(OUT)"

.PHONY: test
test: venv venv-docs control-plane chromium ## run everything: lint, audit, unit and end-to-end tests
	@AUDIT_ARGS=--quick $(PY) -m tools.run_all

##@ Development
.PHONY: venv
venv: python ## set up .venv from requirements-dev.lock (quick if it is up to date)
	@$(PYTHON) tools/make_venv.py

.PHONY: unit
unit: venv ## run the unit tests, except the long ones
	@$(PY) -m pytest tests/unit -m "not long" -n auto --dist loadfile $(PYTEST_ARGS)

.PHONY: coverage
coverage: venv ## run all unit tests, with the coverage gate
	@$(PY) -m pytest tests/unit -n auto --dist loadfile $(COVERAGE) $(PYTEST_ARGS)

# Only a KUBECONFIG from make's command line counts: that of your shell may be a production cluster's.
.PHONY: e2e
ifeq ($(origin KUBECONFIG),command line)
e2e: venv control-plane ## run the end-to-end tests on local control planes (KUBECONFIG=FILE: portable tests on that cluster)
	@HVPA_E2E_KUBECONFIG="$(KUBECONFIG)" $(PY) -m pytest tests/e2e/anywhere tests/e2e/full -n 0 $(PYTEST_ARGS)
else
e2e: venv venv-docs control-plane chromium
	@$(PY) -m pytest tests/e2e $(PARALLEL) $(PYTEST_ARGS)
endif

.PHONY: node
node: venv control-plane chromium ## run all end-to-end tests on a real node, also the long ones (needs Linux, root, cgroup v1)
	@$(PY) -m pytest tests/e2e/node tests/e2e/full/test_tutorial.py tests/e2e/full/test_first_day.py \
		--at-length -k "not simulated" $(PYTEST_ARGS)

.PHONY: facts
facts: venv control-plane ## measure how kubelets treat running pods, real and simulated (FACTS_ARGS=--write: update the docs)
	@$(PY) -m tests.e2e.kubelets $(FACTS_ARGS)

.PHONY: lint
lint: venv ## check format, style, types and import directions
	@echo "lint: ruff format"; $(PY) -m ruff format --check --quiet --output-format concise $(PRESENT) || { echo "run: make format"; exit 1; }
	@echo "lint: ruff check"; $(PY) -m ruff check --quiet $(PRESENT)
	@echo "lint: mypy"; $(PY) -m mypy $(PRESENT)
	@echo "lint: imports"; $(VENV)/bin/lint-imports --no-logo
	@echo "lint: English"; $(PY) -m tools.prose --quiet

.PHONY: format
format: venv ## format the code and apply ruff's fixes
	@$(PY) -m ruff check --fix-only --quiet $(PRESENT)
	@$(PY) -m ruff format $(PRESENT)

.PHONY: generate
generate: venv ## write the generated files: CRD, schemas of `-o json`, chart templates, tables of the docs
	@$(PY) tools/generate.py

.PHONY: verify
verify: venv ## check that the generated files match the code
	@$(PY) tools/generate.py --check

# Material announces the end of MkDocs at each build (docs/decisions/0044-docs-site.md).
.PHONY: docs
docs: venv-docs ## build the docs site in site/, with warnings as errors (REPO_URL=…: links to the repository)
	@NO_MKDOCS_2_WARNING=1 $(DOCS_VENV)/bin/mkdocs build --strict
	@echo "docs: site/index.html; with search: $(PYTHON) -m http.server -d site"

.PHONY: lock
lock: python ## resolve the dependencies into the lock files again (LOCK_ARGS=--upgrade: newer versions)
	@PYTHON="$(PYTHON)" tools/dependencies/lock.sh $(LOCK_ARGS)

.PHONY: bench
bench: venv ## measure speed, idle cost, memory and simulator (BENCH_ARGS=scale: up to 10,000 Hvpas; simulation)
	@$(PY) -m benchmarks $(BENCH_ARGS)

.PHONY: soak
soak: venv control-plane ## run 500 Hvpas under random faults for MINUTES (20) (SHARDS=N; SOAK_ARGS="--hvpas N --seed S")
	@$(PY) -m tests.e2e.soak --minutes $(MINUTES) --hvpas 500 $(if $(SHARDS),--shards $(SHARDS)) $(SOAK_ARGS)

.PHONY: compat
compat: venv control-plane ## test an installation on API servers 1.30 to 1.36 (COMPAT_ARGS=1.30: one; --write: update the docs)
	@$(PY) -m tests.e2e.compat $(COMPAT_ARGS)

.PHONY: keda
keda: venv control-plane ## test an Hvpa that KEDA scales to zero and back (builds KEDA once: 17 minutes of CPU time)
	@$(PY) -m pytest tests/e2e/full/keda_operator.py --timeout 5400 $(PYTEST_ARGS)

# Seeds 0 to 4 were used to compare decisions (docs/joint-scaling.md).
UNSEEN := --first-seed 5
# Seeds 1 to 9 of the arena are reserved for tuning.
ARENA_SEED ?= 100
SLOW = $(foreach workload,cpu memory,--only "*,$(workload),HPA+VPA/*" --only "*,$(workload),Trajectory 50/*")

.PHONY: evidence
evidence: venv ## measure joint scaling against HPA and VPA (75 minutes of CPU time) and update README and docs
	@$(PY) -m benchmarks joint --out $(OUT_DIR) --jobs $(JOBS) $(UNSEEN) --keep $(EVIDENCE_ARGS)
	@$(PY) -m benchmarks joint --out $(OUT_DIR)/slow --jobs $(JOBS) $(UNSEEN) --slow --seeds 1 --keep slow $(SLOW)
	@$(PY) -m benchmarks joint --out $(OUT_DIR)/line --jobs $(JOBS) $(UNSEEN) --line --seeds 1 --keep line \
		--only "*,cpu,HPA+VPA/InPlace" --only "*,cpu,Trajectory 50/InPlace"
	@$(PY) -m benchmarks jumps --keep
	@$(PY) -m benchmarks arena --seed $(ARENA_SEED) --jobs $(JOBS) --json $(OUT_DIR)/arena.json --page docs/arena.md
	@$(PY) tools/generate.py

.PHONY: page-check
page-check: chromium ## check the page of `hvpa simulate --html` in headless Chromium (CHROMIUM=PATH: another browser)
	@CHROMIUM="$(CHROMIUM)" $(PY) -m tools.browser.check_page $(PAGE_CHECK_ARGS)

.PHONY: chromium
chromium: venv ## download the pinned headless Chromium and the test fonts from npm, once
	@$(PY) -m tools.browser.chromium

.PHONY: fuzz
fuzz: venv ## fuzz TARGET (decision) for FUZZ_SECONDS (300) (all but TARGET=operator: `pip install atheris`)
	@$(PY) -m tests.fuzz $(TARGET) -max_total_time=$(FUZZ_SECONDS) $(FUZZ_ARGS)

.PHONY: mutants
mutants: venv ## mutation tests of hvpa/core: print the changes that no test notices (MUTANTS_ARGS="--number 300 --seed 0")
	@$(PY) -m tools.mutants $(MUTANTS_ARGS)

.PHONY: sbom
sbom: venv ## write the bill of materials of the operator's dependencies (CycloneDX) to SBOM
	@$(PY) -m tools.dependencies.sbom --output $(SBOM)

.PHONY: release
release: venv ## build all files of a release of this commit in RELEASE (REGISTRY=HOST/PATH; SIGN_KEY=FILE: sign the checksums)
	@$(PY) -m tools.release --out $(RELEASE) --image $(IMG) $(if $(SIGN_KEY),--sign-key $(SIGN_KEY)) $(RELEASE_ARGS)

.PHONY: publish
publish: venv ## push image and chart of RELEASE to REGISTRY=HOST/PATH (credentials: docker login)
	@$(PY) -m tools.publish --release $(RELEASE) --registry "$(REGISTRY)"

.PHONY: audit
audit: venv ## audit the dependencies (AUDIT_ARGS=--quick: skip the 30 s check for withdrawn releases)
	@$(PY) -m tools.dependencies.audit $(AUDIT_ARGS)

.PHONY: clean
clean: ## remove .venv and caches (the built control plane stays in the user's cache)
	@rm -rf $(VENV) .venv.lock .venv.replaced $(DOCS_VENV) $(DOCS_VENV).lock $(DOCS_VENV).replaced site build dist *.egg-info \
	  .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache .coverage
	@find $(PRESENT) -type d -name __pycache__ -prune -exec rm -rf {} +

##@ Local control plane
.PHONY: control-plane
control-plane: venv ## build the control plane's programs (once; several minutes)
	@$(PY) -m localcluster build

.PHONY: cluster-up
cluster-up: venv ## start a local control plane; pods are containers if the machine can (NODES=simulated: none are; CLUSTER_ARGS=--help)
	@$(PY) -m localcluster up --nodes=$(NODES) --image=$(IMAGE) $(CLUSTER_ARGS)

.PHONY: cluster-env
cluster-env: venv ## print the shell settings for it (for `eval`)
	@$(PY) -m localcluster env

.PHONY: cluster-load
cluster-load: venv ## share LOAD (500m CPU in total) among the pods labelled app=web, until Ctrl-C (LOAD_ARGS=--help)
	@$(PY) -m localcluster load --cpu $(LOAD) $(LOAD_ARGS)

.PHONY: cluster-tools
cluster-tools: venv ## build Helm and Prometheus, once; `cluster-env` puts them on PATH
	@$(PY) -m localcluster tools

.PHONY: cluster-prometheus
cluster-prometheus: venv ## run Prometheus with two made-up weeks of a workload, until Ctrl-C (docs/first-day.md)
	@$(PY) -m localcluster prometheus $(PROMETHEUS_ARGS)

.PHONY: cluster-operator
cluster-operator: venv ## run the installed operator as its ServiceAccount, until Ctrl-C
	@$(PY) -m localcluster operator $(OPERATOR_ARGS)

.PHONY: cluster-down
cluster-down: venv ## stop the control plane, or a demo that KEEP=1 left running
	@$(PY) -m localcluster down

.PHONY: e2e-kind
e2e-kind: venv ## run the end-to-end tests on a kind cluster (needs kind and a running Docker)
	@KIND="$(KIND)" DOCKER="$(DOCKER)" KIND_CLUSTER="$(KIND_CLUSTER)" tools/e2e_kind.sh $(PYTEST_ARGS)

##@ Real cluster (your current kubectl context)
.PHONY: install
install: kubectl ## install the CRD
	@$(KUBECTL) apply --server-side --force-conflicts -k config/crd

.PHONY: uninstall
uninstall: kubectl ## remove the CRDs and with them all policies and Hvpas (workloads stay as they are)
	@# Policies first: until their operator has ended, it makes their Hvpas again.
	@$(KUBECTL) delete --ignore-not-found crd clusterhvpapolicies.autoscaling.k8s.io hvpapolicies.autoscaling.k8s.io
	@$(KUBECTL) delete --ignore-not-found -k config/crd

.PHONY: render
render: kubectl ## print all manifests with image IMG
	@$(RENDER)

# Sizes at creation (config/size-at-creation) need MutatingAdmissionPolicies: Kubernetes 1.36.
SERVES_MUTATING_POLICIES = $(KUBECTL) get --raw /apis/admissionregistration.k8s.io/v1 | grep -q '"mutatingadmissionpolicies"'

.PHONY: deploy
deploy: kubectl ## install CRD, RBAC, operator with image IMG, and sizes at creation if the API server supports them
	@$(RENDER) | $(KUBECTL) apply --server-side --force-conflicts -f -
	@if $(SERVES_MUTATING_POLICIES); then $(KUBECTL) apply --server-side --force-conflicts -k config/size-at-creation; \
	  else echo "no MutatingAdmissionPolicy (Kubernetes 1.36): new pods are resized once they run"; fi

.PHONY: undeploy
undeploy: kubectl ## remove the operator and its RBAC; CRD and Hvpas stay
	@# Delete the pods first: an operator releases its lease when it ends, and needs its RBAC for that.
	@$(KUBECTL) delete --ignore-not-found --cascade=foreground deployment hvpa --namespace hvpa-system
	@$(KUBECTL) delete --ignore-not-found -k config/rbac
	@$(KUBECTL) delete --ignore-not-found -k config/manager
	@$(KUBECTL) delete --ignore-not-found clusterrole,clusterrolebinding -l app.kubernetes.io/name=hvpa
	@if $(KUBECTL) api-resources -o name --api-group=admissionregistration.k8s.io | grep -q '^validatingadmissionpolicies'; then \
	  $(KUBECTL) delete --ignore-not-found -k config/operator-policy; fi
	@if $(SERVES_MUTATING_POLICIES); then $(KUBECTL) delete --ignore-not-found -k config/size-at-creation; fi

.PHONY: docker-build
docker-build: ## build image IMG with Docker (PYTHON_IMAGE=NAME@sha256:…: another base)
	@command -v $(firstword $(DOCKER)) >/dev/null || { echo "$(DOCKER) is not installed" >&2; exit 1; }
	@[ -z "$(PYTHON_IMAGE)" ] || echo "$(PYTHON_IMAGE)" | grep -Eq '@sha256:[0-9a-f]{64}$$' || { \
	  echo "PYTHON_IMAGE must end in a digest, @sha256:…: a tag can be pushed anew" >&2; exit 1; }
	$(DOCKER) build $(if $(PYTHON_IMAGE),--build-arg PYTHON_IMAGE=$(PYTHON_IMAGE) )--tag $(IMG) .

.PHONY: image
image: venv ## build image IMG without Docker, from Debian packages, as file IMAGE with an SBOM
	@$(PY) -m tools.image --out $(IMAGE) --name $(IMG)

.PHONY: image-lock
image-lock: venv ## write image.lock and runtimes.lock: the Debian package versions that apt offers (run apt-get update first)
	@$(PY) -m tools.image --lock

# --- prerequisites of other targets, not listed by `make help` ------------------------------------------------------
.PHONY: python
python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "Python 3.11 or newer is needed; $(PYTHON): $$($(PYTHON) --version 2>&1 | head -n 1)." >&2; \
	  echo "Name another one: make PYTHON=/path/to/python3.11 …" >&2; exit 1; }

.PHONY: venv-docs
venv-docs: python
	@$(PYTHON) tools/make_venv.py docs

.PHONY: kubectl
kubectl:
	@command -v $(firstword $(KUBECTL)) >/dev/null || { \
	  echo "kubectl is needed for this; name one: make KUBECTL=/path/to/kubectl …" >&2; exit 1; }
