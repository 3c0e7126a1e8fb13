"""What is run for the paper's tables: which data, which methods, which settings; all from settings.toml."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import product
from math import e, exp, log
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.cluster import KMeans, SpectralClustering

from benchmarks.data import list_datasets, load, stored_names
from benchmarks.sweep import Data, Row, Trial, averaged, grid, prepared
from coview.compose import FixedSize
from coview.datasets import digits_views, make_synth1, make_synth2, make_synth2_unpaired
from coview.kernels import RBF, Kernel, Linear, NormalizedPolynomial
from coview.methods import METHODS
from coview.views import Views

SETTINGS = tomllib.loads((Path(__file__).parent / "settings.toml").read_text())
SHUFFLED, STORED, SORTED = "shuffled", "as in the file", "sorted by class"
SHUFFLE = 0  # the seed of the one order in which rows are, for all methods
MADE = {
    "synth1_appendix": make_synth1,
    "synth2_appendix": make_synth2,
    "synth2_unpaired": make_synth2_unpaired,
    "digits": lambda seed: digits_views(),
}
TIMED_KERNELS = {"rbf": RBF(e**3), "normpoly": NormalizedPolynomial(2, e)}
LIMITS: Mapping[str, int] = SETTINGS["limits"]
# The compared methods by the names of the paper's tables. KSC (best) has no fixed protocol: best needs the labels.
COMPARED = tuple(SETTINGS["methods"])


def data_set(name: str, size: str = "full") -> Data:
    """Return a data set with its rows in one shuffled order; the quick run, which is no result, takes some of them."""
    if name in MADE:
        views, truth = MADE[name](0)
    else:
        views, truth, _ = load(name)
    data = Data.of(name, views, truth).shuffled(SHUFFLE)
    return data if size == "full" else data.first(LIMITS["quick"])


def available(names: Sequence[str]) -> list[str]:
    here = set(stored_names()) | set(MADE)
    return [name for name in names if name in here]


def paper_sets() -> dict[str, list[str]]:
    """By the paper's names, our data sets: first the one that answers the published numbers, then any other."""
    chosen = {title: d for title, d in SETTINGS["datasets"].items() if "name" in d}
    return {title: [d["name"], *([d["also"]] if "also" in d else [])] for title, d in chosen.items()}


def answers_published(name: str) -> bool:
    """Whether a data set is one behind the published numbers, and not one made as the appendix says."""
    return any(name == names[0] for names in paper_sets().values())


def kinds_of_kernel(name: str, n_views: int) -> list[str]:
    """The paper's kind of kernel for each view; RBF where it has none."""
    for title, names in paper_sets().items():
        if name in names:
            return list(SETTINGS["datasets"][title]["kernel"])
    return ["rbf"] * n_views


def scales(name: str) -> list[Any]:
    for title, names in paper_sets().items():
        if name in names:
            return [
                tuple(s) if isinstance(s, list) else s for s in SETTINGS["datasets"][title].get("scale_views", ["none"])
            ]
    return ["none"]


def kernels(kinds: Sequence[str], size: str) -> list[list[Kernel]]:
    """Every combination on the grid; views of one kind share their parameters."""
    choices: dict[str, list[Kernel]] = {}
    for kind in dict.fromkeys(kinds):
        at = SETTINGS["kernels"][kind].get(size, {})
        if kind == "rbf":
            choices[kind] = [RBF(exp(s)) for s in at["log_sigma2"]]
        elif kind == "normpoly":
            choices[kind] = [NormalizedPolynomial(d, exp(t)) for d, t in product(at["degree"], at["log_t"])]
        else:
            choices[kind] = [Linear()]
    return [[dict(zip(choices, some, strict=True))[kind] for kind in kinds] for some in product(*choices.values())]


def assigners(data: Data) -> tuple[str, ...]:
    """Both rules; with two clusters they are one and the same."""
    return ("codebook",) if data.n_clusters == 2 else ("codebook", "directions")


def size_of_grid(data: Data, size: str) -> str:
    """Sets of more than 1000 samples are searched more coarsely, which settings.toml says for each method."""
    return "coarse" if size == "full" and data.views.n_samples > LIMITS["full_grid"] else size


def left_out(method: str, data: Data) -> bool:
    """Whether a method would take minutes: for so many samples, or so many columns."""
    too_many = data.views.n_samples > LIMITS.get(method, data.views.n_samples)
    widest = max(data.views.n_features.values())
    return too_many or widest > LIMITS.get(f"{method}_columns", widest)


