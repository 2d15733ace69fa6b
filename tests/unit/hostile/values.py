"""Values that a client may put where another one belongs: of the wrong type, too large, too small, too long, too deep,
and text that a terminal would obey."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

NUMBERS: list[Any] = [
    *(0, -1, 1, 2**31 - 1, 2**31, 2**63 - 1, 2**63, -(2**63), 10**30, 10**300, -(10**300)),
    *(1e308, -1e308, 5e-324, 1e-300, 0.1, 0.999999999, 99.99999999),
]
QUANTITIES = [
    *("", "1e99", "1e-99", "1n", "-1", "-1e99", "1e999999999", "9" * 64, "9" * 5000, "1Ei", "100m", "0"),
    *("9223372036854775807", "9223372036854775808", "NaN", "Infinity", "0.0", "+.5", "1.", "0x10", "١"),
]
TIMES = [
    *("0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "9999-12-31T23:59:59-12:00"),
    *("0001-01-01T00:00:00+12:00", "10000-01-01T00:00:00Z", "2026-11-21T10:00:30Z"),
    *("2026-11-21T09:59:59.999999Z", "2026-11-21T09:59:59"),
    *("2540400h", "2562047h47m16.854775807s", "0s", "-1s", "1ns"),
]
TEXTS = [
    *("two\nlines", "\x1b[31mred\x1b[2J", "turned \u202e round", "a \x00 in it"),
    *("\x85\u2028\u2029", "\x7f\x9b1A", "é" * 3000, "\U000e0041\u200b", '{"level":"error"}'),
    *("*", "app", "web", "Off", "Trajectory", "Additive", "MaintenanceWindow", "Value", "Utilization"),
    *("memory", "* * * * *", "0 0 29 2 *", "Etc/UTC", "../../etc"),
]
WHOLES: list[Any] = [
    *(None, True, False, [], {}, [[]], [{}], [None], {"": {}}, {"a": {"b": {}}}, ["x"] * 300),
    *({"cpu": "1e99", "memory": "1n"}, {"cpu": -1}, {"cpu": 0}, {"memory": "0"}, {"\n\x1b[31m": "\u202e"}),
]
DEEP: Any = "bottom"
for _ in range(300):
    DEEP = [DEEP]
ALL: list[Any] = [*NUMBERS, *QUANTITIES, *TIMES, *TEXTS, *WHOLES, DEEP]

scalars = st.one_of(
    st.sampled_from(ALL),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=12),
    st.integers(-(10**6), 10**6).map(str),
)
anything = st.one_of(
    scalars,
    st.lists(scalars, max_size=3),
    st.dictionaries(st.sampled_from(["cpu", "memory", "name", "type", "container"]), scalars, max_size=3),
)
