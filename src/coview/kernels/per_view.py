"""One kernel for each view, from kernels or their names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from coview.errors import InputError
from coview.kernels.base import Kernel
from coview.registry import KERNELS, as_instance
from coview.views import Views

KernelParameter: TypeAlias = Kernel | str | Sequence[Kernel | str] | Mapping[str, Kernel | str]


def kernel_per_view(kernel: Any, names: tuple[str, ...]) -> dict[str, Kernel]:
    """Return the kernel of every view, from one kernel or name for all, a list of these, or a mapping by view name."""
    if isinstance(kernel, Mapping):
        kernels = by_view_name("kernel", kernel, names)
    elif isinstance(kernel, (list, tuple)):
        if len(kernel) != len(names):
            raise InputError(
                f"kernel lists {len(kernel)} kernels for {len(names)} views ({', '.join(names)}); give one for each"
            )
        kernels = dict(zip(names, kernel, strict=True))
    else:
        kernels = dict.fromkeys(names, kernel)
    return {name: as_instance("kernel", each, Kernel, KERNELS, "RBF(0.5)") for name, each in kernels.items()}


def kernel_for(kernel: Kernel, views: Views, name: str) -> Kernel:
    """Return the kernel for one of the views; the columns of an encoded view are not standardised again."""
    return kernel.on_common_scale() if name in views.encoded else kernel


def by_view_name(parameter: str, values: Mapping[Any, Any], names: tuple[str, ...]) -> dict[str, Any]:
    """Return the values of a parameter that is given by view name, in the order of the views."""
    given = {str(name): value for name, value in values.items()}
    if set(given) != set(names):
        raise InputError(
            f"{parameter} names the views {', '.join(given)}, but the views are {', '.join(names)}; name each view once"
        )
    return {name: given[name] for name in names}
