"""HTML pages from templates, with all scripts, styles and data included and a policy that blocks network requests."""

from __future__ import annotations

import hashlib
import json
from base64 import b64encode
from importlib.resources import files
from typing import Any

from coview.base.extras import load_extra
from coview.base.text import count, decimals, listed, percent, plural, rounded, seconds
from coview.certainty.stability import READING_BOUNDS, hennig_reading
from coview.evaluate.valleys import CUT_GAUSSIAN, DEEP
from coview.report.charts import swatch
from coview.summary.sentences import AGREEMENT_BOUNDS, LOW_SILHOUETTE, UNCERTAIN, contribution_fractions

FILTERS = {each.__name__: each for each in (count, decimals, hennig_reading, listed, percent, plural, rounded, seconds)}
_OF_CLUSTERS = {"stability": READING_BOUNDS, "silhouette": (LOW_SILHOUETTE,), "valley": (DEEP, CUT_GAUSSIAN)}
BOUNDS = {**_OF_CLUSTERS, "membership": (UNCERTAIN,), "agreement": AGREEMENT_BOUNDS}

# Only scripts with a listed digest can run. 'unsafe-eval' is required because Plotly's WebGL code compiles its drawing
# commands at run time. Plotly also sets inline styles, and saves images through data: and blob: addresses.
POLICY = (
    "default-src 'none'; script-src {digests}{evaluation}; style-src 'unsafe-inline'; img-src data: blob:; "
    "base-uri 'none'; form-action 'none'"
)


def fill(template: str, *, plots: Any = None, samples: Any = None, **values: Any) -> str:
    """Return a page made from a template and its variables; without data of `plots`, it does not include Plotly."""
    scripts = [_package_text("coview.report", "page.js")]
    if samples is not None:
        scripts.append(_package_text("coview.report", "samples.js"))
    if plots is not None:
        plotly = load_extra("plotly", "report", "a report")
        # Plotly comes later, so that tables already respond while the browser parses it.
        scripts += [_package_text(plotly, "package_data", "plotly.min.js"), _package_text("coview.report", "plots.js")]
    digests = " ".join(f"'sha256-{b64encode(hashlib.sha256(s.encode()).digest()).decode()}'" for s in scripts)
    policy = POLICY.format(digests=digests, evaluation=" 'unsafe-eval'" if plots is not None else "")
    values |= {"policy": policy, "style": _package_text("coview.report", "page.css"), "scripts": scripts}
    jinja2 = load_extra("jinja2", "report", "a report")
    loader = jinja2.PackageLoader("coview.report")
    environment = jinja2.Environment(
        loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters.update(FILTERS)
    environment.globals |= {"swatch": swatch, "contribution_fractions": contribution_fractions, "bounds": BOUNDS}
    # The data of each script, by the id of the element that holds them.
    data = {"data": plots, "samples-data": samples}
    values["data"] = {name: as_script(given) for name, given in data.items() if given is not None}
    page = environment.get_template(template).render(samples=samples, **values)
    # An id can contain an unpaired surrogate, which UTF-8 cannot encode.
    return str(page).encode(errors="replace").decode()


def as_script(data: Any) -> str:
    """Return data as JSON that cannot end its own script element; numbers that are not finite become null."""
    finite = json.loads(json.dumps(data), parse_constant=lambda name: None)
    text = json.dumps(finite, allow_nan=False, separators=(",", ":"))
    return text.replace("<", r"\u003c").replace(">", r"\u003e").replace("&", r"\u0026")


def _package_text(package: Any, *path: str) -> str:
    # Reading as text turns every line end into \n, as the browser does before it computes the digest.
    return files(package).joinpath(*path).read_text(encoding="utf-8")
