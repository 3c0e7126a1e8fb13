"""From what was typed to a model: views, kernels, weights by view, and the method with its wrappers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from difflib import get_close_matches
from inspect import signature
from os.path import expanduser
from typing import Any

from coview.errors import InputError

# The keys of METHODS, what they do and their time for n samples of V views: help and completion must not wait for the
# library. Tests compare.
METHOD_TABLE: Mapping[str, tuple[str, str]] = {
    "tmvkscr": ("one latent space that all views share", "n²"),
    "ksc": ("kernel spectral clustering of one view", "n²"),
    "kpca": ("kernel principal components of one view", "n²"),
    "mvksc": ("coupled kernel spectral clustering of each view", "V n²"),
    "coreg": ("spectral embeddings pulled towards each other", "V n² per sweep"),
    "tsvdmsc": ("samples that represent one another, as a tensor", "V n³ per round at most"),
    "comic": ("neighbours drawn together; finds how many clusters", "n², and rounds"),
    "oplfmvc": ("late fusion of the views' own partitions", "n² once, then n"),
    "opmc": ("k-means with one set of labels for all views", "n"),
    "sfmc": ("a graph to m anchors, cut into components", "n m"),
    "mvscbp": ("spectral clustering of graphs to m anchors", "n m"),
}
METHOD_NAMES = tuple(METHOD_TABLE)
STEPS = ("none", "standard", "l2", "tfidf", "log1p", "total", "pca50")  # of steps, for completion


def chosen(option: str, value: str, known: Iterable[str]) -> str:
    """Return the value if it is among the known ones; otherwise suggest."""
    known = tuple(known)
    if value not in known:
        raise InputError(f"{option} {value!r} is unknown{suggestion(value, known)} Known: {', '.join(known)}")
    return value


def suggestion(value: str, known: Iterable[str]) -> str:
    """The end of a sentence about a name that is not known."""
    close = get_close_matches(value.lower(), list(known), n=1)
    return f"; did you mean {close[0]!r}?" if close else "."


def view_files(typed: Sequence[str]) -> dict[str, str]:
    """Read NAME=FILE; the file keeps its ::VARIABLE."""
    files: dict[str, str] = {}
    for text in typed:
        name, equals, file = text.partition("=")
        if not (equals and name.strip() and file.strip()):
            raise InputError(f"--view {text!r} must be a name and a file, as in --view text=text.csv")
        if name in files:
            raise InputError(f"--view names {name!r} twice; give every view its own name")
        files[name] = expanduser(file)  # which shells leave to us behind an equals sign
    return files


def known_views(files: Mapping[str, str], trained: Sequence[str]) -> None:
    """Compare the names of views with those of a trained model."""
    for name in files:
        if name not in trained:
            raise InputError(
                f"the model knows no view {name!r}{suggestion(name, trained)} Its views: {', '.join(trained)}"
            )
    missing = [name for name in trained if name not in files]
    if missing:
        raise InputError(f"the model needs the view {missing[0]!r} as well; add --view {missing[0]}=FILE")


def kernels(typed: Sequence[str], names: Sequence[str]) -> Any:
    """Read kernels such as `rbf:sigma2=0.5`, or for one view `text=cosine`; views without one get rbf."""
    from coview.kernels import RBF

    everywhere: Any = RBF()
    by_view: dict[str, Any] = {}
    for text in typed:
        view, equals, rest = text.partition("=")
        if equals and ":" not in view:  # an equals sign after a colon belongs to a parameter
            _require_view("--kernel", view, names)
            by_view[view] = _kernel(rest)
        else:
            everywhere = _kernel(text)
    return {name: by_view.get(name, everywhere) for name in names} if by_view else everywhere


def _kernel(text: str) -> Any:
    from coview.kernels import KERNELS

    name, _, parameters = text.partition(":")
    if name not in KERNELS:
        listed = ", ".join(
            f"{n} ({', '.join(_parameters(kind))})" if _parameters(kind) else n for n, kind in KERNELS.items()
        )
        raise InputError(f"--kernel {name!r} is unknown{suggestion(name, KERNELS)} Known, with parameters: {listed}")
    kind: Any = KERNELS[name]
    known = _parameters(kind)
    values: dict[str, Any] = {}
    for pair in filter(None, parameters.split(",")):
        key, equals, number = pair.partition("=")
        if not equals or key not in known:
            has = f"its parameters are {', '.join(known)}" if known else "it has no parameters"
            raise InputError(f"--kernel {text!r}: {name} has no parameter {key!r}{suggestion(key, known)[:-1]}; {has}")
        values[key] = number if isinstance(known[key], str) else _number(f"--kernel {text!r}: {key}", number)
        if key == "degree" and values[key].is_integer():
            values[key] = int(values[key])
    return kind(**values)


def _parameters(kind: Any) -> dict[str, Any]:
    """The parameters of a kernel, with what they are unless given."""
    return {field.name: field.default for field in fields(kind)}


def weights(option: str, typed: Sequence[str], names: Sequence[str]) -> Any:
    """Read weights such as `text=2`, or one number for all views; views without one get 1."""
    everywhere, by_view = 1.0, {}
    for text in (part for given in typed for part in given.split(",")):
        view, equals, number = text.rpartition("=")
        if equals:
            _require_view(option, view, names)
            by_view[view] = _number(f"{option} {view}", number)
        else:
            everywhere = _number(option, number)
    return {name: by_view.get(name, everywhere) for name in names} if by_view else everywhere


def preprocessing(typed: Sequence[str], names: Sequence[str]) -> dict[str, str | None]:
    """Read steps such as `standard`, or for one view `text=tfidf+l2`; None for views without one."""
    from coview.preprocess.steps import parse_steps

    everywhere, by_view = None, {}
    for text in typed:
        view, equals, name = text.rpartition("=")
        known = parse_steps(name, "--preprocess").name
        if equals:
            _require_view("--preprocess", view, names)
            by_view[view] = known
        else:
            everywhere = known
    return {name: by_view.get(name, everywhere) for name in names}


def cluster_numbers(text: str | None) -> Any:
    """Read a number of clusters, numbers to choose from such as 4..8, or auto."""
    if text is None or text == "auto":
        return text
    first, dots, last = text.partition("..")
    numbers = [int(part) for part in ([first, last] if dots else [first]) if part.isdecimal()]
    if len(numbers) != (2 if dots else 1) or numbers[0] < 2 or numbers[-1] < numbers[0]:
        raise InputError(f"-k {text!r} must be a number of at least 2, numbers to choose from such as 2..8, or auto")
    return range(numbers[0], numbers[1] + 1) if dots else numbers[0]


def n_train(text: str) -> Any:
    """Read a number of samples, a share of them, or auto."""
    if text == "auto":
        return text
    value = _number("--n-train", text)
    return int(value) if value.is_integer() and "." not in text else value


def _require_view(option: str, view: str, names: Sequence[str]) -> None:
    if view not in names:
        raise InputError(f"{option} names the view {view!r}{suggestion(view, names)} Views: {', '.join(names)}")


def _number(what: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(f"{what} must be a number, and {text!r} is none") from None


@dataclass(frozen=True)
class Settings:
    """The model as it was typed; None is what was not."""

    method: str = "tmvkscr"
    n_clusters: Any = None  # a number, a range of them, "auto"
    kernel: tuple[str, ...] = ()
    rho: float | None = None
    kappa: tuple[str, ...] = ()
    assigner: str | None = None
    n_train: str | None = None
    select: str | None = None
    preprocess: tuple[str, ...] = ()
    seed: int = 0

    def estimator(self, names: Sequence[str]) -> tuple[Any, tuple[str, ...]]:
        """Return the estimator for views of these names, and what to tell about it."""
        from coview.compare import for_views, preprocessed
        from coview.methods import METHODS

        if self._are_to_be_chosen():
            return Search(self.n_clusters, "small", self.n_train, self.select, self.seed).estimator(names)
        kind: Any = METHODS[chosen("--method", self.method, METHODS)]
        method = kind(**self._parameters(kind, names), random_state=self.seed)
        estimator, notes = for_views(method, len(names)), []
        if estimator is not method:
            notes.append(f"{self.method} knows one view: the columns of all views are put side by side (Concat)")
        steps, note = self._steps(method, names)
        notes += [note] if note else []
        if self.n_train is not None and not hasattr(method, "predict"):
            raise InputError(f"the method {self.method} cannot label new samples, which --n-train needs; leave it out")
        estimator = _of_some_samples(preprocessed(estimator, steps), self.n_train, self.select, self.seed)
        return estimator, tuple(notes)

    def _are_to_be_chosen(self) -> bool:
        """Whether everything is left to the data but the number of clusters, and perhaps that."""
        settings = (self.kernel, self.kappa, self.preprocess, self.rho, self.assigner)
        return self.method == "tmvkscr" and self.n_clusters is not None and all(s in ((), None) for s in settings)

    def _parameters(self, kind: Any, names: Sequence[str]) -> dict[str, Any]:
        """The parameters of the method; those that it does not have are refused."""
        from coview.registry import ASSIGNERS

        given: dict[str, tuple[str, Any]] = {}
        if self.n_clusters is not None:
            given["n_clusters"] = ("-k", self.n_clusters)
        if self.kernel:
            given["kernel"] = ("--kernel", kernels(self.kernel, names))
        if self.rho is not None:
            given["rho"] = ("--rho", self.rho)
        if self.kappa:
            given["kappa"] = ("--kappa", weights("--kappa", self.kappa, names))
        if self.assigner is not None:
            given["assigner"] = ("--assigner", chosen("--assigner", self.assigner, ASSIGNERS))
        known = signature(kind).parameters
        for parameter, (option, _) in given.items():
            if parameter not in known:
                why = ": it finds the number of clusters by itself" if parameter == "n_clusters" else ""
                raise InputError(f"the method {self.method} has no {option}{why}; leave it out")
        if "n_clusters" in known and self.n_clusters is None:
            raise InputError("say how many clusters to find with -k, as in -k 6 or -k auto")
        if not isinstance(self.n_clusters, int | None):
            raise InputError(
                "-k chooses from several numbers only where all settings are chosen from the data; give one number, "
                "or leave out --method, --kernel, --rho, --kappa, --assigner and --preprocess"
            )
        if isinstance(given.get("kernel", ("", None))[1], dict) and "views" not in known and len(names) > 1:
            raise InputError(f"{self.method} sees one table and takes one --kernel for all views, not one for each")
        return {parameter: value for parameter, (_, value) in given.items()}

    def _steps(self, method: Any, names: Sequence[str]) -> tuple[dict[str, str], str | None]:
        """How to prepare each view; standardised columns are centred, which inner products do not bear."""
        from coview.kernels import RBF

        typed = preprocessing(self.preprocess, names)
        kernel = getattr(method, "kernel", RBF())
        used = list(kernel.values()) if isinstance(kernel, dict) else [kernel]
        usual = "standard" if all(isinstance(k, RBF) for k in used) else "none"
        left = [name for name, steps in typed.items() if steps is None]
        note = (
            f"not preprocessed, because a kernel other than rbf was chosen: {', '.join(left)}; "
            "--preprocess standard or l2 does"
            if left and usual == "none"
            else None
        )
        return {name: steps or usual for name, steps in typed.items()}, note


@dataclass(frozen=True)
class Search:
    """A model whose settings are chosen from the data, as it was typed."""

    n_clusters: Any = "auto"
    budget: str = "full"
    n_train: str | None = None
    select: str | None = None
    seed: int = 0

    def estimator(self, names: Sequence[str]) -> tuple[Any, tuple[str, ...]]:
        """Return the estimator for views of these names, and what to tell about it."""
        from coview.tune import Tuned
        from coview.tune.search import BUDGETS

        tuned = Tuned(self.n_clusters, budget=chosen("--budget", self.budget, BUDGETS), random_state=self.seed)
        return _of_some_samples(tuned, self.n_train, self.select, self.seed), ()


def _of_some_samples(estimator: Any, count: str | None, select: str | None, seed: int) -> Any:
    """The estimator, or FixedSize around it."""
    from coview.compose import FixedSize
    from coview.registry import SELECTORS

    if count is not None:
        selector = chosen("--select", select or "uniform", SELECTORS)
        return FixedSize(estimator, n_train=n_train(count), select=selector, random_state=seed)
    if select is not None:
        raise InputError("--select chooses the samples to train on; say how many with --n-train")
    return estimator
