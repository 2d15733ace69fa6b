"""How much computing a piece of asynchronous work takes, waiting aside."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Generator
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Metered(Generic[T]):
    """Awaits `work`; `seconds` is the thread's processor time that it took so far. Costs a microsecond or two."""

    def __init__(self, work: Awaitable[T]) -> None:
        self._work = work
        self.seconds = 0.0

    def __await__(self) -> Generator[Any, Any, T]:
        """As `yield from` (PEP 380), with a look at the clock around each step."""
        steps = self._work.__await__()
        resume: Any = next
        arguments: tuple[Any, ...] = (steps,)
        while True:
            began = time.thread_time()
            try:
                waits_for = resume(*arguments)
            except StopIteration as end:
                result: T = end.value
                return result
            finally:
                self.seconds += time.thread_time() - began
            try:
                arguments = (steps, (yield waits_for))
                resume = _send
            except BaseException as error:  # cancellation, too, is the work's to handle
                arguments = (steps, error)
                resume = _throw


def _send(steps: Generator[Any, Any, Any], value: Any) -> Any:
    return steps.send(value)


def _throw(steps: Generator[Any, Any, Any], error: BaseException) -> Any:
    return steps.throw(error)
