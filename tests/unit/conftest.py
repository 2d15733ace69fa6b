"""Hypothesis profiles of all unit tests: the same examples at every run, however slow the machine is, unless
HYPOTHESIS_PROFILE says `search`."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

_QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
settings.register_profile(
    "ci", max_examples=25, deadline=None, derandomize=True, suppress_health_check=_QUIET
)
settings.register_profile("search", max_examples=1500, deadline=None, suppress_health_check=_QUIET)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))
if settings.get_current_profile_name() == "ci":
    # Else some examples are made of the constants in all modules that are loaded: of what the same process did before.
    pytest.MonkeyPatch().setattr(providers, "_get_local_constants", lambda: providers._local_constants)
