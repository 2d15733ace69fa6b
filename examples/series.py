"""Writes the recorded loads of the examples: `python examples/series.py`. They are made up, from fixed seeds."""

from __future__ import annotations

import csv
import io
import json
import math
import random
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parent
START = 1_767_571_200  # 2026-01-05T00:00:00Z, a Monday
HOURS_OF_WEEK = 7 * 24
OUTAGE = range(8 * 24 + 10, 8 * 24 + 15)
"""Hours without values: five on the second Tuesday."""


def growth() -> Iterator[tuple[int, float]]:
    """Requests per second at each hour of four weeks: doubling, with days and weekends."""
    noise = random.Random(1)
    for hour in range(4 * HOURS_OF_WEEK):
        trend = 60 * 2 ** (hour / (4 * HOURS_OF_WEEK))
        day = 1 - 0.5 * math.cos(2 * math.pi * (hour % 24 - 3) / 24)
        weekend = 0.7 if hour % HOURS_OF_WEEK >= 5 * 24 else 1.0
        value = round(trend * day * weekend * noise.uniform(0.95, 1.05), 1)
        if hour not in OUTAGE:
            yield START + hour * 3600, value


def crowds(share: float, seed: int) -> Iterator[tuple[int, float]]:
    """A zone's requests per second at each minute of six hours, with three crowds."""
    noise = random.Random(seed)
    for minute in range(6 * 60 + 1):
        crowd = 0.0
        for begin, length, height in ((60, 20, 900), (150, 45, 1100), (280, 8, 1000)):
            if minute >= begin:
                crowd += height * math.exp(-max(minute - begin - length, 0) / 6)
        yield START + minute * 60, round(share * (100 + crowd) * noise.uniform(0.97, 1.03), 2)


def growth_csv() -> str:
    """The CSV of the example Growth."""
    out = io.StringIO()
    rows = csv.writer(out, lineterminator="\n")
    rows.writerow(["hour", "requests"])
    rows.writerows(growth())
    return out.getvalue()


def crowds_json() -> str:
    """The response of Prometheus for the example Flash crowd, a line for each value."""
    series = []
    for zone, share, seed in (("a", 0.6, 2), ("b", 0.4, 3)):
        values = ",\n".join(json.dumps([time, str(value)]) for time, value in crowds(share, seed))
        series.append(f'{{"metric": {{"zone": "{zone}"}}, "values": [\n{values}\n]}}')
    results = ",\n".join(series)
    return f'{{"status": "success", "data": {{"resultType": "matrix", "result": [\n{results}\n]}}}}\n'


def usage() -> Iterator[tuple[int, int, float, int, float]]:
    """Time, replicas, cores, bytes and requests per second of two weeks, each quarter of an hour. Pods use 150m and
    600Mi without load. An HPA targets 70 percent of 1 core, and removes pods a quarter of an hour later."""
    noise = random.Random(4)
    before = count = 2
    for quarter in range(2 * HOURS_OF_WEEK * 4):
        day = 200 - 150 * math.cos(2 * math.pi * (quarter % 96 - 12) / 96)
        weekend = 0.6 if quarter % (HOURS_OF_WEEK * 4) >= 5 * 96 else 1.0
        load = day * weekend * noise.uniform(0.93, 1.07)
        wanted = max(2, math.ceil((0.15 * count + 0.01 * load) / 0.7))
        count, before = max(before, wanted), wanted
        cpu = (0.15 * count + 0.01 * load) * noise.uniform(0.98, 1.02)
        memory = (600 * count + 4 * load) * 2**20 * noise.uniform(0.98, 1.02)
        yield START + quarter * 900, count, round(cpu, 3), round(memory), round(load, 1)


def usage_csv() -> str:
    """The history of the example Init."""
    out = io.StringIO()
    rows = csv.writer(out, lineterminator="\n")
    rows.writerow(["time", "replicas", "cpu", "memory", "load"])
    rows.writerows(usage())
    return out.getvalue()


if __name__ == "__main__":
    (HERE / "init" / "usage.csv").write_text(usage_csv(), encoding="utf-8")
    (HERE / "growth" / "load.csv").write_text(growth_csv(), encoding="utf-8")
    (HERE / "flash-crowd" / "range.json").write_text(crowds_json(), encoding="utf-8")
