"""A process that goes on growing is found; one that is merely larger than another is not."""

from __future__ import annotations

import pytest

from tests.e2e.soak.growth import MOST_MB, ROUNDS, Growth, Size


def judged(
    *figures: float, process: str = "operator-0-15", files: tuple[int, ...] = (30,) * ROUNDS
) -> list[str]:
    growth = Growth()
    for size in zip(figures, files, strict=True):
        growth.after_round(process, Size(*size))
    return growth.problems()


def test_a_leader_of_many_lives_is_not_measured_by_the_process_that_waited_at_the_start() -> None:
    """The figures of the false alarm: 81 MB of operator 0's first process, 122 of its fifteenth, which leads."""
    growth = Growth()
    growth.look("operator-0-1", Size(81.0, 23))
    for number in range(ROUNDS):
        growth.look("operator-0-15", Size(122.0, 39))
        growth.after_round("operator-0-15", Size(122.0 + number % 3, 39 - number % 2))
    assert growth.problems() == []
    assert growth.largest == {"operator-0-1": 81.0, "operator-0-15": 122.0}


@pytest.mark.parametrize(
    "figures",
    [
        (77, 84, 87, 94, 95, 95, 96, 96, 96),  # caches fill, and the C library keeps what a list took
        (80, 80, 83, 83, 86, 86, 88, 89, 90),  # caches of a process that is still young, with 100 Hvpas
        (90, 97, 100, 104, 104, 107, 108, 110, 110),  # with 500; after three more rounds: 112, 112, 112
        (
            110,
            112,
            112,
            116,
            117,
            120,
            121,
            123,
            126,
        ),  # a leader's after eight minutes of faults, seed 979408
        (81, 99, 86, 101, 88, 103, 90, 104, 91),  # a list each other round
        (120, 118, 110, 96, 95, 94, 94, 94, 94),
        (128, 133, 133, 139, 142, 145, 149, 149, 149),  # caches that were not full after a third
        # of 200 Hvpas; after three more rounds: 141, 142, 142; the objects in use were no more than in the sixth round
        (112, 121, 126, 126, 127, 130, 135, 136, 136, 137, 138, 140, 140, 141, 141, 141, 141, 141),
    ],
)
def test_what_fills_or_comes_and_goes_is_no_leak(figures: tuple[float, ...]) -> None:
    """Where there are fewer figures than rounds, each stands for two."""
    assert judged(*(figure for figure in figures for _ in range(ROUNDS // len(figures)))) == []


@pytest.mark.parametrize("begin", [(), (80,), (60, 70, 80)])
def test_a_leak_as_large_as_the_room_is_found_whatever_filled_before(begin: tuple[float, ...]) -> None:
    assert judged(*begin, *(90 + 1.4 * number for number in range(ROUNDS - len(begin))))


def test_who_goes_on_growing_is_found() -> None:
    (problem,) = judged(*(80 + 3 * number for number in range(ROUNDS)))
    assert "operator-0-15 goes on growing, in MB: 80, 83, 86" in problem


def test_who_goes_on_opening_files_is_found() -> None:
    (problem,) = judged(*(90,) * ROUNDS, files=tuple(range(30, 30 + 10 * ROUNDS, 10)))
    assert "goes on opening files: 30, 40" in problem


def test_who_is_ever_larger_than_the_manifest_allows_is_found() -> None:
    growth = Growth()
    growth.look("operator-1-2", Size(MOST_MB + 1, 30))
    growth.look("operator-1-2", Size(90, 30))
    (problem,) = growth.problems()
    assert problem == "operator-1-2 needed 538 MB, its limit is 537"


def test_who_ends_while_nothing_is_wrong_is_found() -> None:
    growth = Growth()
    for number in range(ROUNDS):
        growth.after_round("operator-0-15" if number < 10 else "operator-0-16", Size(90, 30))
    assert growth.problems() == [
        "operator-0-15 worked in 10 of 18 rounds without faults",
        "operator-0-16 worked in 8 of 18 rounds without faults",
    ]
