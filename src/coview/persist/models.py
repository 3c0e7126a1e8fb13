"""What every model is made of: its parameters, and what it has learnt, attribute by attribute.

This is the whole list. A file can name nothing else, and an attribute that is not here is not saved silently: saving
says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp

from coview.compose import Concat, FixedSize, PerView, Preprocessed
from coview.core.assign import Centres, CodeWords, Deferred
from coview.core.score import ScoreMap
from coview.errors import InputError
from coview.kernels import (
    RBF,
    GaussianProducts,
    NeighborGraph,
    NeighborSimilarity,
    NormalizedPolynomial,
    Polynomial,
    Precomputed,
    PrecomputedSimilarity,
    Products,
)
from coview.methods.anchors import AnchorPoints
from coview.methods.kpca import KPCA
from coview.methods.ksc import KSC
from coview.methods.mvksc import MvKSC
from coview.methods.mvscbp import MVSCBP
from coview.methods.opmc import OPMC
from coview.methods.opmc_rows import ColumnScaling, RowScaling
from coview.methods.tmvkscr import TMvKSCR
from coview.persist.kinds import (
    INTEGERS,
    AnyOf,
    ByView,
    InViewOrder,
    Json,
    Kind,
    Maybe,
    MisfitError,
    NameArray,
    Names,
    Number,
    Numbers,
    OneOf,
    OrNone,
    Record,
    Sizes,
    Table,
    Tensors,
    Text,
    Whole,
    fields_of,
    part,
    require,
)
from coview.persist.preparations import LearntSteps
from coview.persist.settings import (
    ASSIGNERS,
    ESTIMATORS,
    KERNELS,
    SETTING,
    read_parameters,
    write_parameters,
)
from coview.persist.tried import TriedTable
from coview.preprocess.steps import preprocessing_per_view
from coview.tune import Tuned

_POSITIVE = Number(least=0.0, zero=False)
_WEIGHT = Number(least=0.0)
_FLOAT_TYPES = {"float32": np.float32, "float64": np.float64}
_MOST_THREADS = 10_000


@dataclass(frozen=True)
class Value(Kind):
    """A kernel or an assigner, which is nothing but its settings."""

    classes: tuple[type, ...]

    def write(self, value: Any, tensors: Tensors, sizes: Sizes) -> Json:
        return SETTING.write(self._checked(value), tensors)

    def read(self, node: Json, tensors: Tensors, sizes: Sizes) -> Any:
        return self._checked(SETTING.read(node, tensors))

    def _checked(self, value: Any) -> Any:
        require(type(value) in self.classes, f"is none of {', '.join(cls.__name__ for cls in self.classes)}")
        if isinstance(value, RBF):
            require(value.sigma2 is not None, "has no bandwidth")
        if isinstance(value, Polynomial):  # beyond, its powers leave the range of floats whatever the rows
            require(value.degree < 2**31 and value.offset < 1e150, "has too large a degree or offset")
        return value


_KERNEL = Value(KERNELS)
_LABELS = Numbers(("train",), INTEGERS, least=0, below="train")


def _extra_columns(similarity: Any, sizes: Sizes) -> None:
    """The factor has the columns of the view, and those that the kernel adds."""
    kernel = similarity.kernel
    extra = 2 if isinstance(kernel, RBF) else int(isinstance(kernel, NormalizedPolynomial) and kernel.offset > 0)
    sizes.agree("features", similarity.factor.shape[1] - extra)


def _keeps_no_gram(similarity: PrecomputedSimilarity, sizes: Sizes) -> None:
    """The Gram matrix itself is not stored."""
    require(similarity.gram is None, "keeps a Gram matrix")


def _is_graph(similarity: NeighborSimilarity, sizes: Sizes) -> None:
    """Similarities of neighbours are sparse, and between 0 and 1."""
    require(sp.issparse(similarity.gram), "has a graph that is not sparse")
    require(similarity.gram.data.min(initial=1) >= 0, "has negative similarities")
    require(similarity.gram.data.max(initial=0) <= 1, "has similarities above 1")


_SIMILARITY = AnyOf(
    (
        Record(
            GaussianProducts,
            {
                "kernel": Value((RBF,)),
                "factor": Table("train", "factor"),
                "centre": OrNone(Numbers(("features",))),
                "far": Numbers(("far",), INTEGERS, least=0, below="train", increasing=True),
                "far_rows": Table("far", "features"),
                "noise": _WEIGHT,
            },
            _extra_columns,
        ),
        Record(
            Products,
            {
                "kernel": Value(tuple(cls for cls in KERNELS if cls not in (RBF, NeighborGraph, Precomputed))),
                "factor": Table("train", "factor"),
                "centre": OneOf({"none": None}),
            },
            _extra_columns,
        ),
        Record(
            NeighborSimilarity,
            {
                "kernel": Value((NeighborGraph,)),
                "rows": Table("train", "features"),
                "exponent": Whole(least=-1100, most=1100),
                "bandwidths": Numbers(("train",), least=0.0, zero=False),
                "radii": Numbers(("train",), least=0.0),
                "gram": Table("train", "train"),
            },
            _is_graph,
        ),
        Record(PrecomputedSimilarity, {"gram": OneOf({"none": None}), "dtype": OneOf(_FLOAT_TYPES)}, _keeps_no_gram),
    )
)

_SCORE_MAP = Record(
    ScoreMap,
    {
        "similarity": _SIMILARITY,
        "coefficients": Numbers(("train", "components")),
        "bias": Numbers(("components",)),
        "largest": _WEIGHT,
        "tolerance": Numbers(("components",), least=0.0),
    },
)


def _assignment(found: str) -> AnyOf:
    centres = Numbers((found, "components"))
    return AnyOf(
        (
            Record(Centres, {"centres": centres, "decimals": Whole(most=15)}),
            Record(CodeWords, {"words": centres, "centres": centres, "decimals": Whole(most=15)}),
        )
    )


VIEW_COLUMNS = ByView(OrNone(Names("features")))

# Every model knows the views it was fitted on.
_VIEWS: Mapping[str, Kind] = {
    "view_names_": Names("views"),
    "view_n_features_": ByView(Whole(least=1)),
    "_view_columns": VIEW_COLUMNS,
    "_fingerprint": Text(),
    "n_features_in_": Whole(least=1),
    "feature_names_in_": Maybe(NameArray("stacked columns")),
    "_sklearn_output_config": Maybe(SETTING),
}

_KERNEL_METHOD: Mapping[str, Kind] = {
    "labels_": _LABELS,
    "eigenvalues_": Numbers(("components",), infinite=True),  # of views with huge numbers
    "scores_": Numbers(("train", "components")),
    "kernels_": ByView(_KERNEL),
    "_beta": ByView(_WEIGHT),
    "_n_features_out": Whole(least=1),
    "_score_maps": ByView(_SCORE_MAP),
    "_assignment": _assignment("clusters"),
    "_view_assigner": Record(
        Deferred,
        {
            "assigner": Value(ASSIGNERS),
            "n_clusters": Whole(least=1),
            "decimals": Whole(most=15),
            "seed": Whole(),
        },
    ),
    "_view_assignments": ByView(_assignment("clusters of the view"), some=True),
    "_view_scores": ByView(Numbers(("train", "components")), some=True),
}
_SHARED_LATENT: Mapping[str, Kind] = {
    **_KERNEL_METHOD,
    "latent_": Numbers(("train", "components")),
    "explained_variance_ratio_": Numbers(("components",)),
}

_LOOP: Mapping[str, Kind] = {
    "labels_": _LABELS,
    "objective_": Numbers(("rounds",)),
    "n_iter_": Whole(least=1),
    "view_weights_": ByView(_WEIGHT),
}

_SPREAD = Numbers(("features",), least=0.0, zero=False, infinite=True)
_SCALING = AnyOf(
    (
        Record(ColumnScaling, {"centre": Numbers(("features",)), "spread": _SPREAD}),
        Record(RowScaling, {}),
    )
)


def _anchors_near_zero(anchors: AnchorPoints, sizes: Sizes) -> None:
    """Distances are computed from points in their own unit, so sums of squares cannot leave the range of floats."""
    moved = anchors._points.data if sp.issparse(anchors._points) else anchors._points
    require(np.abs(moved).max(initial=0.0) <= 8, "has points that are not in its unit")
    require(anchors._lengths.max() <= 64 * anchors._points.shape[1], "has lengths that are not those of its points")


_ANCHORS = Record(
    AnchorPoints,
    {
        "name": Text(),
        "points": Table("anchors", "features"),
        "unit": _POSITIVE,
        "_origin": OrNone(Numbers(("features",))),
        "_points": Table("anchors", "features"),
        "_lengths": Numbers(("anchors",), least=0.0),
    },
    _anchors_near_zero,
)


class Model(Kind):
    """A fitted estimator: its class, its parameters, and what it has learnt."""

    def write(self, value: Any, tensors: Tensors, sizes: Sizes | None = None) -> Json:
        name = type(value).__name__
        require(type(value) in ESTIMATORS.values(), f"is a {name}, and only {', '.join(ESTIMATORS)} can be saved")
        parameters = write_parameters(value, tensors)
        learnt = {key: item for key, item in vars(value).items() if key not in value.get_params(deep=False)}
        kinds, node = _LEARNT[type(value)], {}
        extra = ", ".join(key for key in learnt if key not in kinds)
        require(not extra, f"has the attribute {extra}, which {name} did not learn; delete it first")
        fields_of(learnt, [key for key, kind in kinds.items() if not isinstance(kind, Maybe)], list(kinds))
        sizes = Sizes(read_views(learnt))
        for key, item in learnt.items():
            with part(key):
                node[key] = kinds[key].write(item, tensors, sizes)
        _check(value)
        return {"class": name, "parameters": parameters, "learnt": node}

    def read(self, node: Json, tensors: Tensors, sizes: Sizes | None = None) -> Any:
        given = fields_of(node, ["class", "parameters", "learnt"])
        with part("parameters"):
            model = read_parameters(given["class"], given["parameters"], tensors)
        kinds = _LEARNT[type(model)]
        required = [key for key, kind in kinds.items() if not isinstance(kind, Maybe)]
        learnt = fields_of(given["learnt"], required, list(kinds))
        sizes = Sizes(read_views(learnt))
        for key, item in learnt.items():
            with part(key):
                vars(model)[key] = kinds[key].read(item, tensors, sizes)
        _check(model)
        return model


MODEL = Model()

_WRAPPER: Mapping[str, Kind] = {"estimator_": MODEL, "labels_": _LABELS}

_LEARNT: Mapping[type, Mapping[str, Kind]] = {
    cls: {**_VIEWS, **learnt}
    for cls, learnt in {
        TMvKSCR: {**_SHARED_LATENT, "_kappa": ByView(_WEIGHT)},
        KSC: _SHARED_LATENT,
        KPCA: _SHARED_LATENT,
        MvKSC: {**_KERNEL_METHOD, "latent_": ByView(Numbers(("train", "components"))), "_gamma": ByView(_WEIGHT)},
        OPMC: {
            **_LOOP,
            "_scalings": ByView(_SCALING),
            "_weights": Numbers(("views",), least=0.0),
            "_centroids": InViewOrder(Numbers(("clusters", "features"))),
            "centroids_": ByView(Numbers(("clusters", "features"))),
        },
        MVSCBP: {
            **_LOOP,
            "embedding_": Numbers(("train", "dimensions")),
            "anchor_labels_": Numbers(("anchors",), INTEGERS, least=0, below="anchors"),
            "_anchors": InViewOrder(_ANCHORS),
            "anchors_": ByView(Table("anchors", "features")),
            "_spreads": InViewOrder(_POSITIVE),
            "_n_links": Whole(least=1),
            "_n_votes": Whole(least=1),
        },
        Preprocessed: {
            **_WRAPPER,
            "preprocessing_": ByView(LearntSteps()),
        },
        Tuned: {
            **_WRAPPER,
            "n_clusters_": Whole(least=1),
            "reason_": Text(),
            "evaluations_": TriedTable(),
            "selected_": Whole(),
        },
        FixedSize: {
            "estimator_": MODEL,
            "labels_": Maybe(Numbers(("samples",), INTEGERS, least=0, below="samples")),
            "train_rows_": Numbers(("train",), INTEGERS, least=0, increasing=True),
            "agreements_": Numbers(("repeats",)),
        },
        Concat: _WRAPPER,
        PerView: {
            "estimators_": ByView(MODEL),
            "view_labels_": ByView(_LABELS),
            "merits_": ByView(_WEIGHT),
            "best_view_": Text(),
            "labels_": _LABELS,
        },
    }.items()
}


def read_views(learnt: Mapping[str, Json]) -> dict[str, int]:
    """The widths of the views, which all else is compared with."""
    widths = learnt.get("view_n_features_")
    if not isinstance(widths, dict) or not widths:
        raise MisfitError("has no views")
    return {name: Whole(least=1).read(width, Tensors(), Sizes({})) for name, width in widths.items()}


def _check(model: Any) -> None:
    """Compare the parts of a model with each other, and look at the parameters that predict reads."""
    accepted = {**_READ_BY_PREDICT, **_NOT_READ_BY_PREDICT.get(type(model), {})}
    for name, value in model.get_params(deep=False).items():
        with part(name):
            require(accepted.get(name, _anything)(value), f"is {value!r}, which a trained model cannot have")
    require(hasattr(model, "predict"), "holds an estimator that cannot predict")
    require(model.view_names_ == tuple(model.view_n_features_), "names other views than it has widths for")
    names = vars(model).get("feature_names_in_")
    require(names is None or len(names) == model.n_features_in_, "has not one name for each column")
    output = vars(model).get("_sklearn_output_config", {"transform": None})
    require(output in [{"transform": form} for form in _OUTPUT_FORMS], "has an output that is not known")
    _RELATIONS.get(type(model), _anything)(model)


def _anything(value: Any) -> bool:
    return True


def _is_layout(views: Any) -> bool:
    """Whether `as_views` can make something of it, if only a message."""
    if not isinstance(views, (dict, list, tuple)):
        return views is None or isinstance(views, np.ndarray)
    columns = views.values() if isinstance(views, dict) else views
    return all(
        isinstance(chosen, (slice, range, str, Integral, np.ndarray))
        or (isinstance(chosen, (list, tuple)) and all(np.isscalar(column) for column in chosen))
        for chosen in columns
    )


_OUTPUT_FORMS = (None, "default", "pandas", "polars")
_READ_BY_PREDICT: Mapping[str, Callable[[Any], bool]] = {
    "n_clusters": lambda value: isinstance(value, Integral) and 1 <= int(value) < 2**53,
    "batch_size": lambda value: value == "auto" or (isinstance(value, Integral) and 1 <= int(value) < 2**53),
    "n_jobs": lambda value: value is None or (isinstance(value, Integral) and abs(int(value)) <= _MOST_THREADS),
    "views": _is_layout,
}
# What was to choose from; what was chosen is in the model inside.
_NOT_READ_BY_PREDICT: Mapping[type, Mapping[str, Callable[[Any], bool]]] = {Tuned: {"n_clusters": _anything}}


def _check_kernel_method(model: Any) -> None:
    require(model._n_features_out == len(model.eigenvalues_), "has another number of components than eigenvalues")
    for name, score_map in model._score_maps.items():
        if isinstance(score_map.similarity, PrecomputedSimilarity):  # scores of training rows cannot be computed again
            require(name in model._view_scores, f"lacks the scores of view {name!r}")
            width = model.view_n_features_[name]
            require(score_map.n_training == width, f"has {width} columns in view {name!r}, not one per training row")
        else:
            require(model.kernels_[name] == score_map.similarity.kernel, f"has two kernels for view {name!r}")


def _check_loop(model: Any) -> None:
    require(model.n_iter_ == len(model.objective_), "has another number of rounds than objectives")


def _check_anchors(model: Any) -> None:
    _check_loop(model)
    require([anchors.name for anchors in model._anchors] == list(model.view_names_), "has anchors of other views")
    require(model._n_votes <= len(model.anchor_labels_), "has more votes than anchors")


def _check_inner(model: Any) -> None:
    require(model.estimator_.view_n_features_ == model.view_n_features_, "has an estimator for other views")


def _check_scaled(model: Any) -> None:
    learnt = model.preprocessing_
    widths = {name: learnt[name].width(width) for name, width in model.view_n_features_.items()}
    require(model.estimator_.view_n_features_ == widths, "has an estimator for other views")
    try:
        chosen = preprocessing_per_view(model.steps, model.view_names_)
    except InputError:
        raise MisfitError("is prepared in an unknown way") from None
    fits = all(learnt[name].preprocessing == chosen[name] for name in chosen)
    require(fits, "has not learnt the steps that go with steps")


def _check_tuned(model: Any) -> None:
    _check_inner(model)
    require(isinstance(model.estimator_, Preprocessed), "has chosen something else than prepared views")
    inner = getattr(model.estimator_.estimator_, "n_clusters", None)
    require(inner == model.n_clusters_, "has chosen another number of clusters")
    require(model.selected_ < max(1, len(model.evaluations_)), "has selected a setting that was not evaluated")


def _check_fixed_size(model: Any) -> None:
    _check_inner(model)
    trained = vars(model.estimator_).get("labels_", model.train_rows_)
    require(len(trained) == len(model.train_rows_), "has an estimator trained on other rows")


def _check_concat(model: Any) -> None:
    width = sum(model.view_n_features_.values())
    require(model.estimator_.n_features_in_ == width, "has an estimator for another table")


def _check_per_view(model: Any) -> None:
    require(model.best_view_ in model.view_names_, "has a best view that is none of its views")
    for name, estimator in model.estimators_.items():
        expected = {name: model.view_n_features_[name]}
        require(estimator.view_n_features_ == expected, f"has an estimator for another view than {name!r}")


_RELATIONS: Mapping[type, Callable[[Any], object]] = {
    TMvKSCR: _check_kernel_method,
    KSC: _check_kernel_method,
    KPCA: _check_kernel_method,
    MvKSC: _check_kernel_method,
    OPMC: _check_loop,
    MVSCBP: _check_anchors,
    Preprocessed: _check_scaled,
    Tuned: _check_tuned,
    FixedSize: _check_fixed_size,
    Concat: _check_concat,
    PerView: _check_per_view,
}
