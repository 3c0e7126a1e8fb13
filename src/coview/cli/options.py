"""Options, alone or in groups: a parameter of a command can be a dataclass whose annotated fields are options."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, get_origin, get_type_hints

import typer

from coview.registry import IMPUTATIONS, SELECTORS, STEPS, Registry

DATA, MODEL, OUTPUT = "Data", "Model", "Output"
STEP_NAMES = ("none", *("pca50" if name == "pca" else name for name in STEPS))


def option(
    panel: str, usage: str, help: str, values: Iterable[str] | Callable[[], Iterable[str]] = (), **others: Any
) -> Any:
    """Return a typer option; --help lists its values unless `usage` has a placeholder, as in "--output -o FOLDER"."""

    def complete(incomplete: str) -> list[str]:
        return [name for name in (values() if callable(values) else values) if name.startswith(incomplete)]

    names = [word for word in usage.split() if word.startswith("-")]
    metavar = " ".join(word for word in usage.split() if word not in names)
    if not metavar and not callable(values):
        metavar = "|".join(values)
    completion = complete if values else None
    return typer.Option(
        *names, help=help, metavar=metavar or None, autocompletion=completion, rich_help_panel=panel, **others
    )


def written_path(text: str | Path) -> Path:
    """Return the path of results; an empty one, as from an unset variable of the shell, would be the current folder."""
    if not str(text).strip():
        raise typer.BadParameter("the name is empty; name a folder, or '.' for the current one")
    return Path(text)


def summaries(registry: Registry) -> str:
    """Return all names with their summaries, for help texts."""
    return ", ".join(f"{name} ({entry.summary})" for name, entry in registry.entries.items())


def expand_groups(command: Callable[..., None]) -> Callable[..., None]:
    """Return the command with the fields of its option groups as parameters, for typer to read."""
    hints = get_type_hints(command, include_extras=True)
    groups = {name: _option_fields(kind) for name, kind in hints.items() if is_dataclass(kind)}
    parameters = []
    for name, parameter in signature(command).parameters.items():
        parameters += groups.get(name, [parameter.replace(kind=Parameter.KEYWORD_ONLY, annotation=hints[name])])

    @wraps(command)
    def call(**typed: Any) -> None:
        for name, group in groups.items():
            typed[name] = hints[name](**{option.name: typed.pop(option.name) for option in group})
        command(**typed)

    call.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return call


def _option_fields(group: Any) -> list[Parameter]:
    """Return a parameter for each annotated field."""
    hints = get_type_hints(group, include_extras=True)
    return [
        parameter.replace(kind=Parameter.KEYWORD_ONLY, annotation=hints[name])
        for name, parameter in signature(group).parameters.items()
        if get_origin(hints[name]) is Annotated
    ]


Preprocess = Annotated[
    list[str] | None,
    option(
        MODEL,
        "--preprocess [VIEW=]STEPS",
        "Preprocessing of all views, or of one view if its name comes first: none, "
        f"{summaries(STEPS).replace('pca (', 'pcaN (')}; + joins steps. The default is standard, but none for views "
        "with another kernel than rbf. For example --preprocess text=tfidf+l2 --preprocess image=standard",
        STEP_NAMES,
    ),
]
Seed = Annotated[
    str,
    option(
        MODEL,
        "--seed INTEGER",
        "Seed of the random numbers. The same seed gives the same result. For example --seed 7",
    ),
]
Clusters = Annotated[
    str | None,
    option(
        MODEL,
        "-k --n-clusters COUNT|FROM..TO|auto",
        "The number of clusters. By default, coview selects it; of a range, it takes the number nearest to that. "
        "comic finds it by itself. "
        "For example -k 6, -k 4..8 or -k auto",
        ("auto",),
    ),
]
Impute = Annotated[
    list[str] | None,
    option(
        MODEL,
        "--impute [VIEW=]STEP",
        "How empty cells of all views, or of one view, are filled: median, the median of the column, or nearest, the "
        "mean of the nearest samples. They are refused by default. For example --impute lab=median",
        IMPUTATIONS,
    ),
]
NTrain = Annotated[
    str | None,
    option(
        MODEL,
        "--n-train COUNT|FRACTION|auto",
        "Train on some of the samples and label all; for more than about 20,000 samples. "
        "For example --n-train 2000, --n-train 0.1 or --n-train auto",
    ),
]
Select = Annotated[
    str | None,
    option(
        MODEL,
        "--select",
        f"How the training samples of --n-train are selected: {summaries(SELECTORS)}. For example --select kmeans",
        SELECTORS,
    ),
]
StabilityRepeats = Annotated[
    str | None,
    option(
        MODEL,
        "--stability COUNT",
        "Fit the same settings on halves of the samples, so many times, and report how stable each cluster and sample "
        "is. For example --stability 20",
    ),
]
RunPath = Annotated[
    Path,
    option(OUTPUT, "--output -o FOLDER", "Folder for the results. For example -o run", parser=written_path),
]
Force = Annotated[bool, option(OUTPUT, "--force", "Replace the results of an earlier run in the folder.")]
