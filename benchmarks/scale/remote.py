"""A child process with its own event loop that runs methods on request. It separates the CPU of the simulated cluster
and of the bare client from that of the measuring process."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any, Protocol, Self


class Served(Protocol):
    """An object in the child process; each of its coroutine methods can be called."""

    async def begin(self) -> None:
        """Called first, in the child's event loop."""
        ...


class Remote:
    """A `Served` in a separate process. As a context manager it is started, and stopped at the end."""

    def __init__(self, make: Callable[..., Served], *args: Any) -> None:
        """The child calls `make(*args)`."""
        context = multiprocessing.get_context("spawn")
        self._ours, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, make, args), daemon=True)
        self._theirs = theirs

    def __enter__(self) -> Self:
        self._process.start()
        self._theirs.close()
        self.result()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ours.close()  # ends the child's loop
        self._process.join(2)
        self._process.kill()
        self._process.join()

    @property
    def pid(self) -> int:
        """Its process id."""
        assert self._process.pid is not None
        return self._process.pid

    def begin(self, method: str, *args: Any) -> None:
        """Call a method; `result` waits for its result."""
        self._ours.send((method, args))

    def result(self) -> Any:
        """Return the result of the last call. Raises `RuntimeError` if it failed."""
        try:
            failure, response = self._ours.recv()
        except EOFError as error:
            raise RuntimeError("the child process ended") from error
        if failure:
            raise RuntimeError(failure)
        return response

    def call(self, method: str, *args: Any) -> Any:
        """Call a method and return its result."""
        self.begin(method, *args)
        return self.result()


def _serve(pipe: Connection, make: Callable[..., Served], args: tuple[Any, ...]) -> None:
    asyncio.run(_answer(pipe, make(*args)))
    os._exit(0)  # connections need no orderly close


async def _answer(pipe: Connection, served: Served) -> None:
    ready = asyncio.Event()
    asyncio.get_running_loop().add_reader(pipe.fileno(), ready.set)
    pipe.send(await _call(served.begin()))
    while True:
        await ready.wait()
        ready.clear()
        try:
            while pipe.poll():
                method, given = pipe.recv()
                pipe.send(await _call(getattr(served, method)(*given)))
        except (EOFError, OSError):
            return


async def _call(work: Any) -> tuple[str, Any]:
    try:
        return "", await work
    except Exception as error:
        while isinstance(error, ExceptionGroup):  # the first of many failed requests
            error = error.exceptions[0]
        return "".join(traceback.format_exception(error)), None
