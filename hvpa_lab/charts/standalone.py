"""Self-contained HTML pages with charts: no network, no fonts, no other files.

Jinja escapes all text. The content security policy allows only the embedded script, and no requests. The same data
gives the same bytes.
"""

from __future__ import annotations

import base64
import hashlib
from importlib import resources
from typing import Any, Final

from jinja2 import DictLoader, Environment, StrictUndefined
from markupsafe import Markup

from hvpa.api.values.text import printable

SHARED: Final = "hvpa_lab.charts"


def render(package: str, title: str, data: object = None, *, tables: bool = False, **content: Any) -> str:
    """The page of a package: its `page.html`, which extends `standalone.html`, its `page.css`, and its `page.js`, which
    reads `data`; without a `page.js`, the page has neither scripts nor charts. `tables` adds the style of pages with
    tables of figures. `content` are the variables of `page.html`."""
    environment = Environment(
        autoescape=True,
        finalize=_visible,
        loader=DictLoader(
            {name: _text(of, name) for of, name in ((SHARED, "standalone.html"), (package, "page.html"))}
        ),
        lstrip_blocks=True,
        trim_blocks=True,
        undefined=StrictUndefined,
    )
    environment.policies["json.dumps_kwargs"] = {
        "ensure_ascii": False, "allow_nan": False, "separators": (",", ":"),
    }  # fmt: skip
    has_charts = resources.files(package).joinpath("page.js").is_file()
    shared = [*(("uPlot.min.css",) if has_charts else ()), "charts.css", *(("tables.css",) if tables else ())]
    styles = [*((SHARED, name) for name in shared), (package, "page.css")]
    script = _script(package) if has_charts else ""
    return environment.get_template("page.html").render(
        title=title,
        data=data,
        style=Markup("".join(_text(*file) for file in styles)),
        script=Markup(script),
        hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        **content,
    )


def _script(package: str) -> str:
    shared = [_text(SHARED, name) for name in ("locale.js", "uPlot.iife.min.js", "charts.js")]
    return "\n".join((f"/*\n{_text(SHARED, 'uPlot.LICENSE.txt')}*/", *shared, _text(package, "page.js")))


def _visible(value: object) -> object:
    """A value that the page shows, with invisible characters as escapes."""
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _text(package: str, name: str) -> str:
    return resources.files(package).joinpath(name).read_text(encoding="utf-8")
