"""The table of jumps: medians over seeds, and joint scaling in place beside an HPA alone."""

from __future__ import annotations

import pytest

from benchmarks.joint.jumps import SHOWN, felt, in_place_beside_hpa, main, phases, table
from benchmarks.joint.kept import Felt, Phases
from hvpa_lab.simulate.engine import quiet
from hvpa_lab.simulate.model import Reaction


def reaction(cover: float, tolerance: float | None = 15.0) -> Phases:
    return phases(Reaction(0, 0, tolerance, 5.0, 5.0, 0.0, 30.0, cover, cover_seconds=cover))


def test_a_row_has_medians_and_says_where_a_phase_was_not_reached() -> None:
    results = [
        Felt(SHOWN[0], 2, (reaction(40), reaction(50), reaction(90))),
        Felt(SHOWN[-1], 2, (reaction(20, None), reaction(30, None), reaction(25, None))),
    ]
    lines = table(results).splitlines()
    assert lines[2] == "| × 2 | HPA, replaced | 50 | 40 to 90 | 20 | 5 | 0 | 30 |"
    assert lines[3] == "| × 2 | Trajectory 50, in place | 25 | 20 to 30 | – | 5 | 0 | 30 |"
    assert in_place_beside_hpa(results) == {2: 0.5}


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["--cluster", "--repeats", "0"], "--seeds and --repeats: at least 1"),
        (["--cluster", "--keep"], "--keep is for simulated jumps"),
    ],
    ids=["no repeats", "measurements of this machine"],
)
def test_what_has_no_meaning_is_refused(
    arguments: list[str], error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(arguments)
    assert error in capsys.readouterr().err


@pytest.mark.long
def test_a_jump_is_felt_until_there_are_pods_for_it() -> None:
    quiet()
    (once,) = felt("HPA/Recreate", 2, [0]).phases
    assert once.ready == 30
    assert 30 < once.cover < 120
