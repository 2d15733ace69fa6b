"""Tasks that are kept going, in virtual time (see conftest.py)."""

from __future__ import annotations

import asyncio

import pytest
from structlog.testing import capture_logs

from hvpa.reconcile.queue import Backoff
from hvpa.reconcile.supervision import REPEATED, STEADY, Supervisor
from hvpa.reconcile.telemetry import Telemetry
from tests.unit.kube.fake_server import background

pytestmark = pytest.mark.asyncio


class Counted(Telemetry):
    """Counts failures by task."""

    def __init__(self) -> None:
        self.tasks: list[str] = []

    def task_failed(self, task: str) -> None:
        self.tasks.append(task)


class Flaky:
    """Fails so often, a while after it began, then runs for ever."""

    def __init__(self, failures: int, after: float = 0.0) -> None:
        self.left = failures
        self.after = after
        self.begun = 0

    async def __call__(self) -> None:
        self.begun += 1
        await asyncio.sleep(self.after)
        if self.left:
            self.left -= 1
            raise KeyError("Rollout.argoproj.io")
        await asyncio.Event().wait()


def supervisor(telemetry: Telemetry | None = None) -> Supervisor:
    return Supervisor(telemetry, monotonic=asyncio.get_running_loop().time)


async def test_an_exception_is_logged_with_its_cause_and_counted_and_the_task_begins_again() -> None:
    telemetry, work, heard = Counted(), Flaky(2), list[Exception]()
    with capture_logs() as logs:
        async with background(supervisor(telemetry).keep("read scales", work, heard.append)) as task:
            await asyncio.sleep(1000)
            assert not task.done()
    assert work.begun == 3
    assert telemetry.tasks == ["read scales"] * 2
    assert [str(error) for error in heard] == ["'Rollout.argoproj.io'"] * 2
    assert [(line["log_level"], line["task"], repr(line["exc_info"])) for line in logs] == [
        ("error", "read scales", "KeyError('Rollout.argoproj.io')")
    ] * 2


async def test_an_exception_of_one_task_ends_no_other() -> None:
    keeper, other = supervisor(), Flaky(0)
    async with background(keeper.keep("other", other)), background(keeper.keep("this", Flaky(50))):
        await asyncio.sleep(3000)
        assert other.begun == 1


async def test_a_task_that_fails_again_and_again_is_a_problem_until_it_has_run_for_a_while() -> None:
    keeper, work = supervisor(), Flaky(REPEATED)
    async with background(keeper.keep("read scales", work)):
        await asyncio.sleep(10)
        assert keeper.problems() == {"read scales": "keeps failing: KeyError"}
        await asyncio.sleep(STEADY)
        assert keeper.problems() == {}
        assert keeper.failed("read scales", KeyError()) == 1


async def test_failures_far_apart_are_no_problem_and_have_no_long_back_off() -> None:
    keeper, work = supervisor(), Flaky(REPEATED + 1, after=2 * STEADY)
    began = asyncio.get_running_loop().time()
    async with background(keeper.keep("read scales", work)):
        while work.begun < REPEATED + 2:
            await asyncio.sleep(1)
            assert keeper.problems() == {}
    assert asyncio.get_running_loop().time() - began < (REPEATED + 1) * (2 * STEADY + 1) + 1


async def test_a_task_that_returns_or_is_cancelled_is_not_begun_again() -> None:
    keeper, done = supervisor(), 0

    async def work() -> None:
        nonlocal done
        done += 1

    await keeper.keep("once", work)
    assert done == 1
    async with background(keeper.keep("cancelled", Flaky(0))) as task:
        await asyncio.sleep(1)
    assert task.cancelled()


async def test_the_back_off_can_be_a_task_s_own() -> None:
    keeper, work = supervisor(), Flaky(20)
    async with background(keeper.keep("lease", work, backoff=Backoff(0.1, 1.0))):
        await asyncio.sleep(20.1)
        assert work.begun == 21