def paper_trials(data: Data, size: str) -> list[Trial]:
    """The first stage of the oracle protocol: all compared methods on the paper's grids, TMvKSCR with a few kappas."""
    size = size_of_grid(data, size)
    kinds = kinds_of_kernel(data.name, len(data.views))
    trials: list[Trial] = []
    for title in COMPARED:
        method = SETTINGS["methods"][title]
        own = _parameters(method.get(size, {}), data)
        # Papers of methods without kernels do not say how views were scaled.
        for scale in method.get("scales", scales(data.name)):
            trials += list(_of_method(title, method, own, data, kinds, size, scale))
    return trials


def _parameters(grid_of: Mapping[str, Any], data: Data) -> dict[str, Any]:
    """A grid of settings.toml as the estimator has it; numbers of anchors beyond that of the samples are left out."""
    own = dict(grid_of)
    if "log10_weight_exponent" in own:
        own["weight_exponent"] = [10**value for value in own.pop("log10_weight_exponent")]
    if "n_anchors" in own:
        own["n_anchors"] = [m for m in own["n_anchors"] if m < data.views.n_samples]
    if "normalize" in own:
        own["normalize"] = [None if value == "none" else value for value in own["normalize"]]
    return own


def _of_method(
    title: str, method: Mapping[str, Any], own: dict[str, Any], data: Data, kinds: list[str], size: str, scale: Any
) -> Iterator[Trial]:
    estimator = METHODS[method["estimator"]]()
    same = {"scale": scale, **_read(title, data)}
    if not method["kernel"]:
        yield from grid(title, estimator, own, **same)
    elif title == "KSC (best)":
        for view, kind in zip(data.views, kinds, strict=True):
            of_view = [kernel for [kernel] in kernels([kind], size)]
            yield from grid(title, estimator, {"kernel": of_view}, layout=view, **same)
    elif title == "KSC (concat)":
        every = [kernel for kind in dict.fromkeys(kinds) for [kernel] in kernels([kind], size)]
        yield from grid(title, estimator, {"kernel": every}, layout="side by side", **same)
    else:
        thin = kernels(kinds, size)[:: method.get(size, {}).get("every_kernel", 1)]
        own = {name: values for name, values in own.items() if name != "every_kernel"}
        yield from grid(title, estimator, {"kernel": thin, **own}, **same)
        if title == "TMvKSCR" and size != "quick":
            alone = [[float(view == one) for view in data.views] for one in data.views]
            yield from grid(title, estimator, {"kernel": thin, "rho": [1.0], "kappa": alone}, **same)


def _read(title: str, data: Data) -> dict[str, Any]:
    """How labels are read from a fit."""
    name = SETTINGS["methods"][title]["estimator"]
    if name not in ("ksc", "kpca", "mvksc", "tmvkscr"):
        return {}
    # The paper takes the best of all views' labels for MvKSC; Synth 2 as the authors have it needs them as well.
    return {
        "assigners": assigners(data),
        "per_view": name == "mvksc" or (data.truth.ndim == 2 and title == "TMvKSCR"),
    }


def authors_trials(data: Data, size: str) -> list[Trial]:
    """What is known of the paper's own settings: the kernels of its authors' files, and each method's own program."""
    kinds = kinds_of_kernel(data.name, len(data.views))
    known = [SETTINGS["datasets"][t].get("authors") for t, names in paper_sets().items() if data.name == names[0]]
    if size == "quick" or not known or known[0] is None:
        return []
    kernel = [_authors_kernel(kind, known[0]) for kind in kinds]
    trials: list[Trial] = []
    for title in COMPARED:
        method = SETTINGS["methods"][title]
        if "authors" not in method or left_out(method["estimator"], data):
            continue
        own, same = _parameters(method["authors"], data), _read(title, data)
        estimator = METHODS[method["estimator"]]()
        if title == "KSC (best)":
            for view, one in zip(data.views, kernel, strict=True):
                trials += grid(title, estimator, {"kernel": [one]}, layout=view, **same)
        elif title == "KSC (concat)":
            trials += grid(title, estimator, {"kernel": kernel[:1]}, layout="side by side", **same)
        else:
            trials += grid(title, estimator, own | ({"kernel": [kernel]} if method["kernel"] else {}), **same)
    return trials


def _authors_kernel(kind: str, known: Mapping[str, float]) -> Kernel:
    return RBF(known["sigma2"]) if kind == "rbf" else NormalizedPolynomial(int(known["degree"]), known["t"])


