"""From the options of a model to an estimator: the method with its wrappers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from inspect import signature
from typing import TYPE_CHECKING, Annotated, Any

import coview.cli.options as options
from coview.base.progress import Progress
from coview.cli.parse import (
    parse_imputation,
    parse_integer,
    parse_kernels,
    parse_n_clusters,
    parse_n_train,
    parse_number,
    parse_preprocessing,
    parse_weights,
)
from coview.errors import InputError
from coview.registry import ASSIGNERS, METHODS, SELECTORS, check_name

if TYPE_CHECKING:
    from coview.certainty.stability import Stability
    from coview.data.views import Views


@dataclass(frozen=True)
class ModelOptions:
    """The options of a model as typed."""

    method: Annotated[str, options.METHOD] = "coview"
    n_clusters: Annotated[str | None, options.CLUSTERS] = None
    kernel: Annotated[list[str] | None, options.KERNEL] = None
    rho: Annotated[str | None, options.RHO] = None
    kappa: Annotated[list[str] | None, options.KAPPA] = None
    assigner: Annotated[str | None, options.ASSIGNER] = None
    n_train: Annotated[str | None, options.N_TRAIN] = None
    select: Annotated[str | None, options.SELECT] = None
    preprocess: Annotated[list[str] | None, options.PREPROCESS] = None
    impute: Annotated[list[str] | None, options.IMPUTE] = None
    seed: Annotated[str, options.SEED] = "0"
    stability: Annotated[str | None, options.STABILITY] = None

    def measure_stability(self) -> Callable[..., Any] | None:
        """Return the function of a model, views and progress that measures the stability; None without --stability."""
        if self.stability is None:
            return None
        n_repeats, seed = parse_integer("--stability", self.stability, 1), self._random_state

        def measure(model: Any, views: Views, progress: Progress) -> Stability:
            from coview.certainty.stability import stability

            return stability(model, views, n_repeats, progress=progress, random_state=seed)

        return measure

    def estimator(self, names: Sequence[str]) -> tuple[Any, tuple[str, ...]]:
        """Return the estimator for views of these names, and notes about it."""
        name = check_name("--method", self.method.lower(), METHODS)
        n_clusters = parse_n_clusters(self.n_clusters)
        from coview.compare import for_views, preprocessed
        from coview.preprocess.steps import parse_steps

        filled = parse_imputation(self.impute or (), names)
        if name == "coview":
            return self._with_n_train(preprocessed(self._coview(n_clusters), filled)), ()
        kind: Any = METHODS[name]
        method = kind(**self._parameters(name, kind, n_clusters, names), random_state=self._random_state)
        estimator = for_views(method, len(names))
        steps, notes = self._steps(method, names)
        steps = {view: parse_steps(f"{filled[view]}+{each}").name for view, each in steps.items()}
        if estimator is not method:
            notes.insert(0, f"{name} takes one view: the columns of all views are concatenated (Concat)")
        if self.n_train is not None and "predict" not in method.abilities:
            raise InputError(f"the method {name} cannot label new samples, which --n-train needs; leave it out")
        return self._with_n_train(preprocessed(estimator, steps)), tuple(notes)

    @property
    def _random_state(self) -> int:
        return parse_integer("--seed", self.seed, 0)

    def _coview(self, n_clusters: Any) -> Any:
        from coview.evaluate.coview import Coview

        for setting in ("kernel", "rho", "kappa", "assigner", "preprocess"):
            if getattr(self, setting) not in (None, [], ()):
                raise InputError(
                    f"--method coview (the default) has its own settings; add --method tmvkscr to use --{setting}"
                )
        return Coview("auto" if n_clusters is None else n_clusters, random_state=self._random_state)

    def _parameters(self, name: str, kind: Any, n_clusters: Any, names: Sequence[str]) -> dict[str, Any]:
        """Return the parameters of the method; options that it does not have are refused."""
        known = signature(kind).parameters
        usual = known["kernel"].default if "kernel" in known else None
        typed = {
            "n_clusters": n_clusters,
            "kernel": parse_kernels(self.kernel, names, usual) if self.kernel else None,
            "rho": None if self.rho is None else parse_number(f"--rho {self.rho}", self.rho),
            "kappa": parse_weights("--kappa", self.kappa, names) if self.kappa else None,
            "assigner": self.assigner and check_name("--assigner", self.assigner, ASSIGNERS),
        }
        given = {parameter: value for parameter, value in typed.items() if value is not None}
        for parameter in given:
            if parameter == "n_clusters" and parameter not in known:
                raise InputError(
                    f"the method {name} has no -k: it finds the number of clusters by itself; leave it out"
                )
            if parameter not in known:
                raise InputError(f"the method {name} has no --{parameter}; leave it out")
        if "n_clusters" in known and not isinstance(n_clusters, int):
            raise InputError(f"the method {name} needs one number of clusters, as in -k 6; only coview selects it")
        if isinstance(given.get("kernel"), dict) and "views" not in known and len(names) > 1:
            raise InputError(f"the method {name} takes one view; give one --kernel without the name of a view")
        return given

    def _steps(self, method: Any, names: Sequence[str]) -> tuple[dict[str, str], list[str]]:
        """Return the preprocessing of each view, and a note about views that are not standardised by default."""
        from coview.compare import usual_preprocessing
        from coview.kernels import RBF, AutoKernel, kernel_per_view

        typed = parse_preprocessing(self.preprocess or (), names)
        usual = usual_preprocessing(method, names)
        kernels = kernel_per_view(getattr(method, "kernel", RBF()), tuple(names))
        raw = [name for name, kernel in kernels.items() if not isinstance(kernel, (RBF, AutoKernel))]
        without = ", ".join(name for name in raw if typed[name] is None)
        notes = []
        if without:
            notes.append(
                f"not preprocessed, because the kernel is not rbf: {without}; --preprocess standard or l2 changes that"
            )
        return {name: steps or usual[name] for name, steps in typed.items()}, notes

    def _with_n_train(self, estimator: Any) -> Any:
        """Return the estimator, wrapped as FixedSize if --n-train is given."""
        from coview.compose import FixedSize

        if self.n_train is not None:
            selector = check_name("--select", self.select or "uniform", SELECTORS)
            n_train = parse_n_train(self.n_train)
            return FixedSize(estimator, n_train=n_train, select=selector, random_state=self._random_state)
        if self.select is not None:
            raise InputError("--select chooses the training samples; give their number with --n-train")
        return estimator
