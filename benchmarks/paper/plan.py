"""The experiments behind the paper's tables: data sets, methods and settings, all from settings.toml."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import product
from math import e, exp, log
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.cluster import KMeans, SpectralClustering

from benchmarks.data import list_datasets, load, stored_names
from benchmarks.data.topics import make_topics
from benchmarks.sweep import Data, Experiment, Row, averaged, grid, preprocessed, standard_or_l2
from coview.compose import FixedSize
from coview.data.views import Views
from coview.datasets import digits_views, make_synth1, make_synth2, make_synth2_unpaired
from coview.kernels import RBF, Kernel, Linear, NormalizedPolynomial
from coview.methods import METHODS

SETTINGS = tomllib.loads((Path(__file__).parent / "settings.toml").read_text())
SHUFFLED, STORED, SORTED = "shuffled", "as in the file", "sorted by class"
SHUFFLE = 0  # the seed of the row order, which is the same for all methods
GENERATED = {
    "synth1_appendix": make_synth1,
    "synth2_appendix": make_synth2,
    "synth2_unpaired": make_synth2_unpaired,
    "digits": lambda seed: digits_views(),
    "topics": make_topics,
}
TIMED_KERNELS = {"rbf": RBF(e**3), "normpoly": NormalizedPolynomial(2, e)}
LIMITS: Mapping[str, int] = SETTINGS["limits"]
# The compared methods by their names in the paper's tables. KSC (best) needs labels, so it has no fixed protocol.
COMPARED = tuple(SETTINGS["methods"])


def as_published(name: str, **settings: Any) -> Any:
    """Return the method as its paper defines it, with these settings and its usual assigner.

    Experiments that compare with published numbers name the codebook themselves; for the others, TMvKSCR has the same
    assigner as KSC and MvKSC.
    """
    method = METHODS[name]
    return method.as_published(assigner="directions", **settings) if name == "tmvkscr" else method(**settings)


def data_set(name: str, size: str = "full") -> Data:
    """Return a data set with its rows shuffled with one seed; the quick run, which is only a test, uses a subset."""
    if name in GENERATED:
        views, truth = GENERATED[name](0)
    else:
        views, truth, _ = load(name)
    data = Data.of(name, views, truth).shuffled(SHUFFLE)
    return data if size == "full" else data.first(LIMITS["quick"])


def available(names: Sequence[str]) -> list[str]:
    """Return the names of those data sets that are stored or generated."""
    known = set(stored_names()) | set(GENERATED)
    return [name for name in names if name in known]


def paper_sets() -> dict[str, list[str]]:
    """Return data sets by their names in the paper: first the one compared with the published numbers, then others."""
    chosen = {title: d for title, d in SETTINGS["datasets"].items() if "name" in d}
    return {title: [d["name"], *([d["also"]] if "also" in d else [])] for title, d in chosen.items()}


def is_published(name: str) -> bool:
    """Return whether the published numbers are on this data set, and not on one made as in the appendix."""
    return any(name == names[0] for names in paper_sets().values())


def kinds_of_kernel(name: str, n_views: int) -> list[str]:
    """Return the paper's kind of kernel for each view, or RBF if the paper has none."""
    for title, dataset in SETTINGS["datasets"].items():
        if name in paper_sets().get(title, ()) or name == dataset.get("stand_in"):
            return list(dataset["kernel"])
    return ["rbf"] * n_views


def preprocessings(name: str) -> list[Any]:
    """Return the preprocessing of a data set's grid: one entry for all views, or a tuple with one per view."""
    for title, names in paper_sets().items():
        if name in names:
            steps = SETTINGS["datasets"][title].get("preprocess_views", ["none"])
            return [tuple(step) if isinstance(step, list) else step for step in steps]
    return ["none"]


def kernels(kinds: Sequence[str], size: str) -> list[list[Kernel]]:
    """Return every combination on the grid; views with the same kind of kernel share its parameters."""
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
    """Return both assigners, or one of them if there are two clusters, for which they are the same rule."""
    return ("codebook",) if data.n_clusters == 2 else ("codebook", "directions")


