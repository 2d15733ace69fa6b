"""The table of jumps: medians over seeds, and joint scaling in place beside an HPA alone."""

from __future__ import annotations

import pytest

from benchmarks.joint.jumps import SHOWN, Felt, felt, in_place_beside_hpa, main, table
from hvpa.simulate.engine import quiet
from hvpa.simulate.model import Reaction


def reaction(cover: float, measured: float | None = 15.0) -> Reaction:
    return Reaction(0, 0, measured, 5.0, 5.0, 0.0, 30.0, cover, cover_seconds=cover)


def test_a_row_has_medians_and_says_where_a_phase_was_not_reached() -> None:
    found = [
        Felt(SHOWN[0], 2, (reaction(40), reaction(50), reaction(90))),
        Felt(SHOWN[-1], 2, (reaction(20, None), reaction(30, None), reaction(25, None))),
    ]
    lines = table(found).splitlines()
    assert lines[2] == "| × 2 | HPA, replaced | 50 | 40 to 90 | 20 | 5 | 0 | 30 |"
    assert lines[3] == "| × 2 | Trajectory 50, in place | 25 | 20 to 30 | – | 5 | 0 | 30 |"
    assert in_place_beside_hpa(found) == {2: 0.5}
    assert lines[-1] == "In place beside an HPA alone: × 2: 0.50 (goal: 0.5)"


def test_nothing_can_be_said_about_no_repeats(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--cluster", "--repeats", "0"])
    assert "--seeds and --repeats: at least 1" in capsys.readouterr().err


@pytest.mark.long
def test_a_jump_is_felt_until_there_are_pods_for_it() -> None:
    quiet()
    (once,) = felt("HPA/Recreate", 2, [0]).reactions
    assert once.start == 7200
    assert once.start_up == 30
    assert 30 < once.cover_seconds < 120
