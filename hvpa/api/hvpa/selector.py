"""Label selectors and template metadata: the parts of `metav1` that the spec of an Hvpa uses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from hvpa.api.schema.base import Rule, SpecModel
from hvpa.api.schema.fields import LIST_LENGTH, Annotations, Labels, LabelValue, Name, Text, Timestamp


class LabelSelectorRequirement(SpecModel):
    """A condition on a label."""

    RULES = (
        Rule(
            "(self.operator in ['In', 'NotIn']) == (has(self.values) && self.values.size() > 0)",
            lambda requirement: (requirement.operator in ("In", "NotIn")) == bool(requirement.values),
            "In and NotIn need values, Exists and DoesNotExist take none",
            ".values",
        ),
    )

    key: Name
    """The label's name."""
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    """Relation between the label's value and `values`."""
    values: Annotated[tuple[LabelValue, ...], Field(max_length=LIST_LENGTH)] = ()
    """Values for In and NotIn. Must be empty for Exists and DoesNotExist."""

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether an object with these labels meets this condition. As in Kubernetes, an absent label meets NotIn."""
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
    """Selects objects by their labels. All conditions must be met. An empty selector selects nothing."""

    match_labels: Labels = Field(default_factory=dict)
    """Labels that an object must have, with exactly these values."""
    match_expressions: Annotated[tuple[LabelSelectorRequirement, ...], Field(max_length=LIST_LENGTH)] = ()
    """Additional conditions on labels."""

    @property
    def is_empty(self) -> bool:
        """Whether the selector has no condition."""
        return not self.match_labels and not self.match_expressions

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether the selector selects an object with these labels. An empty selector selects nothing."""
        if self.is_empty:
            return False
        return all(labels.get(key) == value for key, value in self.match_labels.items()) and all(
            requirement.matches(labels) for requirement in self.match_expressions
        )


class TemplateMeta(SpecModel):
    """Metadata of a template. The created object gets these labels and annotations. Other fields are accepted, because
    manifests contain them, and ignored."""

    name: Text | None = None
    """Ignored. The object has the name of the Hvpa."""
    generate_name: Text | None = None
    """Ignored. The object has the name of the Hvpa."""
    namespace: Text | None = None
    """Ignored. The object is in the Hvpa's namespace."""
    labels: Labels = Field(default_factory=dict)
    """Labels of the object. They should match the selector."""
    annotations: Annotations = Field(default_factory=dict)
    """Annotations of the object."""
    creation_timestamp: Timestamp | None = Field(default=None, json_schema_extra={"nullable": True})
    """Ignored. Tools that print manifests write it as null."""
