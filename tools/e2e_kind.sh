#!/usr/bin/env bash
# Runs the end-to-end tests on a kind cluster (needs Docker). The cluster stays, so that the next run is quick;
# `kind delete cluster --name hvpa-e2e` removes it. Arguments go to pytest.
set -euo pipefail
cd "$(dirname "$0")/.."

KIND=${KIND:-kind} DOCKER=${DOCKER:-docker} KIND_CLUSTER=${KIND_CLUSTER:-hvpa-e2e}

fail() {
    echo "make e2e-kind: $*" >&2
    exit 1
}
command -v "$KIND" >/dev/null || fail "$KIND is not installed (https://kind.sigs.k8s.io)"
command -v "$DOCKER" >/dev/null || fail "$DOCKER is not installed"
"$DOCKER" info >/dev/null 2>&1 || fail "$DOCKER is installed, but its daemon can't be reached"

mkdir -p build
kubeconfig=$PWD/build/$KIND_CLUSTER.kubeconfig
if "$KIND" get clusters 2>/dev/null | grep -qx "$KIND_CLUSTER"; then
    "$KIND" export kubeconfig --name "$KIND_CLUSTER" --kubeconfig "$kubeconfig"
else
    "$KIND" create cluster --name "$KIND_CLUSTER" --kubeconfig "$kubeconfig" --wait 120s
fi
exec make --no-print-directory e2e KUBECONFIG="$kubeconfig" PYTEST_ARGS="$*"
