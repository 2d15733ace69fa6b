"""The page lists every reason of a policy's conditions."""

from __future__ import annotations

import re
from pathlib import Path

from hvpa.core.policies import report

PAGE = (Path(__file__).parents[4] / "docs" / "policies.md").read_text()


def test_the_page_has_every_reason_of_ready_and_no_other() -> None:
    reasons = {value for name, value in vars(report).items() if name.isupper() and isinstance(value, str)} - {
        report.OVERLAPS,
        report.NO_OVERLAP,
    }
    assert set(re.findall(r"^\| (?:True|False) \| `(\w+)` \|", PAGE, re.MULTILINE)) == reasons
