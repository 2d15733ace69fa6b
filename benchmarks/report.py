"""How long `hvpa report -A` takes for many workloads, from the start of the command to its end.

A small API server on loopback, a process of its own, serves the objects: a fifth of the workloads have an HPA and a
VPA, two fifths an HPA alone, a fifth a VPA alone, and a fifth neither. It counts the requests for each resource. It
answers as a Prometheus, too, so the computing time of a real one is missing. The goal is for processor time, because
other load of the machine only adds to the time.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, HTTPServer
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

GOAL = 30.0
"""Seconds for 1,500 workloads."""
PER_NAMESPACE = 40
REPLICAS = 3
OUTPUTS: dict[str, tuple[str, ...]] = {
    "text": (),
    "by team, JSON": ("--by", "team,namespace", "-o", "json"),
    "CSV and page": ("-o", "csv", "--html", "{page}"),
    "a month from Prometheus": ("--prometheus", "{server}", "--by", "team,namespace"),
}
Object = dict[str, Any]


def objects(count: int) -> dict[str, list[Object]]:
    """The objects of the cluster, by path of their list."""
    found: dict[str, list[Object]] = {
        "/apis/apps/v1/deployments": [],
        "/apis/apps/v1/statefulsets": [],
        "/apis/autoscaling/v2/horizontalpodautoscalers": [],
        "/apis/autoscaling.k8s.io/v1/verticalpodautoscalers": [],
        "/apis/autoscaling.k8s.io/v1alpha1/hvpas": [],
        "/apis/metrics.k8s.io/v1beta1/pods": [],
        "/api/v1/pods": [],
        "/api/v1/namespaces": [],
    }
    for number in range(-(-count // PER_NAMESPACE)):
        labels = {"team": f"team-{number % 40}"}
        found["/api/v1/namespaces"].append({"metadata": {"name": f"ns-{number}", "labels": labels}})
    for number in range(count):
        meta = {"name": f"app-{number}", "namespace": f"ns-{number // PER_NAMESPACE}", "generation": 1}
        _put(found, {**meta, "creationTimestamp": "2026-01-01T00:00:00Z", "uid": f"u-{number}"}, number)
    return found


def _put(found: dict[str, list[Object]], meta: Object, number: int) -> None:
    name, namespace = meta["name"], meta["namespace"]
    resources = {"requests": {"cpu": "500m", "memory": "1Gi"}, "limits": {"memory": "2Gi"}}
    containers = [{"name": "app", "image": "app:1", "resources": resources}]
    selected = {"app": name}
    counts = dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), REPLICAS)
    found["/apis/apps/v1/deployments"].append({
        "metadata": meta,
        "spec": {"replicas": REPLICAS, "selector": {"matchLabels": selected},
                 "template": {"metadata": {"labels": selected}, "spec": {"containers": containers}}},
        "status": {"observedGeneration": 1, **counts},
    })  # fmt: skip
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
    if number % 5 < 3:
        current = {"averageUtilization": 20 + number % 60, "averageValue": f"{100 + number % 300}m"}
        found["/apis/autoscaling/v2/horizontalpodautoscalers"].append({
            "metadata": meta,
            "spec": {"scaleTargetRef": target, "minReplicas": 2, "maxReplicas": 20, "metrics": [
                {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization",
                                                                           "averageUtilization": 70}}}]},
            "status": {"currentReplicas": REPLICAS, "desiredReplicas": 2 + number % 3,
                       "currentMetrics": [{"type": "Resource", "resource": {"name": "cpu", "current": current}}],
                       "conditions": [{"type": "ScalingActive", "status": "True", "reason": "ValidMetricFound"}]},
        })  # fmt: skip
    if number % 5 in (0, 3):
        amounts = {"cpu": f"{200 + number % 300}m", "memory": f"{300 + number % 900}Mi"}
        since = "2026-01-01T00:00:00Z"
        found["/apis/autoscaling.k8s.io/v1/verticalpodautoscalers"].append({
            "metadata": meta,
            "spec": {"targetRef": target, "updatePolicy": {"updateMode": "Off"}},
            "status": {"conditions": [{"type": "RecommendationProvided", "status": "True",
                                       "lastTransitionTime": since}],
                       "recommendation": {"containerRecommendations": [{"containerName": "app", "target": amounts}]}},
        })  # fmt: skip
    for index in range(REPLICAS):
        pod = {
            "name": f"{name}-{index}",
            "namespace": namespace,
            "labels": selected,
            "uid": f"{name}-{index}",
        }
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
        status = {"phase": "Running", "conditions": [ready], "containerStatuses": [{"name": "app"}]}
        found["/api/v1/pods"].append({"metadata": pod, "spec": {"containers": containers}, "status": status})
        used = {"cpu": f"{50 + number % 300}m", "memory": f"{200 + number % 500}Mi"}
        found["/apis/metrics.k8s.io/v1beta1/pods"].append(
            {"metadata": pod, "containers": [{"name": "app", "usage": used}]}
        )


def answer(count: int, form: dict[str, list[str]]) -> bytes:
    """The answer of Prometheus: for each workload a value per day."""
    first, last = (round(float(form[name][0])) for name in ("start", "end"))
    kinds = {"avg_over_time((count": REPLICAS, "quantile": 0.2, "max": 4e8}
    size = next((size for start, size in kinds.items() if form["query"][0].startswith(start)), 0.5)
    values = [[at, str(size)] for at in range(first, last + 1, 86_400)]
    result = [
        {
            "metric": {
                "namespace": f"ns-{number // PER_NAMESPACE}",
                "owner_kind": "Deployment",
                "owner_name": f"app-{number}",
                "container": "app",
            },
            "values": values,
        }
        for number in range(count)
    ]
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}}).encode()


def _serve(count: int, pipe: Connection) -> None:
    """Serve the objects until the parent ends; each message is answered with the requests since the last."""
    found, asked = objects(count), Counter[str]()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            url = urlsplit(self.path)
            query = parse_qs(url.query)
            if url.path in found:
                start, limit = int(query.get("continue", ["0"])[0]), int(query["limit"][0])
                asked[url.path] += start == 0
                items = found[url.path]
                left = {"continue": str(start + limit)} if start + limit < len(items) else {}
                body = json.dumps({"metadata": left, "items": items[start : start + limit]}).encode()
            else:
                asked[url.path] += 1
                body = b'{"resources": [{"name": "pods/resize"}]}'
            self._respond(body)

        def do_POST(self) -> None:
            self.close_connection = True  # this server has a single thread
            form = self.rfile.read(int(self.headers["Content-Length"])).decode()
            self._respond(answer(count, parse_qs(form)))

        def _respond(self, body: bytes) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Connection", "close" if self.close_connection else "keep-alive")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: Any) -> None:
            return

    server = HTTPServer(("127.0.0.1", 0), Handler)
    server.timeout = 0.05
    pipe.send(server.server_port)
    while True:
        server.handle_request()
        if pipe.poll():
            if pipe.recv() is None:
                return
            pipe.send(dict(asked))
            asked.clear()


def _kubeconfig(folder: Path, port: int) -> Path:
    path = folder / "kubeconfig"
    path.write_text(json.dumps({
        "apiVersion": "v1", "kind": "Config", "current-context": "it",
        "clusters": [{"name": "it", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
        "users": [{"name": "it", "user": {}}],
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
    }))  # fmt: skip
    return path


def _run(name: str, kubeconfig: Path, folder: Path, pipe: Connection) -> tuple[float, bool]:
    """Processor seconds of a report, and whether it read each resource once."""
    server = json.loads(kubeconfig.read_text())["clusters"][0]["cluster"]["server"]
    flags = [flag.format(page=folder / "page.html", server=server) for flag in OUTPUTS[name]]
    command = [sys.executable, "-m", "hvpa", "report", "-A", "--kubeconfig", str(kubeconfig), *flags]
    start, before = time.perf_counter(), _of_children()
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    seconds, used = time.perf_counter() - start, _of_children() - before
    pipe.send("asked")
    asked: dict[str, int] = pipe.recv()
    once = max(asked.values()) == 1
    print(f"  {name}: {seconds:.1f} s, {used:.1f} s of processor, {len(out.splitlines()):,} lines, ", end="")
    print(f"{len(out) / 2**20:.1f} MiB", end="")
    print(", each resource listed once" if once else f", requests: {asked}")
    return used, once


def _of_children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def main(options: list[str]) -> int:
    """Measure all outputs; 0 if each lists every resource once and 1,500 workloads would take at most GOAL."""
    parser = argparse.ArgumentParser(prog="benchmarks report", description=__doc__)
    parser.add_argument("--workloads", type=int, default=1_500)
    count = parser.parse_args(options).workloads
    here, there = multiprocessing.Pipe()
    server = multiprocessing.get_context("spawn").Process(target=_serve, args=(count, there), daemon=True)
    server.start()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        kubeconfig = _kubeconfig(folder, here.recv())
        print(f"hvpa report -A of {count:,} workloads with {count * REPLICAS:,} pods:")
        runs = [_run(output, kubeconfig, folder, here) for output in OUTPUTS]
    here.send(None)
    server.join()
    slowest = max(seconds for seconds, _ in runs)
    print(
        f"  slowest: {1000 * slowest / count:.1f} ms of processor per workload (goal: {1000 * GOAL / 1500:.0f} ms)"
    )
    return int(slowest / count > GOAL / 1_500 or not all(once for _, once in runs))
