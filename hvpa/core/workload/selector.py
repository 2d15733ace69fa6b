"""Converts label selectors to text and back."""

from __future__ import annotations

from typing import Final

from hvpa.api.hvpa.selector import LabelSelector
from hvpa.api.objects.read_models import Selector, SelectorRequirement
from hvpa.recommend.hpa import selector as labels

MOST_TERMS: Final = 200
"""Maximum number of labels, conditions and values in a workload's selector. Each is compared with each pod of the
namespace."""
_OPERATORS: Final = {"in": "In", "notin": "NotIn", "exists": "Exists", "!": "DoesNotExist"}


def selector_text(selector: Selector) -> str:
    """Returns a label selector as text, as the scale subresource requires it (`labels.Selector.String()` in
    apimachinery)."""
    parts = [f"{key}={value}" for key, value in sorted((selector.match_labels or {}).items())]
    for requirement in sorted(selector.match_expressions or [], key=lambda entry: entry.key):
        values = ",".join(sorted(requirement.values or []))
        texts = {"In": f"{requirement.key} in ({values})", "NotIn": f"{requirement.key} notin ({values})"}
        texts["DoesNotExist"] = f"!{requirement.key}"
        parts.append(texts.get(requirement.operator, requirement.key))
    return ",".join(parts)


def spec_selector_text(selector: LabelSelector) -> str:
    """Returns a label selector of an Hvpa's spec as text."""
    conditions = [
        SelectorRequirement(condition.key, condition.operator, frozenset(condition.values))
        for condition in selector.match_expressions
    ]
    return selector_text(Selector(selector.match_labels, conditions))


def has_too_many_terms(selector: Selector) -> bool:
    """Whether a selector has more than MOST_TERMS terms. HVPA does not evaluate such a selector."""
    expressions = selector.match_expressions or ()
    count = len(selector.match_labels or ()) + len(expressions)
    return (
        count > MOST_TERMS
        or count + sum(len(requirement.values or ()) for requirement in expressions) > MOST_TERMS
    )


def parse_selector(text: str) -> Selector:
    """Parses a label selector as the API server does (except `<` and `>`, which no workload's selector has). Raises
    ValueError. Example: `app=web,tier in (a,b),!old`."""
    equal: dict[str, str] = {}
    expressions = []
    try:
        requirements = [
            (key, _OPERATORS[operator], values) for key, operator, values in labels.parse_selector(text)
        ]
    except (labels.SelectorError, KeyError) as error:
        raise ValueError(f"no label selector: {text[:200]!r}") from error
    for key, operator, values in requirements:
        if operator == "In" and len(values) == 1 and key not in equal:
            (equal[key],) = values
        else:
            expressions.append(SelectorRequirement(key, operator, values or None))
    return Selector(equal or None, expressions or None)