def size_of_grid(data: Data, size: str) -> str:
    """Return "coarse" for data sets of more than 1000 samples; settings.toml has a coarse grid for each method."""
    return "coarse" if size == "full" and data.views.n_samples > LIMITS["full_grid"] else size


def left_out(method: str, data: Data) -> bool:
    """Return whether a fit would take minutes, because of the number of samples or of columns."""
    return data.views.n_samples > LIMITS.get(method, data.views.n_samples) or is_too_wide(method, data)


def is_too_wide(method: str, data: Data) -> bool:
    """Return whether a fit would take minutes because of the number of columns."""
    widest = max(data.views.n_features.values())
    return widest > LIMITS.get(f"{method}_columns", widest)


def paper_experiments(data: Data, size: str) -> list[Experiment]:
    """Return the first stage of the oracle protocol: all methods on the paper's grids, TMvKSCR with few kappas."""
    size = size_of_grid(data, size)
    kinds = kinds_of_kernel(data.name, len(data.views))
    experiments: list[Experiment] = []
    for title in COMPARED:
        method = SETTINGS["methods"][title]
        own = _parameters(method.get(size, {}), data)
        # The papers of methods without kernels do not describe the preprocessing of views.
        for preprocess in method.get("preprocess", preprocessings(data.name)):
            experiments += list(_of_method(title, method, own, data, kinds, size, preprocess))
    return experiments


def first_stage(data: Data, size: str) -> list[Experiment]:
    """Return the experiments of TMvKSCR in the first stage."""
    return [experiment for experiment in paper_experiments(data, size) if experiment.method == "TMvKSCR"]


def _parameters(grid_of: Mapping[str, Any], data: Data) -> dict[str, Any]:
    """Return a grid of settings.toml with the estimator's parameters, without more anchors than samples."""
    own = dict(grid_of)
    if "log10_weight_exponent" in own:
        own["weight_exponent"] = [10**value for value in own.pop("log10_weight_exponent")]
    if "n_anchors" in own:
        own["n_anchors"] = [m for m in own["n_anchors"] if m < data.views.n_samples]
    if "normalize" in own:
        own["normalize"] = [None if value == "none" else value for value in own["normalize"]]
    return own


def _of_method(
    title: str, method: Mapping[str, Any], own: dict[str, Any], data: Data, kinds: list[str], size: str, preprocess: Any
) -> Iterator[Experiment]:
    estimator = as_published(method["estimator"])
    same = {"preprocess": preprocess, **_read(title, data)}
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
    """Return the settings of an experiment that select its labels."""
    name = SETTINGS["methods"][title]["estimator"]
    if name not in ("ksc", "kpca", "mvksc", "tmvkscr"):
        return {}
    # The paper reports the best of all views' labels for MvKSC; the authors' version of Synth 2 also needs them.
    return {
        "assigners": assigners(data),
        "per_view": name == "mvksc" or (data.truth.ndim == 2 and title == "TMvKSCR"),
    }


def authors_experiments(data: Data, size: str) -> list[Experiment]:
    """Return the known settings of the paper: the kernels of its authors' files, and those of each method's program."""
    kinds = kinds_of_kernel(data.name, len(data.views))
    known = [SETTINGS["datasets"][t].get("authors") for t, names in paper_sets().items() if data.name == names[0]]
    if size == "quick" or not known or known[0] is None:
        return []
    kernel = [_authors_kernel(kind, known[0]) for kind in kinds]
    experiments: list[Experiment] = []
    for title in COMPARED:
        method = SETTINGS["methods"][title]
        if "authors" not in method or left_out(method["estimator"], data):
            continue
        own, same = _parameters(method["authors"], data), _read(title, data)
        estimator = as_published(method["estimator"])
        if title == "KSC (best)":
            for view, one in zip(data.views, kernel, strict=True):
                experiments += grid(title, estimator, {"kernel": [one]}, layout=view, **same)
        elif title == "KSC (concat)":
            experiments += grid(title, estimator, {"kernel": kernel[:1]}, layout="side by side", **same)
        else:
            experiments += grid(title, estimator, own | ({"kernel": [kernel]} if method["kernel"] else {}), **same)
    return experiments


