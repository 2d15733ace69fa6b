"""A control plane that stays after the command that started it has ended. A background process, the keeper, owns it by
handle like a test does, and ends itself on request over loopback. So no process is ever ended by its name or by a
number from a file."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from localcluster.client.api import wait_for
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.controlplane.flags import AutoscalerSettings
from localcluster.controlplane.loopback import put_operator_on_loopback
from localcluster.node.config import Size
from localcluster.process import free_port
from localcluster.programs.build import Programs
from localcluster.programs.toolchain import cache_folder

Json = dict[str, Any]
_OK = b"ok\n"
_RESERVED = Size(cpu="100m")
"""Of a real node for the rest of the machine: workloads get all CPU except the control plane's minimum."""


class NodeSize(NamedTuple):
    """The allocatable resources of each simulated node, as quantities."""

    cpu: str
    memory: str


DEFAULT_SIZE = NodeSize(AutoscalerSettings().node_cpu, AutoscalerSettings().node_memory)


class KeeperError(Exception):
    """The keeper could not be started, or did not follow a request."""


def state_folder() -> Path:
    """The folder of the control plane that stays; HVPA_CLUSTER_FOLDER sets another."""
    return Path(os.environ.get("HVPA_CLUSTER_FOLDER") or cache_folder() / "cluster")


def _state_file() -> Path:
    return state_folder() / "state.json"


def running() -> Json | None:
    """The data of the running control plane: `kubeconfig`, `programs` (their folder), `logs`; None if none runs."""
    try:
        state: Json = json.loads(_state_file().read_text())
        ask("ping", state)
    except (OSError, ValueError, KeeperError):
        return None
    return state


def up(
    *,
    full: bool = True,
    real: bool = False,
    images: Sequence[Path] = (),
    size: NodeSize = DEFAULT_SIZE,
    timeout: float = 240,
) -> Json:
    """Start a control plane that stays, unless it already runs; returns the result of `running`. The programs
    must have been built. With `real` its node is a real node, with these images; otherwise its nodes have
    this size. Raises `KeeperError`."""
    arguments = [*([] if full else ["--bare"]), *(["--nodes=real"] if real else [])]
    arguments += [f"--image={image.resolve()}" for image in images]
    arguments += [f"--node-cpu={size.cpu}", f"--node-memory={size.memory}"]
    with _starting() as folder:
        return running() or _start_keeper(folder, arguments, timeout)


@contextlib.contextmanager
def host(programs: Programs) -> Iterator[ControlPlane]:
    """A control plane that is found like a control plane of `up`, with this process as its keeper for the length of the
    block; a request to end it sends this process SIGTERM. Raises `KeeperError` if a control plane already runs."""
    with contextlib.ExitStack() as stack:
        with _starting():
            if state := running():
                raise KeeperError(
                    f"a control plane runs already, its kubeconfig is {state['kubeconfig']}; "
                    "end it first: make cluster-down"
                )
            plane, serve = stack.enter_context(_kept(full=True, programs=programs))

        def serve_until_stopped() -> None:
            serve()
            os.kill(os.getpid(), signal.SIGTERM)

        threading.Thread(target=serve_until_stopped, name="keeper", daemon=True).start()
        yield plane


@contextlib.contextmanager
def _starting() -> Iterator[Path]:
    """For the length of the block no other process starts a control plane that stays; yields its folder."""
    folder = state_folder()
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder


def _start_keeper(folder: Path, arguments: Sequence[str], timeout: float) -> Json:
    _state_file().unlink(missing_ok=True)
    log = folder / "keeper.log"
    argv = [sys.executable, "-m", "localcluster", "keep", *arguments]
    with log.open("wb") as output:
        keeper = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            cwd=Path(__file__).resolve().parents[2],
        )
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        if keeper.poll() is not None:
            raise KeeperError(f"the control plane did not start:\n{log.read_text()}")
        state = running()
        if state:
            return state
        time.sleep(0.1)
    keeper.kill()
    raise KeeperError(f"the control plane was not ready within {timeout:g} s; see {log}")


def down() -> bool:
    """End the control plane that stays; False if none runs."""
    state = running()
    if state is None:
        return False
    ask("stop", state)
    # The keeper removes its file when everything has ended.
    wait_for(lambda: not _state_file().exists(), 60, "the control plane ends")
    return True


def ask(question: str, state: Json) -> None:
    """Send `ping` or `stop` to the keeper; raises `KeeperError` or `OSError` if it does not acknowledge it."""
    with socket.create_connection(("127.0.0.1", int(state["port"])), timeout=30) as connection:
        connection.sendall(f"{state['secret']} {question}\n".encode())
        with connection.makefile("rb") as lines:
            if lines.readline() != _OK:
                raise KeeperError(f"the keeper did not acknowledge `{question}`")


def keep(
    *, full: bool = True, real: bool = False, images: Sequence[Path] = (), size: NodeSize = DEFAULT_SIZE
) -> None:
    """Act as the keeper: start the control plane, answer requests until a `stop`."""
    with _kept(full=full, real=real, images=images, size=size) as (_, serve):
        serve()


@contextlib.contextmanager
def _kept(
    *,
    full: bool,
    real: bool = False,
    images: Sequence[Path] = (),
    size: NodeSize = DEFAULT_SIZE,
    programs: Programs | None = None,
) -> Iterator[tuple[ControlPlane, Callable[[], None]]]:
    """Start the control plane, and answer requests until a `stop`."""
    folder = state_folder()
    shutil.rmtree(folder / "run", ignore_errors=True)
    settings = AutoscalerSettings(reserved=_RESERVED, node_cpu=size.cpu, node_memory=size.memory)
    with contextlib.ExitStack() as stack:
        stack.callback(lambda: _state_file().unlink(missing_ok=True))
        # The unpacked files of real nodes are removed with them; logs stay.
        stack.callback(shutil.rmtree, folder / "run" / "nodes", ignore_errors=True)
        plane = stack.enter_context(
            ControlPlane(
                full=full,
                nodes="real" if real else "simulated",
                settings=settings,
                programs=programs,
                folder=folder / "run",
                images=images,
            )
        )
        if real:
            put_operator_on_loopback(plane)
        listener = stack.enter_context(socket.create_server(("127.0.0.1", free_port())))
        state = {
            "port": listener.getsockname()[1],
            "secret": secrets.token_hex(16),
            "kubeconfig": str(plane.kubeconfig),
            "programs": str(plane.programs["kubectl"].parent),
            "logs": str(plane.logs),
            "full": full,
            "real": real,
        }
        _write_state(state)

        def serve() -> None:
            while _serve_one(listener, state["secret"]):
                pass

        yield plane, serve


def _write_state(state: Json) -> None:
    temporary = _state_file().with_suffix(".tmp")
    temporary.touch(mode=0o600)
    temporary.write_text(json.dumps(state))
    temporary.replace(_state_file())


def _serve_one(listener: socket.socket, secret: str) -> bool:
    """Answer a single request; return whether to go on. A client without the secret gets no answer."""
    connection, _ = listener.accept()
    with connection, connection.makefile("rwb") as lines, contextlib.suppress(OSError):
        connection.settimeout(5)
        question = lines.readline().decode(errors="replace").split()
        if question in ([secret, "ping"], [secret, "stop"]):
            lines.write(_OK)
            lines.flush()
            return question[1] != "stop"
    return True
