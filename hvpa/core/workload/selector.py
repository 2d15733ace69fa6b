"""A label selector as text."""

from __future__ import annotations

from hvpa.api.objects.read_models import Selector


def selector_text(selector: Selector) -> str:
    """A label selector as text, as the scale subresource wants it (`labels.Selector.String()` in apimachinery)."""
    parts = [f"{key}={value}" for key, value in sorted((selector.match_labels or {}).items())]
    for entry in sorted(selector.match_expressions or [], key=lambda one: one.key):
        values = ",".join(sorted(entry.values or []))
        expression = {
            "In": f"{entry.key} in ({values})",
            "NotIn": f"{entry.key} notin ({values})",
            "Exists": entry.key,
            "DoesNotExist": f"!{entry.key}",
        }
        parts.append(expression.get(entry.operator, entry.key))
    return ",".join(parts)