def _authors_kernel(kind: str, known: Mapping[str, float]) -> Kernel:
    return RBF(known["sigma2"]) if kind == "rbf" else NormalizedPolynomial(int(known["degree"]), known["t"])


def edge_experiments(data: Data, rows: Sequence[Row], size: str) -> list[Experiment]:
    """Return experiments for COMIC just above the threshold below which it has more clusters than the paper allows.

    The number of clusters falls from a tenth of the samples to a few within some hundredths of the threshold, which a
    fixed grid misses. The rows of the grid bracket that threshold.
    """
    method, at = SETTINGS["methods"]["COMIC"], size_of_grid(data, size)
    most = method["most_clusters_per_sample"] * data.views.n_samples
    experiments: list[Experiment] = []
    for test in method[at]["distance_test"]:
        n_clusters = _clusters_by_threshold(rows, test)
        below = max((t for t, n in n_clusters.items() if n > most), default=0.0)
        above = min((t for t, n in n_clusters.items() if n <= most and t > below), default=None)
        if above is not None and is_published(data.name):
            points = np.linspace(below, above, method["edge"][at] + 2)[1:-1].round(5)
            experiments += grid("COMIC", METHODS["comic"](distance_test=test), {"threshold": points.tolist()})
    return experiments


def _clusters_by_threshold(rows: Sequence[Row], test: str) -> dict[float, int]:
    usual = METHODS["comic"]().get_params()
    mine = [row for row in rows if row["method"] == "COMIC" and row["error"] is None]
    found = [(usual | json.loads(row["settings"]), row["n_found"]) for row in mine]
    return {settings["threshold"]: n for settings, n in found if settings["distance_test"] == test}


def order_experiments() -> list[Experiment]:
    """Return experiments for tSVD-MSC without its own shuffling, for the table of row orders."""
    return grid("tSVD-MSC", METHODS["tsvdmsc"](shuffle=False), SETTINGS["row_order"]["grid"])


