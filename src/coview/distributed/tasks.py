"""Functions of this package as tasks, for workers that may not have the package."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from coview._version import __version__


def sent(function: Callable[..., Any], *settings: Any) -> Callable[..., Any]:
    """Return a function of a module, with its first arguments, for a worker."""
    # Nested, so that it is pickled by value. A worker without coview can load it if the settings have built-in types.
    name, parts = function.__name__, function.__module__.split(".")
    # Packages first: otherwise two threads can end with a deadlock error of the import system.
    modules = [".".join(parts[:depth]) for depth in range(1, len(parts) + 1)]
    advice = f"the workers cannot import coview; install coview=={__version__} on every worker"

    def call(*given: Any) -> Any:
        from importlib import import_module

        try:
            *_, home = map(import_module, modules)
        except ModuleNotFoundError as error:
            if str(error.name).split(".")[0] != "coview":
                raise
            raise ImportError(advice) from None
        return getattr(home, name)(*settings, *given)

    return call