def edge_trials(data: Data, rows: Sequence[Row], size: str) -> list[Trial]:
    """COMIC just above the threshold below which it has more clusters than the paper allows.

    The number of clusters falls from a tenth of the samples to a few within some hundredths of the threshold, and no
    grid that is laid out beforehand meets that. Rows tell between which two thresholds it is.
    """
    method, at = SETTINGS["methods"]["COMIC"], size_of_grid(data, size)
    most = method["most_clusters_per_sample"] * data.views.n_samples
    trials: list[Trial] = []
    for test in method[at]["distance_test"]:
        n_clusters = _clusters_by_threshold(rows, test)
        below = max((t for t, n in n_clusters.items() if n > most), default=0.0)
        above = min((t for t, n in n_clusters.items() if n <= most and t > below), default=None)
        if above is not None and answers_published(data.name):
            points = np.linspace(below, above, method["edge"][at] + 2)[1:-1].round(5)
            trials += grid("COMIC", METHODS["comic"](distance_test=test), {"threshold": points.tolist()})
    return trials


def _clusters_by_threshold(rows: Sequence[Row], test: str) -> dict[float, int]:
    usual = METHODS["comic"]().get_params()
    mine = [row for row in rows if row["method"] == "COMIC" and row["error"] is None]
    tried = [(usual | json.loads(row["settings"]), row["n_found"]) for row in mine]
    return {settings["threshold"]: n for settings, n in tried if settings["distance_test"] == test}


def order_trials() -> list[Trial]:
    """TSVD-MSC on samples in the order that they have, for the table of `in_order`."""
    return grid("tSVD-MSC", METHODS["tsvdmsc"](shuffle=False), SETTINGS["row_order"]["grid"])


def in_order(name: str, order: str) -> Data:
    """Return a data set in one of three orders: shuffled, as in the file, or sorted by class.

    The last two must never be used for a quality number; what comes of them has a name of its own. Of some sets there
    are only the first samples of each class.
    """
    views, truth, _ = load(name)
    most = SETTINGS["row_order"]["datasets"][name] or len(truth)
    rows = np.sort(np.concatenate([np.flatnonzero(truth == c)[:most] for c in np.unique(truth)]))
    if order == SHUFFLED:
        rows = np.random.default_rng(SHUFFLE).permutation(rows)
    elif order == SORTED:
        rows = rows[np.argsort(truth[rows], kind="stable")]
    return Data.of(ordered_name(name, order), views.take(rows), truth[rows])


def ordered_name(name: str, order: str) -> str:
    return f"{name}, {order}"


def fixed_trials(data: Data, size: str) -> list[Trial]:
    """The fixed protocol: defaults, dense views standardised, rows of sparse views of length 1, three seeds."""
    seeds = range(3) if size == "full" else range(1)
    small = data.views.n_samples <= LIMITS["all_methods"]
    usual = tuple("l2" if sp.issparse(x) else "standard" for x in data.views.values())
    same: dict[str, Any] = {"protocol": "fixed", "scale": usual}
    trials = []
    for title in COMPARED:
        name = SETTINGS["methods"][title]["estimator"]
        if title == "KSC (best)" or left_out(name, data):
            continue
        extra: dict[str, Any] = {}
        estimator: Any = METHODS[name]()
        if name in ("ksc", "mvksc", "tmvkscr"):
            extra["assigners"] = assigners(data)
            extra["per_view"] = data.truth.ndim == 2 and name != "ksc"
        if title == "KSC (concat)":
            extra["layout"] = "side by side"
        if not small and name not in SETTINGS["scalable"]["methods"]:
            continue
        if not small and name in ("tmvkscr", "sfmc"):
            extra.pop("per_view", None)
            extra["assigners"] = ()
            estimator = FixedSize(estimator, n_train=1000) if name == "tmvkscr" else estimator.set_params(anchors=400)
        repeats = seeds if name not in SETTINGS["scalable"]["one_seed"] else (0,)
        trials += [Trial(title, estimator, seed=seed, **same, **extra) for seed in repeats]
    return trials + _baselines(data, {"protocol": "fixed"}, seeds, small)


def _baselines(data: Data, same: Mapping[str, Any], seeds: Sequence[int], small: bool) -> list[Trial]:
    """What a user would try first, on all columns side by side."""
    trials = []
    for scale, words in (("standard", "standardised"), ("l2", "rows of length 1")):
        extra = {**same, "layout": "side by side", "scale": scale}
        trials += [Trial(f"k-means, {words}", KMeans(n_init=10), seed=seed, **extra) for seed in seeds]
        if small:
            nearest = SpectralClustering(affinity="nearest_neighbors")
            trials.append(Trial(f"spectral, {words}", nearest, **extra))
    return trials


def baselines(data: Data) -> list[Trial]:
    """The baselines once more, as rows of the oracle protocol."""
    return _baselines(data, {}, (0,), data.views.n_samples <= LIMITS["all_methods"])