def in_order(name: str, order: str) -> Data:
    """Return a data set in one of three orders: shuffled, as in the file, or sorted by class.

    The last two must not be used for a quality number, so their data sets have other names. Some data sets are limited
    to the first samples of each class.
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


def fixed_experiments(data: Data, size: str) -> list[Experiment]:
    """Return the fixed protocol: the setting of each paper, three seeds.

    Dense views are standardised, and rows of sparse views are L2-normalised.
    """
    seeds = range(3) if size == "full" else range(1)
    small = data.views.n_samples <= LIMITS["all_methods"]
    same: dict[str, Any] = {"protocol": "fixed", "preprocess": standard_or_l2(data.views)}
    experiments = []
    for title in COMPARED:
        name = SETTINGS["methods"][title]["estimator"]
        if title == "KSC (best)" or left_out(name, data):
            continue
        extra: dict[str, Any] = {}
        estimator: Any = as_published(name)
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
        experiments += [Experiment(title, estimator, seed=seed, **same, **extra) for seed in repeats]
    return experiments + _baselines(data, {"protocol": "fixed"}, seeds, small)


def _baselines(data: Data, same: Mapping[str, Any], seeds: Sequence[int], small: bool) -> list[Experiment]:
    """Return the baselines: k-means and spectral clustering on all columns side by side."""
    experiments = []
    for preprocess, words in (("standard", "standardised"), ("l2", "L2-normalised")):
        extra = {**same, "layout": "side by side", "preprocess": preprocess}
        experiments += [Experiment(f"k-means, {words}", KMeans(n_init=10), seed=seed, **extra) for seed in seeds]
        if small:
            nearest = SpectralClustering(affinity="nearest_neighbors")
            experiments.append(Experiment(f"spectral, {words}", nearest, **extra))
    return experiments


def baselines(data: Data) -> list[Experiment]:
    """Return the baselines as rows of the oracle protocol."""
    return _baselines(data, {}, (0,), data.views.n_samples <= LIMITS["all_methods"])


def wider_experiments(data: Data, size: str) -> list[Experiment]:
    """Return the oracle protocol for data sets that are not the paper's: few points around each method's defaults."""
    n, wide = data.views.n_samples, SETTINGS["wider"]
    small = n <= LIMITS["all_methods"]
    experiments: list[Experiment] = []
    for preprocess in wide["preprocess"] if size == "full" else wide["preprocess"][:1]:
        views = preprocessed(data.views, preprocess)
        by_kernel = [_scaled_rbf(views, factor) for factor in wide["sigma2_factors"]] if small else []
        for title in COMPARED:
            name = SETTINGS["methods"][title]["estimator"]
            if title == "KSC (best)" or left_out(name, data) or (small and left_out(f"{name}_oracle", data)):
                continue
            if not small and name not in SETTINGS["scalable"]["methods"]:
                continue
            own: dict[str, Any] = dict(wide["methods"].get(name, {}))
            estimator: Any = as_published(name)
            same: dict[str, Any] = {"preprocess": preprocess}
            if name == "ksc":
                joined = preprocessed(data.views, preprocess, "side by side")
                own["kernel"] = [_scaled_rbf(joined, factor)[0] for factor in wide["sigma2_factors"]]
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
            experiments += grid(title, estimator, own, **same)
    return experiments + baselines(data)


def _scaled_rbf(views: Views, factor: float) -> list[Kernel]:
    """Return RBF kernels with the default bandwidth of each view times a factor."""
    rng = np.random.default_rng(0)
    return [RBF(factor * RBF().resolve(x, rng).sigma2) for x in views.values()]


def refined_experiments(data: Data, rows: Sequence[Row], size: str) -> list[Experiment]:
    """Return the second stage for TMvKSCR: kernels, rho and kappa drawn around the best, within the paper's ranges."""
    own = [
        SETTINGS["datasets"][title] for title, names in paper_sets().items() if data.name in names and size == "full"
    ]
    search = (own[0] if own else {}).get("refine", SETTINGS["methods"]["TMvKSCR"]["refine"][size_of_grid(data, size)])
    best = ranked(first_stage(data, size), rows)[: search["parents"]]
    if not best:
        return []
    rng = np.random.default_rng(0)
    experiments = []
    for number in range(search["kernels"]):
        parent = best[number % len(best)]
        near = [_near(kernel, rng, search["step"]) for kernel in parent.estimator.kernel]
        for draw in range(search["fusions"]):
            rho = float(np.clip(parent.estimator.rho + rng.normal(0, 0.15), 0, 1))
            kappa = parent.estimator.kappa if draw % 4 == 0 else _kappa(rng, len(near))
            estimator = as_published("tmvkscr", kernel=near, rho=round(rho, 3), kappa=kappa)
            experiments.append(replace(parent, estimator=estimator))
    return experiments


def _kappa(rng: np.random.Generator, n_views: int) -> list[float]:
    """Return weights from 0 to 3, of which each is 0 with probability 1/3, but not all."""
    weights = rng.uniform(0, 3, n_views).round(2) * (rng.random(n_views) > 1 / 3)
    if not weights.any():
        weights[rng.integers(n_views)] = 1.0
    return [float(weight) for weight in weights]


def ranked(experiments: Sequence[Experiment], rows: Sequence[Row]) -> list[Experiment]:
    """Return experiments ranked by the best of their rows, alternately by ARI and by NMI."""
    by_settings = {experiment.settings: experiment for experiment in experiments}
    mine = [row for row in averaged(rows) if row["method"] == "TMvKSCR" and row["settings"] in by_settings]
    # Ties are broken by the settings, so the order of the rows does not matter.
    orders = [sorted(mine, key=lambda row: (-row[measure], row["settings"])) for measure in ("ari", "nmi")]
    found: dict[str, Experiment] = {}
    for pair in zip(*orders, strict=True):
        found |= {row["settings"]: by_settings[row["settings"]] for row in pair if row["settings"] not in found}
    return list(found.values())


def _near(kernel: Kernel, rng: np.random.Generator, step: float) -> Kernel:
    """Return a kernel with parameters drawn nearby, within the ranges of the paper's appendix."""
    if isinstance(kernel, RBF):
        assert kernel.sigma2 is not None
        return RBF(round(exp(float(np.clip(log(kernel.sigma2) + rng.normal(0, step), -7, 7))), 6))
    if isinstance(kernel, NormalizedPolynomial):
        return NormalizedPolynomial(
            kernel.degree, round(exp(float(np.clip(log(kernel.offset) + rng.normal(0, step), -5, 5))), 6)
        )
    return kernel


