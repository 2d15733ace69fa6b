"""Fixtures of the differential tests: the programs that replay scenarios through the real recommenders' code."""

from __future__ import annotations

import contextlib

import pytest

from localcluster.programs.build import BuildError, Programs, build_replays


@pytest.fixture(scope="session")
def replays(request: pytest.FixtureRequest) -> Programs:
    """The programs `hpa-replay`, `vpa-replay` and `updater-replay`."""
    try:
        return _build(request.config)
    except BuildError as error:
        pytest.fail(f"the programs that replay scenarios could not be built: {error}", pytrace=False)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Build before the first test begins: a test's time limit is no limit for a compiler."""
    needed = any("replays" in getattr(item, "fixturenames", ()) for item in session.items)
    if needed and not session.config.option.collectonly:
        with contextlib.suppress(BuildError):  # the fixture reports it
            _build(session.config)


def _build(config: pytest.Config) -> Programs:
    capture = config.pluginmanager.getplugin("capturemanager")
    shown = capture.global_and_fixture_disabled() if capture else contextlib.nullcontext()
    with shown:  # the progress of a build is for whoever waits
        return build_replays()
