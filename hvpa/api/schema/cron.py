"""The form of cron expressions and time zone names, as far as the API server can check it. The models use the same
rules.

The regular expressions mean the same in Python and in RE2. They reject only expressions that croniter rejects.
`hvpa.core.spec.check` finds the remaining errors and unknown time zones (decision note 26).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from hvpa.api.schema.base import cel

ALIASES: Final = ("@hourly", "@daily", "@midnight", "@weekly", "@monthly", "@yearly", "@annually")
"""Names that may replace the five fields."""

_ALIAS: Final = rf"(?i:{'|'.join(ALIASES)})"
_PLAIN: Final = r"^[ -~]*$"
"""Printable ASCII. Only croniter checks expressions with other characters."""
_COUNT: Final = r"^ *[^ @][^ ]*( +[^ ]+){4} *$"
_STEP: Final = r"(/0*[1-9][0-9]*)?"
_WORDED: Final = r"[^ ,]*[A-Za-z?#][^ ,]*"
"""A part of a field with a word or a croniter sign: `MON-FRI`, `L`, `15W`, `FRI#2`. Only croniter checks these."""


@dataclass(frozen=True, slots=True)
class CronField:
    """A field of a cron expression."""

    name: str
    number: str
    """Regular expression for its numbers."""
    allowed: str
    """The allowed values, for messages."""
    worded: bool
    """Whether words and croniter signs are allowed."""

    @property
    def pattern(self) -> str:
        """Regular expression for the field: a list of stars, numbers and ranges, each with or without a step."""
        part = rf"(\*|{self.number}(-{self.number})?){_STEP}"
        part = rf"({part}|{_WORDED})" if self.worded else part
        return rf"{part}(,{part})*"

    @property
    def message(self) -> str:
        """Error message if this field is invalid."""
        return f"the {self.name} must be {self.allowed}, or a list, a range or steps of these, such as {_SUCH_AS}"


_SUCH_AS: Final = "1,3 or 1-5 or */2"
FIELDS: Final = (
    CronField("minute (field 1)", "0*[0-5]?[0-9]", "0 to 59", worded=False),
    CronField("hour (field 2)", "0*([01]?[0-9]|2[0-3])", "0 to 23", worded=False),
    CronField("day of month (field 3)", "0*([0-2]?[0-9]|3[01])", "1 to 31", worded=True),
    CronField("month (field 4)", "0*(0?[0-9]|1[0-2])", "1 to 12 or JAN to DEC", worded=True),
    CronField("day of week (field 5)", "0*[0-7]", "0 to 7 (0 and 7 are Sunday) or SUN to SAT", worded=True),
)
"""Fields as in a CronJob: minute, hour, day of month, month, day of week."""
COUNT_MESSAGE: Final = (
    "must be a cron expression of five fields (minute, hour, day of month, month, day of week), such as 0 22 * * 1-5,"
    f" or one of {', '.join(ALIASES)}"
)
ZONE_PATTERN: Final = r"^[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*$"
ZONE_MESSAGE: Final = "must be the name of a time zone in the IANA database, such as Europe/Berlin or UTC"


def _field_rule(index: int) -> str:
    """Returns CEL for "if the expression has five fields, the field at `index` is well formed"."""
    before = "[^ ]+ +" * index
    return f"!self.matches(r'{_COUNT}') || self.matches(r'^ *{before}{FIELDS[index].pattern}( |$)')"


SCHEDULE_RULES: Final = [
    cel(
        f"!self.matches(r'{_PLAIN}') || self.matches(r'{_COUNT}') || self.matches(r'^{_ALIAS}$')",
        COUNT_MESSAGE,
    ),
    *(
        cel(f"!self.matches(r'{_PLAIN}') || {_field_rule(index)}", field.message)
        for index, field in enumerate(FIELDS)
    ),
]
"""Rules by which the API server checks a schedule. `schedule_fault` is the same in Python."""
ZONE_RULES: Final = [cel(f"self.matches(r'{ZONE_PATTERN}')", ZONE_MESSAGE)]
"""Rules by which the API server checks a time zone name."""


def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern.removeprefix("^").removesuffix("$"), re.ASCII)


_PLAIN_TEXT, _FIVE, _ALIAS_ONLY = _compiled(_PLAIN), _compiled(_COUNT), _compiled(_ALIAS)
_IN_FORM: Final = tuple(_compiled(field.pattern) for field in FIELDS)
ZONE: Final = _compiled(ZONE_PATTERN)


def schedule_fault(text: str) -> str | None:
    """Returns the error in the form of a cron expression (for `0 25 * * 1-5`: the hour, 25). None if it is well formed
    or only croniter can judge it."""
    if _PLAIN_TEXT.fullmatch(text) is None or _ALIAS_ONLY.fullmatch(text) is not None:
        return None
    if _FIVE.fullmatch(text) is None:
        return f"{COUNT_MESSAGE}; it is {text!r}"
    for field, pattern, part in zip(FIELDS, _IN_FORM, text.split(), strict=True):
        if pattern.fullmatch(part) is None:
            return f"{field.message}; it is {part!r}"
    return None
