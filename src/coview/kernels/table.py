"""Kernels by name, and one for each view."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from coview.errors import InputError
from coview.kernels.base import Kernel
from coview.registry import KERNELS


def kernel_per_view(kernel: Any, names: tuple[str, ...]) -> dict[str, Kernel]:
    """Give every view its kernel: one for all, a list in the order of the views, or a mapping by view name."""
    if isinstance(kernel, Mapping):
        return {name: _as_kernel(value) for name, value in by_view_name("kernel", kernel, names).items()}
    if isinstance(kernel, (list, tuple)):
        if len(kernel) != len(names):
            raise InputError(f"kernel lists {len(kernel)} kernels for {len(names)} views ({', '.join(names)})")
        return dict(zip(names, map(_as_kernel, kernel), strict=True))
    return dict.fromkeys(names, _as_kernel(kernel))


def by_view_name(parameter: str, values: Mapping[Any, Any], names: tuple[str, ...]) -> dict[str, Any]:
    """Return a parameter given by view name in the order of the views."""
    given = {str(name): value for name, value in values.items()}
    if set(given) != set(names):
        raise InputError(f"{parameter} names the views {', '.join(given)}, but the views are {', '.join(names)}")
    return {name: given[name] for name in names}


def _as_kernel(kernel: Any) -> Kernel:
    if isinstance(kernel, Kernel):
        return kernel
    if isinstance(kernel, str) and kernel in KERNELS:
        found: Kernel = KERNELS[kernel]()
        return found
    raise InputError(f"kernel={kernel!r} is not a kernel; use one of {', '.join(KERNELS)}, or a value such as RBF(0.5)")
