"""`python -m localcluster`: the control plane by hand. See `--help`."""

from __future__ import annotations

import argparse
import contextlib
import shlex
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hvpa.api.values.quantity import parse_cpu, parse_memory
from localcluster import installed
from localcluster.client.api import ApiError, KubeApi
from localcluster.controlplane import keeper
from localcluster.controlplane.controlplane import remove_leftovers
from localcluster.node import node
from localcluster.programs.build import build, build_node, build_replays, build_tools, tool_folders
from localcluster.programs.toolchain import BuildError
from localcluster.workloads.load import PodLoad, alone
from localcluster.workloads.traffic import REQUEST_CPU, Traffic, port_of, together

NEXT_STEPS = """\
a control plane runs; its kubectl and its kubeconfig, for a shell:
  eval "$(make -s cluster-env)"   # that is:
{exports}
then, from nothing to a scaled workload (docs/tutorial.md has more about each line):
  kubectl apply --server-side -k config/crd
  until kubectl wait --for=condition=Established crd/hvpas.autoscaling.k8s.io; do sleep 1; done
  hvpa run > operator.log 2>&1 &
  kubectl apply -f examples/tutorial/web.yaml
  make cluster-load LOAD=400m     # 0.4 cores of load, shared by the pods of `web`, until Ctrl-C
  hvpa explain web                # from another shell: what is decided, and why
to end it: make cluster-down"""
"""What `up` prints; `exports` are the lines of `env`."""
_REPORT_SECONDS = 5.0


