"""A real Prometheus on a loopback port, a free one by default: with a configuration, rules and a history of the
caller's choice.

    with Prometheus(folder, scraping({"hvpa": "127.0.0.1:9569"}), rules=[folder / "rules.yaml"]) as prometheus:
        prometheus.query("up")

`backfill` writes a history that was made up; it does so before the start."""

from __future__ import annotations

import json
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from localcluster.client.api import wait_for
from localcluster.process import Process, free_port
from localcluster.programs.build import Programs, build_prometheus

Json = dict[str, Any]
RETENTION: Final = "1y"
"""For how long samples are kept: made-up histories may begin weeks ago."""
BLOCK: Final = "24h"
"""How much of a history one block holds: two weeks are 14 blocks, and the default of 2 h would make 168."""


class Prometheus:
    """One Prometheus process. As a context manager it is started, and killed at the end."""

    def __init__(
        self,
        folder: Path,
        config: Mapping[str, Any] | None = None,
        *,
        rules: Sequence[Path] = (),
        programs: Programs | None = None,
        port: int | None = None,
    ) -> None:
        """`folder` is for its configuration, log and samples. Raises `BuildError`."""
        self.programs = programs or build_prometheus()
        self.data = folder / "data"
        self.data.mkdir(parents=True, exist_ok=True)
        self._config = folder / "prometheus.yml"
        files = [str(path.resolve()) for path in rules]
        self._config.write_text(yaml.safe_dump({**(config or {}), "rule_files": files}))
        port = port or free_port()
        self.url = f"http://127.0.0.1:{port}"
        argv: list[str | Path] = [
            self.programs["prometheus"],
            f"--config.file={self._config}",
            f"--storage.tsdb.path={self.data}",
            f"--storage.tsdb.retention.time={RETENTION}",
            f"--web.listen-address=127.0.0.1:{port}",
        ]
        self.process = Process("prometheus", argv, folder / "prometheus.log")

    def backfill(self, lines: Iterable[str]) -> None:
        """Store samples of the past; `lines` are OpenMetrics text with timestamps in seconds, such as
        `up{job="a"} 1 1700000000`, all samples of one metric one after the other, without the final `# EOF`."""
        text = self.data.parent / "history.txt"
        with text.open("w") as file:
            file.writelines(f"{line}\n" for line in lines)
            file.write("# EOF\n")
        tsdb = ("tsdb", "create-blocks-from", "openmetrics", "--quiet", f"--max-block-duration={BLOCK}")
        promtool(self.programs, *tsdb, text, self.data)

    def __enter__(self) -> Prometheus:
        self.process.start()
        try:
            wait_for(self._ready, 60, "Prometheus is ready", interval=0.05)
        except BaseException:
            self.process.kill()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self.process.kill()

    def _ready(self) -> bool:
        if not self.process.alive:
            raise RuntimeError(f"Prometheus ended with {self.process.returncode}:\n{self.process.tail()}")
        try:
            with urllib.request.urlopen(f"{self.url}/-/ready", timeout=5) as response:
                return bool(response.status == 200)
        except OSError:  # also its answers of 503 while it starts
            return False

    def get(self, path: str, **parameters: object) -> Any:
        """The `data` of an answer of its API: `get("query", query="up")`. Raises `ValueError` with what is wrong."""
        query = urllib.parse.urlencode({key: str(value) for key, value in parameters.items()})
        try:
            with urllib.request.urlopen(f"{self.url}/api/v1/{path}?{query}", timeout=30) as response:
                return json.load(response)["data"]
        except urllib.error.HTTPError as error:
            with error:
                raise ValueError(f"{path}?{query}: {error.read().decode()}") from error

    def query(self, expression: str) -> list[Json]:
        """The series of an instant query, now."""
        return list(self.get("query", query=expression)["result"])


def promtool(programs: Programs, *args: str | Path) -> str:
    """The output of promtool, which must succeed. Raises `ValueError` with what it says."""
    argv = [str(programs["promtool"]), *map(str, args)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=240)
    if done.returncode:
        raise ValueError(f"promtool {' '.join(argv[1:])}:\n{done.stdout}{done.stderr}")
    return done.stdout


def scraping(targets: Mapping[str, str], *, every: str = "1s") -> Json:
    """A configuration that scrapes these addresses, by the names of their jobs, and evaluates rules as often."""
    return {
        "global": {"scrape_interval": every, "evaluation_interval": every},
        "scrape_configs": [
            {"job_name": job, "static_configs": [{"targets": [address]}]} for job, address in targets.items()
        ],
    }
