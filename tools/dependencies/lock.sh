#!/usr/bin/env bash
# Writes the lock files of the operator, its build and its tests from pyproject.toml, and that of the docs site from
# requirements-docs.in. Each pin has the hashes of all files of its release, so that the locks work on every platform.
# Keeps existing pins if they still fit; `tools/dependencies/lock.sh --upgrade` (or `--upgrade-package NAME`) moves them.
# The locks contain no address of a package index. Resolve with an old Python 3.11 (Debian 12 has 3.11.2): packages may
# need a newer one.
set -euo pipefail
cd "$(dirname "$0")/../.."

tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT
"${PYTHON:-python3}" -m venv "$tools/venv"
"$tools/venv/bin/pip" install --quiet --disable-pip-version-check 'pip-tools==7.6.2'

compile() {
    echo "writing ${*: -1}" >&2
    CUSTOM_COMPILE_COMMAND="make lock" "$tools/venv/bin/pip-compile" --quiet --generate-hashes --allow-unsafe \
        --strip-extras --no-emit-index-url --no-emit-find-links --no-emit-trusted-host \
        "${@:1:$#-1}" --output-file "${*: -1}" "$from"
}

from=pyproject.toml
compile "$@" requirements.lock
compile "$@" --constraint requirements.lock --extra lab --extra test --extra dev requirements-dev.lock
compile "$@" --all-build-deps --only-build-deps requirements-build.lock
from=requirements-docs.in
compile "$@" requirements-docs.lock
