"""A path as a picture (SVG): replicas against the request of each pod, with lines of equal capacity. Needs matplotlib
(the extra `plots`).

The same path gives the same bytes: neither the user's style nor a date or a version gets in. What belongs here: the
picture as a whole; a panel is drawn in `hvpa.cli.explain.plot.panel`.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any, Final

import matplotlib as mpl
import msgspec
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from hvpa.api.hvpa.spec import HvpaSpec
from hvpa.api.objects.read_models import Vpa
from hvpa.api.values.quantity import parse_resource
from hvpa.cli.explain.plot.panel import Mark, Panel
from hvpa.core.model import JointView, ResourceRequirements
from hvpa.core.path.path import Path, ResourceKey
from hvpa.core.trajectory.config import path_of, trajectory_of
from hvpa.core.values.weight import Bounds
from hvpa.core.workload.containers import RESOURCES, container_resources
from hvpa.simulate.report.picture import STYLE

WIDTH: Final = 7.6
"""Inches of the picture."""
PANEL: Final = 3.7
"""Inches of one panel, with the room for its title."""
HEAD: Final = 0.75
"""Inches above the panels."""
FOOT: Final = 0.5
DPI: Final = 110


def draw(view: JointView, current_replicas: int, title: str = "", kind: str = "svg") -> bytes:
    """The path of a decision with the point of the usual demand, the present one and the one that is wanted, one panel
    for each container and resource. `kind` is svg or png. Raises ValueError where nothing is on the path."""
    usual = {item.key: item.usual for item in view.items if item.usual is not None}
    present = {item.key: item.present for item in view.items if item.present is not None}
    marks = [] if view.usual is None else [Mark("usual", view.usual.replicas, view.usual.sizes, usual)]
    marks.append(Mark("current", current_replicas, {item.key: item.current for item in view.items}, {}))
    marks.append(Mark("wanted", view.wanted.replicas, view.wanted.sizes, present))
    return draw_path(view.path, marks, title, kind)


def draw_path(path: Path, marks: Sequence[Mark] = (), title: str = "", kind: str = "svg") -> bytes:
    """A path with any marks ("usual", "current", "wanted"), or none. Raises ValueError where it has no curve."""
    if not path.curves:
        raise ValueError("no container has a resource on the path")
    style: Any = {**STYLE, "axes.grid": False, "svg.hashsalt": "hvpa"}
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(style)
        height = HEAD + PANEL * len(path.curves) + FOOT
        figure = Figure(figsize=(WIDTH, height), dpi=DPI)
        FigureCanvasAgg(figure)
        grid = figure.subplots(len(path.curves), 1, squeeze=False)
        for (key, curve), row in zip(path.curves.items(), grid, strict=True):
            Panel(key, curve, marks, row[0]).draw()
        figure.suptitle(title or "replicas and requests", x=0.1, y=1 - 0.2 / height, ha="left", fontsize=12)
        figure.subplots_adjust(0.1, FOOT / height, 0.87, 1 - (HEAD + 0.3) / height, 0, 0.36)
        file = io.BytesIO()
        metadata: dict[str, Any] = {"Software": None} if kind == "png" else {"Date": None, "Creator": None}
        figure.savefig(file, format=kind, metadata=metadata)
    return file.getvalue()


def bare_path(spec: HvpaSpec, requests: Mapping[str, Mapping[str, str]]) -> Path:
    """The path of a spec for a workload of which only the requests are known, by container and resource as quantities:
    what `draw_path` needs for a picture in a document. Raises QuantityError."""
    known = {
        name: ResourceRequirements({one: parse_resource(one, of[one]) for one in RESOURCES if one in of}, {})
        for name, of in requests.items()
    }
    first = {ResourceKey(name, one): size for name, of in known.items() for one, size in of.requests.items()}
    targets = [{"containerName": name, "target": dict(of)} for name, of in requests.items()]
    content = {"metadata": {}, "status": {"recommendation": {"containerRecommendations": targets}}}
    found = container_resources(spec, msgspec.convert(content, Vpa), known)
    return path_of(spec, found, first, _counts(spec), vertical_only=not spec.hpa.deploy)


def _counts(spec: HvpaSpec) -> Bounds:
    template, intervals = spec.hpa.template.spec, trajectory_of(spec).intervals
    if spec.hpa.deploy and template is not None:
        return Bounds(template.min_replicas or 1, template.max_replicas)
    return Bounds(1, intervals[-1].max_replicas if intervals else None)
