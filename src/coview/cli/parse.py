"""Values of options as typed: views, kernels, weights, preprocessing steps and numbers."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from os.path import exists, expanduser
from typing import Any

from coview.errors import InputError
from coview.registry import IMPUTATIONS, KERNELS, check_name, suggestion


def parse_views(typed: Sequence[str]) -> dict[str, str]:
    """Return the file of each view from NAME=FILE; the file keeps its ::VARIABLE."""
    files: dict[str, str] = {}
    for text in typed:
        name, equals, file = (part.strip() for part in text.partition("="))
        if not (equals and name and file):
            raise InputError(f"--view {text}: expected a name and a file, as in --view text=text.csv")
        several = re.split(r",\s*(?=[^,=/]+=)", file)
        if len(several) > 1 and not exists(file.partition("::")[0]):
            raise InputError(
                f"--view {text}: expected one view; repeat --view, as in --view {name}={several[0]} --view {several[1]}"
            )
        if not _is_text(name):
            raise InputError(
                f"--view {name}=…: the name has letters that this locale cannot represent; set LC_ALL=C.UTF-8, or use "
                "ASCII letters"
            )
        if name in files:
            raise InputError(f"--view names {name!r} twice; give every view its own name")
        files[name] = expanduser(file)  # the shell does not expand a tilde after an equals sign
    return files


def _is_text(typed: str) -> bool:
    """Return whether all bytes of an argument are letters of the locale; Python keeps others as surrogates."""
    return not any("\ud800" <= letter <= "\udfff" for letter in typed)


def match_views(files: Mapping[str, str], trained: Sequence[str], *, may_lack: bool) -> None:
    """Refuse names of views that differ from those of a trained model; some may be left out if it allows that."""
    for name in files:
        if name not in trained:
            raise InputError(f"the model has no view {name!r}{suggestion(name, trained)} Views: {', '.join(trained)}")
    missing = [name for name in trained if name not in files]
    if missing and not may_lack:
        raise InputError(f"the model needs the view {missing[0]!r} as well; add --view {missing[0]}=FILE")


def parse_kernels(typed: Sequence[str], names: Sequence[str], default: Any) -> Any:
    """Return one kernel or one per view, from `rbf:sigma2=0.5` or `text=cosine`; views without one get the default."""
    return _per_view("--kernel", typed, names, _parse_kernel, default)


def parse_weights(option: str, typed: Sequence[str], names: Sequence[str]) -> Any:
    """Return one weight or one per view, from `2` or `text=2,image=1`; views without one get 1."""
    parts = [part for given in typed for part in given.split(",")]
    return _per_view(option, parts, names, parse_number, 1.0)


def parse_preprocessing(typed: Sequence[str], names: Sequence[str]) -> dict[str, str | None]:
    """Return the preprocessing of each view, from `l2` or `text=tfidf+l2`; None for views without one."""
    from coview.preprocess.steps import parse_steps

    found = _per_view("--preprocess", typed, names, lambda _, text: parse_steps(text, "--preprocess").name, None)
    return found if isinstance(found, dict) else dict.fromkeys(names, found)


def parse_imputation(typed: Sequence[str], names: Sequence[str]) -> dict[str, str]:
    """Return how empty cells of each view are filled, from `median` or `lab=nearest`; "none" for views without it."""

    def one(name: str, text: str) -> str:
        return check_name("--impute", text, IMPUTATIONS)

    found = _per_view("--impute", typed, names, one, "none")
    return found if isinstance(found, dict) else dict.fromkeys(names, found)


def parse_columns(typed: Sequence[str], names: Sequence[str]) -> dict[str, list[str]]:
    """Return the columns of views that are read, from `lab=age,weight`; a name with a comma is quoted as in CSV."""
    found = _per_view("--columns", typed, names, lambda _, text: next(csv.reader([text], skipinitialspace=True)), None)
    by_view = found if isinstance(found, dict) else dict.fromkeys(names, found)
    return {view: columns for view, columns in by_view.items() if columns is not None}


def parse_n_clusters(text: str | None) -> Any:
    """Return a number of clusters, a range such as 4..8, or "auto"."""
    if text is None or text == "auto":
        return text
    first, dots, last = text.partition("..")
    numbers = [int(part) for part in ([first, last] if dots else [first]) if part.isdecimal()]
    if len(numbers) != (2 if dots else 1) or numbers[0] < 2 or numbers[-1] < numbers[0]:
        raise InputError(f"-k {text}: expected an integer of at least 2, a range such as 2..8, or auto")
    return range(numbers[0], numbers[1] + 1) if dots else numbers[0]


def parse_n_train(text: str) -> Any:
    """Return a number of samples, a fraction of them, or "auto"."""
    if text == "auto":
        return text
    value = parse_number(f"--n-train {text}", text)
    return int(value) if value.is_integer() and "." not in text else value


def _per_view(
    option: str, typed: Sequence[str], names: Sequence[str], parse: Callable[[str, str], Any], default: Any
) -> Any:
    """Return the value for all views, or a dictionary with one per view if any was typed as VIEW=VALUE.

    `parse` gets the option as typed, for messages, and the value.
    """
    by_view = {}
    for_all: list[str] = []
    for text in typed:
        view, equals, value = text.partition("=")
        if equals and (":" not in view or view in names):  # in rbf:sigma2=1, the equals sign belongs to a parameter
            if view not in names:
                raise InputError(f"{option} names the view {view!r}{suggestion(view, names)} Views: {', '.join(names)}")
            if view in by_view:
                raise InputError(f"{option} is given twice for the view {view!r}; leave out one of them")
            by_view[view] = parse(f"{option} {text}", value)
        else:
            for_all.append(text)
            default = parse(f"{option} {text}", text)
    if len(for_all) > 1:
        each = " ".join(f"{option} {view}={text}" for view, text in zip(names, for_all, strict=False))
        raise InputError(
            f"{option} {' and '.join(for_all)}: expected one value for all views, or one per view, as in {each}"
        )
    return {name: by_view.get(name, default) for name in names} if by_view else default


def _parse_kernel(typed: str, text: str) -> Any:
    name, _, parameters = text.partition(":")
    defaults = {known: {field.name: field.default for field in fields(kind)} for known, kind in KERNELS.items()}
    if name not in defaults:
        listed = ", ".join(f"{known} ({', '.join(keys)})" if keys else known for known, keys in defaults.items())
        raise InputError(f"--kernel {name!r} is unknown{suggestion(name, KERNELS)} Known, with parameters: {listed}")
    values: dict[str, Any] = {}
    for pair in filter(None, parameters.split(",")):
        key, equals, value = pair.partition("=")
        if not equals or key not in defaults[name]:
            has = f"Its parameters: {', '.join(defaults[name])}" if defaults[name] else "It has no parameters"
            raise InputError(f"{typed}: {name} has no parameter {key!r}{suggestion(key, defaults[name])} {has}")
        default = defaults[name][key]
        if isinstance(default, str):
            values[key] = value
        elif isinstance(default, int) and value.isdecimal():
            values[key] = int(value)
        else:
            values[key] = parse_number(typed, value)
    return KERNELS[name](**values)


def parse_integer(option: str, text: str, least: int) -> int:
    """Return an integer of at least `least`."""
    if not text.isdecimal() or int(text) < least:
        raise InputError(f"{option} {text}: expected an integer of at least {least}")
    return int(text)


def parse_number(typed: str, text: str) -> float:
    """Return a number; `typed` is the option as typed, for the message."""
    try:
        return float(text)
    except ValueError:
        raise InputError(f"{typed}: expected a number, got {text!r}") from None