def curve_experiments(data: Data, rows: Sequence[Row], size: str) -> list[Experiment]:
    """Return experiments for the figures: rho at the best kernel of the first stage, and kappa on Reuters."""
    first = [experiment for experiment in first_stage(data, size) if experiment.estimator.kappa is None]
    best = ranked(first, rows)[:1]
    if not best:
        return []
    figures = SETTINGS["figures"][size_of_grid(data, size)]
    experiments = [_with_kernel_of(best[0], rho=rho, kappa=None) for rho in figures["rho"]]
    surface = SETTINGS["figures"]["kappa_surface"]
    if data.name in paper_sets().get(surface["dataset"], []):
        kappas = [[*pair, surface["kappa3"]] for pair in product(figures["kappa"], repeat=2)]
        experiments += [_with_kernel_of(best[0], rho=surface["rho"], kappa=kappa) for kappa in kappas]
    return experiments


def _with_kernel_of(experiment: Experiment, **values: Any) -> Experiment:
    estimator = as_published("tmvkscr", kernel=experiment.estimator.kernel, **values)
    return replace(experiment, estimator=estimator)


def fixed_size_experiments(data: Data, size: str) -> list[Experiment]:
    """Return experiments for the figure of ARI and NMI against m, the number of random training samples."""
    at = SETTINGS["figures"]["fixed_size"][size]
    usual = standard_or_l2(data.views)
    return [
        Experiment("TMvKSCR, m samples", FixedSize(as_published("tmvkscr"), n_train=m), "fixed", seed, preprocess=usual)
        for m in at["n_train"]
        for seed in range(at["seeds"])
    ]


def timing_experiments(data: Data, size: str) -> list[Experiment]:
    """Return one setting for each method, without shared Gram matrices; slow methods have fewer runs.

    On large data sets, scalable methods train on 1000 samples or have 1000 anchors; OP-LFMVC is included as in the
    paper's table.
    """
    n, timing = data.views.n_samples, SETTINGS["timing"]
    kernel = [TIMED_KERNELS[kind] for kind in kinds_of_kernel(data.name, len(data.views))]
    runs = 1 if size == "quick" else next(r["runs"] for r in timing["repeats"] if n <= r.get("samples", n))
    experiments = []
    for title in COMPARED:
        method = SETTINGS["methods"][title]
        name = method["estimator"]
        many = n > LIMITS["all_methods"]
        if many and (name not in (*SETTINGS["scalable"]["methods"], "oplfmvc") or is_too_wide(name, data)):
            continue
        estimator: Any = as_published(name)
        extra: dict[str, Any] = {"preprocess": preprocessings(data.name)[0], "shared": False}
        if name == "ksc":
            extra["layout"] = data.views.names[0] if title == "KSC (best)" else "side by side"
        if method["kernel"]:
            estimator.set_params(kernel=kernel[0] if name == "ksc" else kernel)
        if name in ("ksc", "mvksc", "tmvkscr"):
            estimator.set_params(assigner="codebook")
        if many and name in ("sfmc", "mvscbp"):
            estimator.set_params(**{"anchors" if name == "sfmc" else "n_anchors": 1000})
        seeds = range(1 if name in timing["slow"] else runs)
        experiments += [Experiment(title, estimator, "fixed", seed, **extra) for seed in seeds]
        if name == "tmvkscr" and n > 1000:
            some = FixedSize(estimator, n_train=1000)
            experiments += [Experiment("TMvKSCR (m=1000)", some, "fixed", seed, **extra) for seed in seeds]
    return experiments


@cache
def wider_sets() -> tuple[str, ...]:
    """Return the data sets of the wider table, by size."""
    sizes = {d.name: d.samples for d in list_datasets() if d.available}
    names = [name for name in (*stored_names(), "digits") if name in sizes]
    return tuple(sorted(names, key=lambda name: sizes[name]))
