"""Faults of a soak as they happen: on the lines between operators and API server, on processes, on the API server."""

from __future__ import annotations

import contextlib
import datetime as dt
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from localcluster.controlplane.controlplane import ControlPlane
from localcluster.proxy.faults import Damage, Hold
from localcluster.proxy.packets import why_not
from localcluster.proxy.proxy import Proxy
from tests.e2e.soak.plan import Act
from tests.e2e.soak.replicas import Replica

DAMAGES = list(Damage)
WAIT = {429: 1, 503: 1}
"""Retry-After, in seconds, of the codes that come with one."""


@dataclass(frozen=True, slots=True, eq=False)
class _Fault:
    """One that lasts: until when (monotonic), on which line if on one, and how it ends."""

    until: float
    where: Proxy | None
    end: contextlib.ExitStack


class Injections:
    """Begins faults, and ends them when their time is over."""

    def __init__(self, plane: ControlPlane, replicas: list[Replica]) -> None:
        self._plane = plane
        self._replicas = replicas
        self._faults: list[_Fault] = []
        self.done: Counter[str] = Counter()
        self.log: list[str] = []
        """What was injected or taken back, and when."""
        self.thaws: list[tuple[str, float]] = []
        """Credential of a process that had been stopped, and when it went on (seconds of the epoch)."""
        self._restarts: list[threading.Thread] = []

    def begin(self, act: Act, target: Replica) -> None:
        """Let a fault of the plan happen; `target` is whom a signal is for."""
        self.done[f"{act.kind} {act.text}" if act.kind in ("signal", "restart") else act.kind] += 1
        self._note(str(act))
        if act.kind == "restart":
            restart = threading.Thread(target=self._restart, args=(act,), name="restart")
            self._restarts.append(restart)
            restart.start()
        elif act.kind == "signal":
            self._signal(act, target)
        else:
            for replica in self._replicas if act.who == len(self._replicas) else [self._replicas[act.who]]:
                if act.kind == "dead":
                    if not why_not():
                        replica.wire.lose_connections()
                    continue
                self._end(partial(_is_on, replica.proxy))  # one at a time on each line
                fault = _Fault(time.monotonic() + act.lasts, replica.proxy, contextlib.ExitStack())
                self._faults.append(fault)
                fault.end.callback(self._note, f"end of {act}")
                self._line(act, replica, fault.end)

    def tick(self) -> None:
        """End what is over."""
        now = time.monotonic()
        self._end(lambda fault: fault.until <= now)

    def stop(self) -> None:
        """End all faults, and wait until the API server is back."""
        self._end(lambda fault: True)
        for restart in self._restarts:
            restart.join()

    def _end(self, is_over: Callable[[_Fault], bool]) -> None:
        over = [fault for fault in self._faults if is_over(fault)]
        self._faults = [fault for fault in self._faults if fault not in over]
        for fault in over:
            fault.end.close()

    def _signal(self, act: Act, target: Replica) -> None:
        self._note(f"{act.text} to {target.lives.get(target.credential)}")
        target.inject(act.text)
        if act.text == "SIGSTOP":
            fault = _Fault(time.monotonic() + act.lasts, None, contextlib.ExitStack())
            self._faults.append(fault)
            fault.end.callback(self._thaw, target, target.credential)

    def _thaw(self, replica: Replica, credential: str) -> None:
        self.thaws.append((credential, time.time()))
        replica.thaw()

    def _restart(self, act: Act) -> None:
        self._plane.restart_apiserver(graceful=act.text == "in order", pause=act.lasts)
        self._note(f"end of {act}")

    def _note(self, text: str) -> None:
        self.log.append(f"{dt.datetime.now(dt.UTC):%H:%M:%S.%f} {text}")

    def _line(self, act: Act, replica: Replica, end: contextlib.ExitStack) -> None:
        proxy, verb = replica.proxy, act.text or None
        end.callback(proxy.clear)
        match act.kind:
            case "fail":
                proxy.fail(act.number, times=20, verb=verb, retry_after=WAIT.get(act.number))
            case "damage":
                how = DAMAGES[act.number % len(DAMAGES)]
                proxy.damage(how, times=act.number, verb=verb, seconds=0.2)
            case "delay":
                proxy.delay(0.02 * act.number, verb=verb)
            case "hold":
                when, _, then = act.text.partition(" ")
                hold = proxy.hold(verb="patch", answered=when == "after", times=act.number)
                end.callback(_let_go, hold, then)
            case "cut":
                proxy.cut_watches()
            case "cut in event":
                proxy.cut_in_event("", "reset" if act.number % 2 else "end")
            case "expire":
                proxy.expire_watches()
            case "end":
                proxy.end_watches()
            case "refuse":
                end.enter_context(proxy.refused())
            case _:
                raise ValueError(f"no such fault: {act.kind}")


def _is_on(line: Proxy, fault: _Fault) -> bool:
    return fault.where is line


def _let_go(hold: Hold, then: str) -> None:
    if then == "drop":
        hold.drop()
    else:
        hold.release()
