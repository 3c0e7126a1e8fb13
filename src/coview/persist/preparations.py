"""How views are prepared, in a saved model: the name of the preparation, and the arrays that its steps have learnt."""

from __future__ import annotations

from collections.abc import Mapping

from coview.errors import InputError
from coview.persist.kinds import (
    AnyOf,
    Json,
    Kind,
    MisfitError,
    Number,
    Numbers,
    Record,
    Sizes,
    Tensors,
    Text,
    fields_of,
    part,
    require,
)
from coview.preprocess.steps import (
    FittedPreprocessing,
    L2Normalize,
    Log1p,
    NormalizeTotal,
    Preprocessing,
    PrincipalComponents,
    Standardize,
    Step,
    TfIdf,
    parse_steps,
    step_spec,
)

_POSITIVE = Numbers(("features",), least=0.0, zero=False)
_LEARNT: Mapping[type[Step], Mapping[str, Kind]] = {
    Standardize: {"means": Numbers(("features",)), "spreads": _POSITIVE},
    L2Normalize: {},
    TfIdf: {"weights": _POSITIVE},
    Log1p: {},
    NormalizeTotal: {"total": Number(least=0.0, zero=False)},
    PrincipalComponents: {"centre": Numbers(("features",)), "directions": Numbers(("directions", "features"))},
}
_STEP = AnyOf(tuple(Record(cls, learnt) for cls, learnt in _LEARNT.items()))


class LearntSteps(Kind):
    """A learnt preprocessing: each step has the columns that the one before gives."""

    def write(self, value: FittedPreprocessing, tensors: Tensors, sizes: Sizes) -> Json:
        require(type(value) is FittedPreprocessing, f"is a {type(value).__name__}, not a preparation")
        nodes, width = [], sizes.known("features") or 0
        for step in value.steps:
            nodes.append(_STEP.write(step, tensors, _sizes(width)))
            width = step.width(width)
        _check(value)
        return {"name": value.preprocessing.name, "steps": nodes}

    def read(self, node: Json, tensors: Tensors, sizes: Sizes) -> FittedPreprocessing:
        given = fields_of(node, ["name", "steps"])
        require(isinstance(given["steps"], list), "has no list of steps")
        steps, width = [], sizes.known("features") or 0
        for inner in given["steps"]:
            steps.append(_STEP.read(inner, tensors, _sizes(width)))
            width = steps[-1].width(width)
        with part("name"):
            value = FittedPreprocessing(_read_name(Text().read(given["name"], tensors, sizes)), tuple(steps))
        _check(value)
        return value


def _sizes(width: int) -> Sizes:
    """Sizes for one step, which shares none with others: those before and after it may have other columns."""
    return Sizes({"view": width}).of_view("view")


def _read_name(name: str) -> Preprocessing:
    try:
        return parse_steps(name)
    except InputError as error:
        raise MisfitError(f"is no preprocessing: {error}") from None


def _check(value: FittedPreprocessing) -> None:
    expected = [step_spec(name).kind for name in value.preprocessing.steps]
    require([type(step) for step in value.steps] == expected, "has not the steps that its name says")
