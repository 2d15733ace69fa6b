"""`python -m tests.recorded` records anew what the real recommenders answer and what the real VPA updater does: after a
new version of Kubernetes or of the VPA, or for a new scenario."""

from __future__ import annotations

from localcluster.programs.build import build_replays
from tests.recorded import answers
from tests.recorded.hpa import scenarios as hpa
from tests.recorded.updater import scenarios as updater
from tests.recorded.vpa import scenarios as vpa


def main() -> None:
    """Write `hpa.json`, `vpa.json` and `updater.json`."""
    programs = build_replays()
    answers.write("hpa", hpa.replayed(programs["hpa-replay"], hpa.WRITTEN))
    answers.write("vpa", vpa.replayed(programs["vpa-replay"], vpa.WRITTEN))
    answers.write("updater", updater.replayed(programs["updater-replay"], updater.WRITTEN))


if __name__ == "__main__":
    main()
