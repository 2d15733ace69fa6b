"""`hvpa crd`: the CustomResourceDefinition."""

from __future__ import annotations

import argparse
import sys

from hvpa.api.crd import render_crd, to_yaml
from hvpa.cli.errors import DONE


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command has no flags."""


def main(args: argparse.Namespace) -> int:
    """Print the CustomResourceDefinition."""
    sys.stdout.write(to_yaml(render_crd()))
    return DONE
