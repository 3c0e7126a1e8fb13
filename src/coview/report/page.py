"""One HTML page from a template, with everything it needs inside and a policy that keeps the network out."""

from __future__ import annotations

import hashlib
import json
import math
from base64 import b64encode
from importlib.resources import files
from typing import Any

from coview.extras import load_extra
from coview.report.formats import FORMATS
from coview.report.marks import mark

# Drawing code, styles and data are all inside the page. 'unsafe-eval' is there because Plotly's WebGL compiles its
# drawing commands when it starts; only the scripts whose digests are listed can run at all. Plotly styles its elements
# in place, and saves pictures by way of data: and blob: addresses.
POLICY = (
    "default-src 'none'; script-src {digests}{evaluation}; style-src 'unsafe-inline'; img-src data: blob:; "
    "base-uri 'none'; form-action 'none'"
)


def fill(template: str, *, data: dict[str, Any] | None = None, **values: Any) -> str:
    """Return a filled template, with the scripts and styles of the page inside.

    Parameters
    ----------
    template : str
        A file of the folder `templates`.
    data : dict, optional
        What the plots draw. Plotly is part of the page only if there is something to draw.
    **values
        What the template mentions by name.
    """
    scripts = [_asset("page.js")]
    if data is not None:
        scripts += [_plotly(), _asset("plots.js")]  # tables answer while Plotly is still being read
    digests = " ".join(f"'sha256-{b64encode(hashlib.sha256(s.encode()).digest()).decode()}'" for s in scripts)
    policy = POLICY.format(digests=digests, evaluation=" 'unsafe-eval'" if data is not None else "")
    page = (
        _environment()
        .get_template(template)
        .render(
            policy=policy,
            style=_asset("page.css"),
            scripts=scripts,
            data=None if data is None else as_script(data),
            **values,
        )
    )
    # An id can hold half a surrogate pair, which no file can.
    return str(page).encode(errors="replace").decode()


def as_script(data: Any) -> str:
    r"""Return data as JSON that cannot end its own script element; numbers that are not finite become null.

    Examples
    --------
    >>> as_script({"id": "</script>", "margin": float("nan")})
    '{"id":"\\u003c/script\\u003e","margin":null}'
    """
    text = json.dumps(_finite(data), allow_nan=False, separators=(",", ":"))
    return text.replace("<", r"\u003c").replace(">", r"\u003e").replace("&", r"\u0026")


def _finite(data: Any) -> Any:
    if isinstance(data, float):
        return data if math.isfinite(data) else None
    if isinstance(data, dict):
        return {key: _finite(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_finite(value) for value in data]
    return data


def _environment() -> Any:
    jinja2 = load_extra("jinja2", "report", "a report")
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("coview.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(FORMATS)
    environment.globals["mark"] = mark
    return environment


def _plotly() -> str:
    plotly = files(load_extra("plotly", "report", "a report"))
    return _as_the_browser_reads(plotly.joinpath("package_data", "plotly.min.js").read_text(encoding="utf-8"))


def _asset(name: str) -> str:
    return _as_the_browser_reads(files("coview.report").joinpath(name).read_text(encoding="utf-8"))


def _as_the_browser_reads(text: str) -> str:
    """Line ends as HTML has them, since the digests are taken of what the browser sees."""
    return text.replace("\r\n", "\n").replace("\r", "\n")