def wider_trials(data: Data, size: str) -> list[Trial]:
    """The oracle protocol for sets that are not the paper's: few points, around each method's own defaults."""
    n, wide = data.views.n_samples, SETTINGS["wider"]
    small = n <= LIMITS["all_methods"]
    trials: list[Trial] = []
    for scale in wide["scales"] if size == "full" else wide["scales"][:1]:
        by_kernel = [_median_kernels(data, scale, factor) for factor in wide["sigma2_factors"]] if small else []
        for title in COMPARED:
            name = SETTINGS["methods"][title]["estimator"]
            if title == "KSC (best)" or left_out(name, data) or (small and left_out(f"{name}_oracle", data)):
                continue
            if not small and name not in SETTINGS["scalable"]["methods"]:
                continue
            own: dict[str, Any] = dict(wide["methods"].get(name, {}))
            estimator: Any = METHODS[name]()
            same: dict[str, Any] = {"scale": scale}
            if name == "ksc":
                joined = prepared(data.views, scale, "side by side")
                own["kernel"] = [_median(joined, factor)[0] for factor in wide["sigma2_factors"]]
                same |= {"layout": "side by side", "assigners": assigners(data)}
            elif name in ("tmvkscr", "mvksc", "coreg", "oplfmvc") and small:
                own["kernel"] = by_kernel
                if name in ("tmvkscr", "mvksc"):
                    same["assigners"] = assigners(data)
            elif name == "tmvkscr":
                estimator = FixedSize(estimator)
                own = {"n_train": [400, 1000], "estimator__rho": own["rho"]}
            elif name == "sfmc" and not small:
                own = {"anchors": [400]}
            trials += grid(title, estimator, own, **same)
    return trials + baselines(data)


def _median(views: Views, factor: float) -> list[Kernel]:
    """Kernels with so many times the bandwidth of the default rule."""
    rng = np.random.default_rng(0)
    return [RBF(factor * RBF().resolve(x, rng).sigma2) for x in views.values()]


def _median_kernels(data: Data, scale: str, factor: float) -> list[Kernel]:
    return _median(prepared(data.views, scale), factor)


def refined_trials(data: Data, rows: Sequence[Row], size: str) -> list[Trial]:
    """The second stage for TMvKSCR: kernels, rho and kappa drawn around the best, within the paper's ranges."""
    own = [
        SETTINGS["datasets"][title] for title, names in paper_sets().items() if data.name in names and size == "full"
    ]
    search = (own[0] if own else {}).get("refine", SETTINGS["methods"]["TMvKSCR"]["refine"][size_of_grid(data, size)])
    first = [trial for trial in paper_trials(data, size) if trial.method == "TMvKSCR"]
    best = ranked(first, rows)[: search["parents"]]
    if not best:
        return []
    rng = np.random.default_rng(0)
    trials = []
    for number in range(search["kernels"]):
        parent = best[number % len(best)]
        near = [_near(kernel, rng, search["step"]) for kernel in parent.estimator.kernel]
        for draw in range(search["fusions"]):
            rho = float(np.clip(parent.estimator.rho + rng.normal(0, 0.15), 0, 1))
            kappa = parent.estimator.kappa if draw % 4 == 0 else _kappa(rng, len(near))
            estimator = METHODS["tmvkscr"](kernel=near, rho=round(rho, 3), kappa=kappa)
            trials.append(
                Trial("TMvKSCR", estimator, scale=parent.scale, assigners=parent.assigners, per_view=parent.per_view)
            )
    return trials


def _kappa(rng: np.random.Generator, n_views: int) -> list[float]:
    """Weights anywhere from 0 to 3, a third of them 0, but not all."""
    weights = rng.uniform(0, 3, n_views).round(2) * (rng.random(n_views) > 1 / 3)
    if not weights.any():
        weights[rng.integers(n_views)] = 1.0
    return [float(weight) for weight in weights]


def ranked(trials: Sequence[Trial], rows: Sequence[Row]) -> list[Trial]:
    """Trials by the best of their rows; ARI and NMI take turns."""
    by_settings = {trial.settings: trial for trial in trials}
    mine = [row for row in averaged(rows) if row["method"] == "TMvKSCR" and row["settings"] in by_settings]
    # Equals are decided by their settings, whatever the order of the rows.
    orders = [sorted(mine, key=lambda row: (-row[measure], row["settings"])) for measure in ("ari", "nmi")]
    found: dict[str, Trial] = {}
    for pair in zip(*orders, strict=True):
        found |= {row["settings"]: by_settings[row["settings"]] for row in pair if row["settings"] not in found}
    return list(found.values())


