"""Writes the files that are generated from the code. With `--check`, fails if a file differs."""

from __future__ import annotations

import argparse
import difflib
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # Python only finds the script's own folder

from tools.chart import TEMPLATES  # noqa: E402

GENERATED = {
    "config/crd/autoscaling.k8s.io_hvpas.yaml": ("-m", "hvpa.api.crd"),
    "config/hvpa-policy/crd_hvpapolicies.yaml": ("-m", "hvpa.api.crd", "HvpaPolicy"),
    "config/hvpa-policy/crd_clusterhvpapolicies.yaml": ("-m", "hvpa.api.crd", "ClusterHvpaPolicy"),
    "docs/simulate.schema.json": ("-m", "hvpa_lab.simulate.report.json"),
    "docs/remedies.md": ("-m", "tools.remedies"),
    **{
        f"docs/reference/{page}.md": ("-m", "tools.reference", page)
        for page in ("spec", "status", "commands", "metrics")
    },
    "docs/joint-scaling.md": ("-m", "tools.evidence", "docs/joint-scaling.md"),
    "README.md": ("-m", "tools.evidence", "README.md"),
    "docs/fast-signal.md": ("-m", "tools.evidence", "docs/fast-signal.md"),
    **{
        f"docs/{picture}.svg": ("-m", "tools.evidence", f"docs/{picture}.svg")
        for picture in ("joint-scaling-cost", "first-screen")
    },
    **dict.fromkeys(
        ("config/monitoring/dashboard.json", "charts/hvpa/dashboards/hvpa.json"), ("-m", "tools.dashboard")
    ),
    "charts/hvpa/README.md": ("-m", "tools.chart", "README.md"),
    **{f"charts/hvpa/templates/{name}": ("-m", "tools.chart", name) for name in TEMPLATES},
}
"""By file: arguments of the Python process that prints it."""


def main() -> int:
    """Write or check the files; 1 if a file differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, show what differs")
    args = parser.parse_args()
    differs = False
    for name, command in GENERATED.items():
        path = ROOT / name
        text = subprocess.run(
            [sys.executable, *command], cwd=ROOT, check=True, capture_output=True, text=True
        ).stdout
        if not args.check:
            path.write_text(text)
            continue
        present = path.read_text() if path.exists() else ""
        if present != text:
            differs = True
            sys.stdout.writelines(
                difflib.unified_diff(
                    present.splitlines(True), text.splitlines(True), name, f"{name} (generated)"
                )
            )
    if differs:
        print("what is generated is not up to date: run `make generate`", file=sys.stderr)
    return int(differs)


if __name__ == "__main__":
    sys.exit(main())