def main(arguments: list[str]) -> int:
    """Exit code: 0 done, 1 failed (reported on stderr), 2 wrong usage."""
    parser = argparse.ArgumentParser(prog="python -m localcluster", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("build", help="build the programs where they are not in the cache yet")
    for name, text in (
        ("up", "start a control plane that stays; prints its kubeconfig"),
        ("keep", argparse.SUPPRESS),
    ):
        command = commands.add_parser(name, help=text)
        command.add_argument("--bare", action="store_true", help="etcd and API server only")
        command.add_argument(
            "--nodes",
            choices=["", "auto", "real", "simulated"],
            default="",
            help="real: pods are containers of this machine; auto: if it can (the default)",
        )
        command.add_argument(
            "--image", default="", help="a file (OCI), if it exists: an image for a real node, beside its own"
        )
        for resource, default in keeper.DEFAULT_SIZE._asdict().items():
            command.add_argument(
                f"--node-{resource}", default=default, help=f"of each simulated node (default: {default})"
            )
    commands.add_parser("down", help="end it")
    commands.add_parser("env", help='print shell exports to use it with: eval "$(… env)"')
    load = commands.add_parser("load", help="share out a load to the ready pods of a workload until Ctrl-C")
    load.add_argument("--namespace", default="default")
    load.add_argument("--selector", default="app=web", help="labels of the pods (default: app=web)")
    load.add_argument("--cpu", type=parse_cpu, default="500m", help="in total (default: 500m)")
    load.add_argument(
        "--memory",
        type=parse_memory,
        default="0",
        help="in total, by all pods, above 16Mi each (default: 0); not by pods that serve HTTP",
    )
    commands.add_parser("tools", help="build Helm and Prometheus; `env` puts them on PATH")
    prometheus = commands.add_parser("prometheus", help="a Prometheus with two made-up weeks, until Ctrl-C")
    prometheus.add_argument("--port", type=int, default=9090, help="default: 9090")
    operator = commands.add_parser("operator", help="run what the operator's Deployment would, until Ctrl-C")
    for command in (prometheus, operator):
        command.add_argument("--metrics-port", type=int, default=9569, help="the operator's (default: 9569)")
    options = parser.parse_args(arguments)
    try:
        return _run(options)
    except (ApiError, BuildError, keeper.KeeperError, OSError, RuntimeError) as error:
        print(error, file=sys.stderr)
        return 1


def _run(options: argparse.Namespace) -> int:
    match options.command:
        case "build":
            build()
            build_replays()
        case "up":
            _up(options)
        case "keep":
            images = _images(options.image)
            keeper.keep(
                full=not options.bare, real=options.nodes == "real", images=images, size=_size(options)
            )
        case "down":
            print("ended" if keeper.down() else "no control plane runs", file=sys.stderr)
        case "env":
            print("\n".join(exports(_running(), *tool_folders())))
        case "load":
            _load(options)
        case "tools":
            build_tools()
        case "prometheus" | "operator":
            _installed(options)
    return 0


def _up(options: argparse.Namespace) -> None:
    """Start a control plane that stays; the first line of output names the kind of its nodes, and the reason."""
    real = False
    if not options.bare:
        real, line = which_nodes(options.nodes, options.image)
        print(f"nodes: {line}", flush=True)
    if (real or options.bare) and _size(options) != keeper.DEFAULT_SIZE:
        raise keeper.KeeperError("--node-cpu and --node-memory need simulated nodes (NODES=simulated)")
    build(full=not options.bare)
    if real:
        build_node()
    images = _images(options.image) if real else ()
    remove_leftovers()  # here, since the keeper's output goes to its log
    started = keeper.up(full=not options.bare, real=real, images=images, size=_size(options))
    print(NEXT_STEPS.format(exports="\n".join(f"  {line}" for line in exports(started))))
    if (started["full"], started.get("real", False)) != (not options.bare, real):
        print("another kind of control plane runs already: end it with `down` first", file=sys.stderr)


def which_nodes(wanted: str, image: str) -> tuple[bool, str]:
    """Whether nodes are real, and a line about it. Raises `KeeperError` if they must be real and can't."""
    if wanted == "simulated":
        return False, "simulated (KWOK): pods run nothing"
    if reason := node.why_simulated():
        if wanted == "real":
            raise keeper.KeeperError(f"NODES=real: {reason}")
        return False, f"simulated (KWOK): {reason}"
    line = "real (kubelet, containerd, runc): pods are containers of this machine"
    if image and not _images(image):
        line += f"; {image} is missing, so the operator can't be a pod (make image)"
    return True, line


def _size(options: argparse.Namespace) -> keeper.NodeSize:
    return keeper.NodeSize(options.node_cpu, options.node_memory)


def _images(file: str) -> tuple[Path, ...]:
    return (Path(file),) if file and Path(file).is_file() else ()


def exports(state: Mapping[str, Any], *tools: Path) -> list[str]:
    """Lines for a shell: the cluster, its kubectl, the `hvpa` of this Python's environment, and folders of tools."""
    folders = (state["programs"], Path(sys.executable).parent, *tools)
    return [
        f"export KUBECONFIG={shlex.quote(state['kubeconfig'])}",
        f"export PATH={':'.join(shlex.quote(str(folder)) for folder in folders)}:$PATH",
    ]


def _running() -> keeper.Json:
    state = keeper.running()
    if state is None:
        raise keeper.KeeperError("no control plane runs; start one: make cluster-up")
    return state


def _installed(options: argparse.Namespace) -> None:
    """Run the operator, or a Prometheus, until Ctrl-C."""
    if options.command == "operator":
        installed.become_operator(_running(), options.metrics_port)
    with (
        installed.prometheus(options.port, options.metrics_port) as server,
        contextlib.suppress(KeyboardInterrupt),
    ):
        print(f"{server.url} has two weeks of deployment/web in namespace shop; Ctrl-C ends it", flush=True)
        while server.process.alive:
            time.sleep(1)


def _load(options: argparse.Namespace) -> None:
    """Distribute the load until Ctrl-C: as HTTP requests if containers of a real node have a port, else as usage."""
    state = _running()
    kubeconfig = Path(state["kubeconfig"])
    api = KubeApi(kubeconfig)
    with (
        alone(kubeconfig.parent, options.namespace, options.selector),
        contextlib.suppress(KeyboardInterrupt),
    ):
        port = port_of(api.list("Pod", options.namespace, options.selector)) if state.get("real") else None
        if port is None:
            _use(api, options)
        elif options.memory:
            raise keeper.KeeperError(
                "--memory: pods that serve HTTP hold memory for each request; leave it out"
            )
        else:
            _send(api, options, port, kubeconfig.parent)


def _use(api: KubeApi, options: argparse.Namespace) -> None:
    """Set the usage of the pods; print a line whenever the usage of each pod changes."""
    printed = None
    with PodLoad(
        api,
        options.namespace,
        options.selector,
        cpu=options.cpu,
        memory=options.memory,
        keeps_memory=True,
    ) as load:
        while load.error is None:
            usage = load.usage
            if (now := (usage.cpu, usage.pods)) != printed:
                print(
                    f"{usage.total_cpu:.0f}m shared by {usage.pods} ready pods: {usage.cpu}m each", flush=True
                )
            printed = now
            time.sleep(1)
    raise load.error


def _send(api: KubeApi, options: argparse.Namespace, port: int, folder: Path) -> None:
    """Send requests to the pods; print a line about their latency every few seconds."""
    rate = options.cpu / REQUEST_CPU
    print(f"{rate:g} requests per second to the ready pods, {REQUEST_CPU:g} ms of CPU each", flush=True)
    printed = time.time()
    with Traffic(
        api, options.namespace, options.selector, port, build_node()["traffic"], folder, lambda: rate
    ) as traffic:
        while traffic.error is None:
            time.sleep(_REPORT_SECONDS)
            answers = {second: requests for second, requests in traffic.answers().items() if second > printed}
            printed = max(answers, default=printed)
            print(together(list(answers.values())).line, flush=True)
    raise traffic.error


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
