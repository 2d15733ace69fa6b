"""Label selectors and template metadata: the parts of `metav1` that an Hvpa's spec holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from hvpa.api.schema.base import Rule, SpecModel
from hvpa.api.schema.fields import LIST_LENGTH, Annotations, Labels, LabelValue, Name, Text, Timestamp


class LabelSelectorRequirement(SpecModel):
    """One condition on labels."""

    RULES = (
        Rule(
            "(self.operator in ['In', 'NotIn']) == (has(self.values) && self.values.size() > 0)",
            lambda one: (one.operator in ("In", "NotIn")) == bool(one.values),
            "In and NotIn need values, Exists and DoesNotExist take none",
            ".values",
        ),
    )

    key: Name
    """The label's name."""
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    """How the label's value relates to `values`."""
    values: Annotated[tuple[LabelValue, ...], Field(max_length=LIST_LENGTH)] = ()
    """The values that In and NotIn compare with; none for Exists and DoesNotExist."""

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether an object with these labels meets this condition (an absent label meets NotIn, as in Kubernetes)."""
        match self.operator:
            case "In":
                return labels.get(self.key) in self.values
            case "NotIn":
                return labels.get(self.key) not in self.values
            case "Exists":
                return self.key in labels
            case _:  # DoesNotExist
                return self.key not in labels


class LabelSelector(SpecModel):
    """Selects objects by their labels; all conditions must hold. An empty selector selects nothing."""

    match_labels: Labels = Field(default_factory=dict)
    """Labels that an object must carry with exactly these values."""
    match_expressions: Annotated[tuple[LabelSelectorRequirement, ...], Field(max_length=LIST_LENGTH)] = ()
    """Further conditions on labels."""

    @property
    def is_empty(self) -> bool:
        """Whether no condition is stated."""
        return not self.match_labels and not self.match_expressions

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether an object with these labels is selected; never by an empty selector."""
        if self.is_empty:
            return False
        return all(labels.get(key) == value for key, value in self.match_labels.items()) and all(
            requirement.matches(labels) for requirement in self.match_expressions
        )


class TemplateMeta(SpecModel):
    """Metadata of a template. Labels and annotations are given to the object made from it; the rest is
    accepted since manifests carry it, and has no effect."""

    name: Text | None = None
    """Accepted, not used: the object is named like the Hvpa."""
    generate_name: Text | None = None
    """Accepted, not used: the object is named like the Hvpa."""
    namespace: Text | None = None
    """Accepted, not used: the object is made in the Hvpa's namespace."""
    labels: Labels = Field(default_factory=dict)
    """Labels of the object. The selector should match them."""
    annotations: Annotations = Field(default_factory=dict)
    """Annotations of the object."""
    creation_timestamp: Timestamp | None = Field(default=None, json_schema_extra={"nullable": True})
    """Accepted, not used: tools that print manifests write it as null."""