def _near(kernel: Kernel, rng: np.random.Generator, step: float) -> Kernel:
    """A kernel nearby, within the ranges of the paper's appendix."""
    if isinstance(kernel, RBF):
        assert kernel.sigma2 is not None
        return RBF(round(exp(float(np.clip(log(kernel.sigma2) + rng.normal(0, step), -7, 7))), 6))
    if isinstance(kernel, NormalizedPolynomial):
        return NormalizedPolynomial(
            kernel.degree, round(exp(float(np.clip(log(kernel.offset) + rng.normal(0, step), -5, 5))), 6)
        )
    return kernel


def curve_trials(data: Data, rows: Sequence[Row], size: str) -> list[Trial]:
    """For the figures: rho at the kernel of the first stage that was best with kappa 1, and kappa on Reuters."""
    first = [trial for trial in paper_trials(data, size) if trial.method == "TMvKSCR"]
    best = ranked([trial for trial in first if trial.estimator.kappa is None], rows)[:1]
    if not best:
        return []
    trials = [_again(best[0], rho=rho, kappa=None) for rho in SETTINGS["figures"][size_of_grid(data, size)]["rho"]]
    surface = SETTINGS["figures"]["kappa_surface"]
    if data.name in paper_sets().get(surface["dataset"], []):
        pairs = product(SETTINGS["figures"][size_of_grid(data, size)]["kappa"], repeat=2)
        trials += [_again(best[0], rho=surface["rho"], kappa=[*pair, surface["kappa3"]]) for pair in pairs]
    return trials


def _again(trial: Trial, **values: Any) -> Trial:
    estimator = METHODS["tmvkscr"](kernel=trial.estimator.kernel, **values)
    return Trial("TMvKSCR", estimator, scale=trial.scale, assigners=trial.assigners, per_view=trial.per_view)


def fixed_size_trials(data: Data, size: str) -> list[Trial]:
    """For the figure of ARI and NMI against m: training samples drawn at random."""
    at = SETTINGS["figures"]["fixed_size"][size]
    usual = tuple("l2" if sp.issparse(x) else "standard" for x in data.views.values())
    return [
        Trial("TMvKSCR, m samples", FixedSize(METHODS["tmvkscr"](), n_train=m), "fixed", seed, scale=usual)
        for m in at["n_train"]
        for seed in range(at["seeds"])
    ]


def timing_trials(data: Data, size: str) -> list[Trial]:
    """One setting for each method, with Gram matrices of its own; as many runs as take a bearable time.

    Of many samples, methods that scale train on 1000, or have 1000 anchors; OP-LFMVC is there as in the paper's table.
    """
    n, timing = data.views.n_samples, SETTINGS["timing"]
    kernel = [TIMED_KERNELS[kind] for kind in kinds_of_kernel(data.name, len(data.views))]
    runs = 1 if size == "quick" else next(r["runs"] for r in timing["repeats"] if n <= r.get("samples", n))
    trials = []
    for title in COMPARED:
        method = SETTINGS["methods"][title]
        name = method["estimator"]
        many = n > LIMITS["all_methods"]
        if many and name not in (*SETTINGS["scalable"]["methods"], "oplfmvc"):
            continue
        estimator: Any = METHODS[name]()
        extra: dict[str, Any] = {"scale": scales(data.name)[0], "shared": False}
        if name == "ksc":
            extra["layout"] = data.views.names[0] if title == "KSC (best)" else "side by side"
        if method["kernel"]:
            estimator.set_params(kernel=kernel[0] if name == "ksc" else kernel)
        if name in ("ksc", "mvksc", "tmvkscr"):
            estimator.set_params(assigner="codebook")
        if many and name in ("sfmc", "mvscbp"):
            estimator.set_params(**{"anchors" if name == "sfmc" else "n_anchors": 1000})
        seeds = range(1 if name in timing["slow"] else runs)
        trials += [Trial(title, estimator, "fixed", seed, **extra) for seed in seeds]
        if name == "tmvkscr" and n > 1000:
            some = FixedSize(estimator, n_train=1000)
            trials += [Trial("TMvKSCR (m=1000)", some, "fixed", seed, **extra) for seed in seeds]
    return trials


@cache
def stored_and_made() -> tuple[str, ...]:
    """All sets of the wider table that coview knows of: small ones first."""
    sizes = {d.name: d.samples for d in list_datasets() if d.available}
    names = [name for name in (*stored_names(), "digits") if name in sizes]
    return tuple(sorted(names, key=lambda name: sizes[name]))
