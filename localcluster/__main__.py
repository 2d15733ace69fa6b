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
from localcluster.programs.build import build, build_replays, build_tools, tool_folders
from localcluster.programs.toolchain import BuildError
from localcluster.workloads.load import Load, alone

NEXT_STEPS = """\
a control plane runs; its kubectl and its kubeconfig, for a shell:
  eval "$(make -s cluster-env)"   # that is:
{exports}
then, from nothing to a scaled workload (docs/tutorial.md has more about each line):
  kubectl apply --server-side -k config/crd
  until kubectl wait --for=condition=Established crd/hvpas.autoscaling.k8s.io; do sleep 1; done
  hvpa run > operator.log 2>&1 &
  kubectl apply -f config/samples/web.yaml
  make cluster-load LOAD=1000m    # a core of load, shared by the pods of `web`, until Ctrl-C
  hvpa explain web                # from another shell: what is decided, and why
to end it: make cluster-down"""
"""What `up` prints; `exports` are the lines of `env`."""


def main(arguments: list[str]) -> int:
    """Exit code: 0 done, 1 it did not work (reported on stderr), 2 wrong usage."""
    parser = argparse.ArgumentParser(prog="python -m localcluster", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("build", help="build the programs where they are not in the cache yet")
    for name, text in (
        ("up", "start a control plane that stays; prints its kubeconfig"),
        ("keep", argparse.SUPPRESS),
    ):
        command = commands.add_parser(name, help=text)
        command.add_argument("--bare", action="store_true", help="etcd and API server only")
    commands.add_parser("down", help="end it")
    commands.add_parser("env", help='print shell exports to use it with: eval "$(… env)"')
    load = commands.add_parser("load", help="share out a load to the ready pods of a workload until Ctrl-C")
    load.add_argument("--namespace", default="default")
    load.add_argument("--selector", default="app=web", help="labels of the pods (default: app=web)")
    load.add_argument("--cpu", type=parse_cpu, default="500m", help="in total (default: 500m)")
    load.add_argument(
        "--memory", type=parse_memory, default="0", help="in total, above 16Mi each (default: 0)"
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
            build(full=not options.bare)
            started = keeper.up(full=not options.bare)
            print(NEXT_STEPS.format(exports="\n".join(f"  {line}" for line in exports(started))))
            if started["full"] == options.bare:
                print("another kind of control plane runs already: end it with `down` first", file=sys.stderr)
        case "keep":
            keeper.keep(full=not options.bare)
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
    """Share out the load until Ctrl-C; a line whenever what each pod uses changes."""
    kubeconfig = Path(_running()["kubeconfig"])
    load = Load(
        KubeApi(kubeconfig), options.namespace, options.selector, cpu=options.cpu, memory=options.memory
    )
    printed = None
    with (
        alone(kubeconfig.parent, options.namespace, options.selector),
        load,
        contextlib.suppress(KeyboardInterrupt),
    ):
        while load.error is None:
            usage = load.usage
            if (now := (usage.cpu, usage.pods)) != printed:
                print(
                    f"{usage.total_cpu:.0f}m shared by {usage.pods} ready pods: {usage.cpu}m each", flush=True
                )
            printed = now
            time.sleep(1)
    if load.error is not None:
        raise load.error


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
