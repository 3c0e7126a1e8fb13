"""What a summary holds: plain, frozen values that can be written as JSON and read back."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from html import escape
from typing import Any, NoReturn

from coview.errors import InputError
from coview.kernels import KERNELS
from coview.persist.codec import record_from_json, record_to_json

_FORMAT = "coview summary 3"
_LISTED = 20
_MEASURES = ("stability", "agreement", "size_entropy", "line_fit", "membership", "eigengap")
_KERNEL_NAMES = {kind.__name__: name for name, kind in KERNELS.items()}


@dataclass(frozen=True)
class Feature:
    """A column of a view that separates a cluster from the other samples."""

    view: str
    name: str
    effect: float  # mean inside minus mean outside, over the pooled standard deviation
    inside: float
    outside: float


@dataclass(frozen=True)
class Cluster:
    """One cluster: how large, how clear, which views agree with it, and what is special about its members."""

    label: int
    size: int
    share: float
    silhouette: float | None  # mean over members, in score space
    margin: float | None  # median over members; below 0 where another cluster is nearer to most of them
    agreement: dict[str, float]  # by view: share of members that the view's own labels put together here as well
    features: tuple[Feature, ...]  # largest effects first
    classes: dict[str, int] | None  # known classes of the members, most frequent first


@dataclass(frozen=True)
class View:
    """One view: its size, its preparation, its kernel, and how far its own labels agree with the consensus (ARI)."""

    name: str
    n_features: int
    sparse: bool
    preprocessing: str  # in words
    kernel: str | None
    agreement: float | None
    notes: tuple[str, ...]  # such as constant columns


@dataclass(frozen=True)
class Truth:
    """The clusters beside known classes."""

    classes: tuple[str, ...]
    contingency: tuple[tuple[int, ...], ...]  # a row for each cluster, a column for each class
    ari: float
    nmi: float
    accuracy: float
    purity: float


@dataclass(frozen=True)
class Uncertain:
    """A sample near the border between two clusters."""

    row: int
    sample: str
    label: int
    runner_up: int
    margin: float  # below 0, the runner-up is the nearer one


@dataclass(frozen=True, repr=False)
class Points:
    """The samples that are drawn: all of them, or a random part when there are many."""

    rows: tuple[int, ...]
    samples: tuple[str, ...]
    labels: tuple[int, ...]
    classes: tuple[str, ...] | None
    margins: tuple[float, ...] | None  # from -1 to 1: below 0, the runner-up is nearer than the own cluster
    scores: tuple[tuple[float, ...], ...]  # a row for each drawn sample, a column for each component
    view_labels: dict[str, tuple[int, ...]]
    view_scores: dict[str, tuple[tuple[float, ...], ...]]

    def __repr__(self) -> str:
        components = len(self.scores[0]) if self.scores else 0
        return f"Points({len(self.rows)} samples, {components} components)"


@dataclass(frozen=True, repr=False)
class Similarities:
    """Fused similarities of some samples, ordered by cluster."""

    labels: tuple[int, ...]
    values: tuple[tuple[float, ...], ...]

    def __repr__(self) -> str:
        return f"Similarities({len(self.labels)} samples)"


@dataclass(frozen=True)
class Tried:
    """A setting that was tried while settings were chosen, for one number of clusters, and what spoke for it."""

    round: int
    n_samples: int  # of this round
    steps: tuple[str, ...]  # in the order of the views
    kernel: str
    rho: float
    kappa: tuple[float, ...]  # in the order of the views
    n_clusters: int
    criterion: float | None  # of all that speaks for it; None where it failed
    consensus: float | None  # with the other settings
    stability: float | None
    agreement: float | None
    size_entropy: float | None
    line_fit: float | None
    membership: float | None
    eigengap: float | None
    error: str | None

    @property
    def setting(self) -> tuple[Any, ...]:
        """What was tried, whatever the round and the number of clusters."""
        return self.steps, self.kernel, self.rho, self.kappa

    @property
    def prepared(self) -> str:
        """The steps in short, each named once."""
        return " / ".join(dict.fromkeys(self.steps))

    @property
    def kernel_name(self) -> str:
        """The kernel by the name that estimators and the command take, without its parameters."""
        name = self.kernel.partition("(")[0]
        return _KERNEL_NAMES.get(name, name)

    @property
    def weights(self) -> str:
        """The weights of the views in short; nothing where all count 1."""
        return "" if set(self.kappa) == {1.0} else " ".join(f"{weight:g}" for weight in self.kappa)

    @property
    def label(self) -> str:
        """The setting in a few words."""
        weights = f" · κ {self.weights}" if self.weights else ""
        return f"{self.kernel_name} · {self.prepared} · ρ {self.rho:g}{weights}"


@dataclass(frozen=True, repr=False)
class Tuning:
    """How the settings were chosen: why, and all that was tried."""

    reason: str
    chosen: int  # place among the rows
    rows: tuple[Tried, ...]

    def __repr__(self) -> str:
        return f"Tuning({self.rows[self.chosen].label}; {len(self.rows)} rows)"


@dataclass(frozen=True, repr=False)
class Summary:
    """What a fitted model found, as plain values that can be written as JSON and read back."""

    method: str
    parameters: dict[str, Any]
    n_samples: int
    n_train: int
    n_clusters: int
    views: tuple[View, ...]
    clusters: tuple[Cluster, ...]
    silhouette: float | None
    eigenvalues: tuple[float, ...] | None
    explained_variance_ratio: tuple[float, ...] | None
    uncertain: tuple[Uncertain, ...]
    truth: Truth | None
    points: Points
    similarities: Similarities | None
    tuning: Tuning | None  # where the settings were chosen from the data
    notes: tuple[str, ...]
    seconds: dict[str, float]
    versions: dict[str, str]
    command: str | None  # how to repeat the run, where it was a command

    def to_dict(self) -> dict[str, Any]:
        """Return everything as dictionaries, lists, texts and numbers."""
        return {"format": _FORMAT, **record_to_json(self)}

    def to_json(self) -> str:
        """Return everything as one line of JSON, which `from_json` reads back; there is no NaN in it."""
        return json.dumps(self.to_dict(), allow_nan=False, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str | bytes) -> Summary:
        """Return the summary that was written by `to_json`; anything else is refused.

        Parameters
        ----------
        text : str or bytes
            Contents of a summary.json.
        """
        try:
            plain = json.loads(text, parse_constant=_refuse_constant)
        except (ValueError, RecursionError) as error:
            raise InputError(f"the summary is not valid JSON ({error}); write it again with Summary.to_json") from None
        if not isinstance(plain, dict) or plain.get("format") != _FORMAT:
            raise InputError(f"this is no summary of this version, whose format is {_FORMAT!r}; fit again to get one")
        del plain["format"]
        summary: Summary = record_from_json(cls, plain, "the summary")
        _check_lengths(summary)
        return summary

    def __repr__(self) -> str:
        return f"Summary({self.method}: {', '.join(self._headline())})"

    def _headline(self) -> list[str]:
        clusters, views = _counted(self.n_clusters, "cluster"), _counted(len(self.views), "view")
        said = [f"{self.n_samples:,} samples in {clusters} from {views}"]
        if self.silhouette is not None:
            said.append(f"silhouette {self.silhouette:.2f}")
        if self.truth is not None:
            said.append(f"ARI with known classes {self.truth.ari:.2f}")
        return said

    def _repr_html_(self) -> str:
        """Show the clusters as a small table in notebooks."""
        views = [view.name for view in self.views if view.agreement is not None]
        header = [
            "cluster",
            "size",
            "share",
            "silhouette",
            "margin",
            *(f"agrees: {name}" for name in views),
            "features",
        ]
        rows = [
            [
                str(cluster.label),
                f"{cluster.size:,}",
                f"{cluster.share:.1%}",
                _two_digits(cluster.silhouette),
                _two_digits(cluster.margin),
                *(f"{cluster.agreement[name]:.0%}" for name in views),
                ", ".join(
                    f"{feature.view}: {feature.name} ({feature.effect:+.1f})" for feature in cluster.features[:3]
                ),
            ]
            for cluster in self.clusters[:_LISTED]
        ]
        more = f"<p>… and {len(self.clusters) - _LISTED} more clusters</p>" if len(self.clusters) > _LISTED else ""
        head = "".join(f"<th>{escape(name)}</th>" for name in header)
        body = "".join(f"<tr>{''.join(f'<td>{escape(entry)}</td>' for entry in row)}</tr>" for row in rows)
        title = escape(f"{self.method}: {', '.join(self._headline())}")
        return f"<p><b>{title}</b></p><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def reading_order(name: str) -> tuple[Any, ...]:
    """Return a key to sort names by: numbers before words, 2 before 10, and gene2 before gene10."""
    try:
        number = float(name)
    except ValueError:
        number = math.nan
    if math.isfinite(number):
        return 0, number, name
    parts = re.split("([0-9]+)", name)  # texts and numbers take turns, so that like is compared with like
    return 1, [float(part) if i % 2 else part for i, part in enumerate(parts)], name


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _two_digits(number: float | None) -> str:
    return "–" if number is None else f"{number:.2f}"


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number")


def _check_lengths(summary: Summary) -> None:
    """What belongs together must have one length: readers zip these lists."""
    points, truth, similarities = summary.points, summary.truth, summary.similarities
    n, names, labels = len(points.rows), {v.name for v in summary.views}, {c.label for c in summary.clusters}
    drawn = [points.samples, points.labels, points.classes, points.margins, points.scores or None]
    drawn += [*points.view_labels.values(), *points.view_scores.values()]
    agreed = {v.name for v in summary.views if v.agreement is not None}
    holds = {
        "n_clusters": summary.n_clusters == len(summary.clusters) == len(labels),
        "views": len(names) == len(summary.views),
        "clusters": all(set(c.agreement) == agreed for c in summary.clusters),
        "points": all(len(part) == n for part in drawn if part is not None)
        and set(points.view_labels) | set(points.view_scores) <= names
        and set(points.labels) <= labels
        and all(_is_rectangular(scores) for scores in (points.scores, *points.view_scores.values())),
    }
    if truth is not None:
        holds["truth"] = len(truth.contingency) == len(labels) and all(
            len(row) == len(truth.classes) for row in truth.contingency
        )
    if similarities is not None:
        side = len(similarities.labels)
        holds["similarities"] = len(similarities.values) == side and all(len(r) == side for r in similarities.values)
    if summary.tuning is not None:
        holds["tuning"] = _is_complete(summary.tuning, len(summary.views))
    for part, fine in holds.items():
        if not fine:
            raise InputError(f"the summary contradicts itself in {part!r}; it was changed after it was written")


def _is_complete(tuning: Tuning, n_views: int) -> bool:
    """Whether a setting was chosen, each has something for every view, and those that ran have all numbers."""
    ran = [row for row in tuning.rows if row.criterion is not None]
    first = {
        row.n_clusters: [one.setting for one in ran if one.round == 1 and one.n_clusters == row.n_clusters]
        for row in ran
        if row.round == 1
    }
    alike = {len([setting for setting in settings if set(setting[-1]) == {1.0}]) for settings in first.values()}
    return (
        0 <= tuning.chosen < len(tuning.rows)
        and tuning.rows[tuning.chosen].criterion is not None
        and all(len(row.steps) == len(row.kappa) == n_views for row in tuning.rows)
        and all(getattr(row, measure) is not None for row in ran for measure in _MEASURES)
        and len(alike) == 1
    )


def _is_rectangular(table: tuple[tuple[float, ...], ...]) -> bool:
    return len({len(row) for row in table}) <= 1
