"""Messages of the library in the words of the command: options instead of Python arguments."""

from __future__ import annotations

import re
from ast import literal_eval
from shlex import quote

_FIXED = {
    "ids=False": "--no-ids",
    "ids=…": "--ids COLUMN",
    "transpose=…": "--transpose VIEW",
    "empty_cells=…": "--impute median",
    "drop=… of read_views": "--drop COLUMN",
    "drop=…": "--drop COLUMN",
    ", or set dtype='float32'": "",  # not an option
}
_OPTIONS = {
    "ids": "--ids",
    "align": "--align",
    "categories": "--categories",
    "decimal": "--decimal",
    "transpose": "--transpose",
    "drop": "--drop",
    "n_clusters": "-k",
    "rho": "--rho",
    "kappa": "--kappa",
    "kernel": "--kernel",
    "assigner": "--assigner",
    "n_train": "--n-train",
    "select": "--select",
    "random_state": "--seed",
}
_ARGUMENT = re.compile(rf"\b({'|'.join(_OPTIONS)})=(\[)?('[^']*'|\"[^\"]*\"|[\w.…-]+)(?(2)\])(?=[\s,;:.)]|$)")
# Options that a command does not have, and what to do instead.
INSTEAD = {
    ("report", "--force"): "coview report replaces the report without it; leave it out",
}
_FIXED_SIZE = re.compile(r"FixedSize\((\w+)\(…\), n_train=(\w+)\)")


def in_options(message: str) -> str:
    """Return a message with the options of the command in place of Python arguments."""
    message = _FIXED_SIZE.sub(lambda found: f"--method {found[1].lower()} --n-train {found[2]}", message)
    for argument, option in _FIXED.items():
        message = message.replace(argument, option)
    return _ARGUMENT.sub(_as_option, message)


def _as_option(argument: re.Match[str]) -> str:
    name, _, value = argument.groups()
    quoted = value[0] in ("'", '"')
    return f"{_OPTIONS[name]} {quote(literal_eval(value)) if quoted else value}"
