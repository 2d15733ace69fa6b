"""`python -m tests.recorded` records the real recommenders' answers anew: after a new version of Kubernetes or of the
VPA recommender, or for a new scenario."""

from __future__ import annotations

from localcluster.programs.build import build_replays
from tests.recorded import answers
from tests.recorded.hpa import scenarios as hpa
from tests.recorded.vpa import scenarios as vpa


def main() -> None:
    """Write `hpa.json` and `vpa.json`."""
    programs = build_replays()
    answers.write("hpa", hpa.replayed(programs["hpa-replay"], hpa.WRITTEN))
    answers.write("vpa", vpa.replayed(programs["vpa-replay"], vpa.WRITTEN))


if __name__ == "__main__":
    main()
