"""The path of an Hvpa as a self-contained HTML page: replicas against the request of each pod."""

from __future__ import annotations

from hvpa.core.model import Decision
from hvpa_lab.charts.standalone import render
from hvpa_lab.plot.path import path


def draw(decision: Decision, title: str) -> bytes:
    """The page of a decision that has a path."""
    return render("hvpa_lab.plot", title=title, data=path(decision)).encode()
