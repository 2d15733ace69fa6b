"""The fixtures of the command line's tests, for the laboratory's commands."""

from tests.unit.cli.conftest import (
    api,
    at_ten,
    gardener,
    kubeconfig,
    live,
    no_authorities,
    server,
    shell,
    shop,
    trajectory,
)

__all__ = [
    "api",
    "at_ten",
    "gardener",
    "kubeconfig",
    "live",
    "no_authorities",
    "server",
    "shell",
    "shop",
    "trajectory",
]
