"""FixedSize: a model that is trained on a subset of the samples and labels all of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, Self

import numpy as np
from sklearn.base import clone

from coview.compose.wrapper import Wrapper, setting
from coview.core.agreement import mean_agreements
from coview.core.assign import Labels, number_by_size
from coview.core.select import Rows, RowSource, Selector, Stratified, as_selector, draw_rows
from coview.errors import InputError, InputTypeError, kind_of
from coview.methods.base import Seed
from coview.methods.coverage import least_samples
from coview.parameters import check_integer, is_integer, is_number
from coview.preprocess.encode import Encoding, encoded
from coview.state import OPTIONAL, FloatArray, IntegerArray, Sizes, require
from coview.views import Array, Layout, Views

_MORE_ROWS = 10_000
_MOST_TIMES = 10  # as many rows as these; beyond, labelling these again costs less than copying the others
_ONE_ROW_PER_TRAINING_SAMPLE = ("scores_", "latent_", "view_labels_", "embedding_")


class FixedSize(Wrapper):
    """Train on a subset of the samples, and label all samples by the method's own rule for new samples.

    A kernel method learns its latent space from the training samples. If these are fewer than 10,000, it learns its
    clusters from the scores of up to 10,000 samples: scores cost little, and the clusters then depend less on the
    selection. A fit costs what the method costs for n_train samples, plus time and memory linear in the number of
    samples, which are labelled in blocks. Views may be memory-mapped files: they are never read into memory as a whole.

    Parameters
    ----------
    estimator : clusterer with predict
        The method to train, such as TMvKSCR(6).
    n_train : int, float or "auto"
        Number of training samples, or their fraction of all samples. "auto" is 2000, or 50 per cluster if that is more.
    select : selector or name
        Rule that selects the training samples: "uniform" (at random), "entropy" (large quadratic Rényi entropy),
        "kmeans" (nearest to k-means centres), or a value such as Stratified(days). See `coview.core.select`.
    n_repeats : int
        Number of selections. The model is kept whose labels agree best with those of the other selections, on at most
        10,000 samples.
    views : list or mapping, optional
        How a stacked X is split into views; see `as_views`.
    random_state : int, Generator, RandomState or None
        Seed of the selection; the estimator has its own.

    Attributes
    ----------
    estimator_ : clusterer
        The fitted estimator. Its fitted attributes are also attributes of this object, as in model.eigenvalues_,
        except those with one row per training sample, such as model.estimator_.scores_.
    train_rows_ : array of shape (n_train,)
        Row numbers of the training samples, in increasing order.
    labels_ : array of shape (n_samples,)
        Clusters of all samples, numbered by decreasing size among the training samples, or among up to 10,000 samples
        if the training samples are fewer; `PerView` and estimators of other libraries keep their numbers. There are no
        labels_ after `train`, but predict gives the same.
    agreements_ : array of shape (n_repeats,)
        Mean adjusted Rand index between the labels of each repeat and those of the others; 1 for a single repeat.

    See Also
    --------
    label_file : Label files block by block.
    ViewsReader : Read aligned blocks of files.
    Uniform, Entropy, KMeansRows, Stratified : How the training samples are selected.

    Examples
    --------
    >>> import numpy as np
    >>> from coview import TMvKSCR
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(3, size=5000)
    >>> text, image = (rng.normal(size=(3, d))[truth] * 4 + rng.normal(size=(5000, d)) for d in (5, 8))
    >>> model = FixedSize(TMvKSCR(3, random_state=0), n_train=300, random_state=0).fit([text, image])
    >>> model.labels_.shape, model.train_rows_.shape, model.transform([text, image]).shape
    ((5000,), (300,), (5000, 2))
    """

    labels_: Annotated[Labels, IntegerArray("samples", least=0, below="samples"), OPTIONAL]
    train_rows_: Annotated[Rows, IntegerArray("train", least=0, increasing=True)]
    agreements_: Annotated[Array, FloatArray("repeats")]

    def __init__(
        self,
        estimator: Any,
        *,
        n_train: float | Literal["auto"] = "auto",
        select: Selector | str = "uniform",
        n_repeats: int = 1,
        views: Layout = None,
        random_state: Seed = None,
    ) -> None:
        self.estimator = estimator
        self.n_train = n_train
        self.select = select
        self.n_repeats = n_repeats
        self.views = views
        self.random_state = random_state

    def __getattr__(self, name: str) -> Any:
        """Return what the fitted estimator has learnt, except what has one row per training sample."""
        if name in _ONE_ROW_PER_TRAINING_SAMPLE and "estimator_" in self.__dict__:
            raise AttributeError(
                f"FixedSize has no {name}, which has one row for each of the {len(self.train_rows_)} training samples; "
                f"read estimator_.{name}, whose rows are train_rows_, or call transform or predict(…, per_view=True)"
            )
        return super().__getattr__(name)

    def _fit(self, X: Any) -> None:
        if _is_source(X) and not isinstance(X, Views):
            raise InputTypeError(
                f"X is {kind_of(X)}, whose rows may not fit into memory; call train, which does not label all rows"
            )
        views = self._views_to_fit(X)
        self.labels_ = self._completed(*self._train(views), views)

    def _completed(self, rows: Rows, of_rows: Labels, views: Views) -> Labels:
        """Return the labels of all samples, given those of some rows, which are not scored again."""
        n = views.n_samples
        if n > _MOST_TIMES * len(rows):
            return np.asarray(self.estimator_.predict(views), dtype=np.int64)
        labels = np.empty(n, dtype=np.int64)
        labels[rows] = of_rows
        for some in self._blocks(np.setdiff1d(np.arange(n), rows)):
            labels[some] = self.estimator_.predict(views.take(some))
        return labels

    def _numbered(self, views: Views, labels: Labels, tied: Labels) -> Labels:
        """Number the clusters by their size among these samples; return the labels of the samples."""
        while True:
            numbered, order = number_by_size(labels)
            if np.array_equal(order, np.arange(len(order))) or not self.estimator_._renumber(order):
                return labels
            labels = numbered
            # Of equally near clusters a sample is in that with the lower number, which may be another one now. It can
            # only move to a larger cluster, so this ends.
            for some in self._blocks(np.flatnonzero(tied)):
                labels[some] = self.estimator_.predict(views.take(some))

    def _renumber(self, order: Labels) -> bool:
        return False  # the numbers are those of all samples

    @staticmethod
    def _blocks(rows: Rows) -> list[Rows]:
        """Return the rows in blocks, because a copy of all of them may not fit into memory."""
        return [rows[start : start + _MORE_ROWS] for start in range(0, len(rows), _MORE_ROWS)]

    def train(self, source: RowSource) -> Self:
        """Train on rows of a source without labelling the others: there is no labels_ afterwards, use predict.

        The model is that of `fit` with the same rows in memory, also in the numbers of its clusters.

        Parameters
        ----------
        source : object with n_samples and take(rows)
            `take` returns the rows of these increasing numbers as Views.

        Returns
        -------
        self
        """
        if not _is_source(source):
            raise InputTypeError(
                f"source is {kind_of(source)}; give Views, a ViewsReader or DaskViews, or call fit with tables"
            )
        before = self.__dict__.copy()
        try:
            self.__dict__.pop("labels_", None)
            if hasattr(source, "filled_by"):
                source = source.filled_by(self)
            some = source.take(np.arange(1))
            if some.categories:  # whose encoding is learnt from more rows
                some = source.take(draw_rows(source.n_samples, _MORE_ROWS, self._generator()))
            self._views_to_fit(some)
            self._train(_EncodedRows(source, self._encodings) if self._encodings else source)
        except BaseException:
            self.__dict__ = before
            raise
        return self

    def _train(self, source: RowSource) -> tuple[Rows, Labels]:
        """Train, number the clusters, and return some rows whose labels are known, with these labels."""
        self._require_method("trains")
        if not hasattr(self.estimator, "predict"):
            raise InputError(
                f"{type(self.estimator).__name__} cannot label new samples; FixedSize needs a method that can, such as "
                "TMvKSCR, MvKSC, OPMC or MVSCBP"
            )
        n_repeats = check_integer("n_repeats", self.n_repeats, 1)
        count, rng, selector = self._n_selected(source.n_samples), self._generator(), as_selector(self.select)
        trained = []
        for _ in range(n_repeats):
            rows, views = self._selected(source, count, rng, selector)
            trained.append((rows, clone(self.estimator).fit(views)))
        if n_repeats == 1 and count > _MORE_ROWS:  # the clusters are learnt and numbered
            self.agreements_, (self.train_rows_, self.estimator_) = np.ones(1), trained[0]
            return np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.int64)
        more = hasattr(self.estimator, "recluster") and count < min(source.n_samples, _MORE_ROWS)
        known = draw_rows(source.n_samples, _MORE_ROWS, rng)
        some = source.take(known)
        found = [(each._recluster if more else each._labels_and_ties)(some) for _, each in trained]
        self.agreements_ = mean_agreements([labels for labels, _ in (each.T for each in found)])
        best = int(self.agreements_.argmax())
        self.train_rows_, self.estimator_ = trained[best]
        labels, tied = np.ascontiguousarray(found[best].T)
        return known, labels if count > _MORE_ROWS else self._numbered(some, labels, tied)

    def _selected(
        self, source: RowSource, count: int, rng: np.random.Generator, selector: Selector
    ) -> tuple[Rows, Views]:
        """Return the training rows and their views.

        If samples are not in memory, it is not known which views they lack. Rows are then drawn; if a view has too few
        samples among them, its rows are found in one pass, and rows that have it are exchanged for others.
        """
        if isinstance(source, Views) and not (source.complete or isinstance(selector, Stratified)):
            rows = self._selected_in_memory(source, count, rng, selector)
            return rows, source.take(rows)
        rows = selector.rows(source, count, rng, self._kernels())
        views = source.take(rows)
        least = self._least_samples_of_a_view()
        rare = [name for name in views.present if views.n_present(name) < least]
        rows_with = getattr(source, "rows_with", None)
        if not rare or isinstance(selector, Stratified) or rows_with is None:
            return rows, views
        for name in rare:
            known = rows_with(name)
            rows = np.union1d(rows, known[draw_rows(len(known), least, rng)])
        views = source.take(rows)
        kept = self._selected_in_memory(views, count, rng, selector)
        return rows[kept], views.take(kept)

    def _selected_in_memory(self, source: Views, count: int, rng: np.random.Generator, selector: Selector) -> Rows:
        """Return the training rows among samples of which some lack views.

        Half of the rows are among the samples with all views, which relate the views to each other. The others are
        random, except that each view has the samples that it needs.
        """
        complete = np.flatnonzero(source.has_all())
        wanted = min(len(complete), max(count // 2, count - (source.n_samples - len(complete))))
        chosen = np.zeros(source.n_samples, dtype=bool)
        if wanted:
            chosen[complete[selector.rows(source.take(complete), wanted, rng, self._kernels())]] = True
        for name in sorted(source.present, key=source.n_present):
            has = source.present[name]
            needed = max(0, self._least_samples_of_a_view() - int((chosen & has).sum()))
            chosen[_draw_among(has & ~chosen, min(needed, count - int(chosen.sum())), rng)] = True
        chosen[_draw_among(~chosen, count - int(chosen.sum()), rng)] = True
        return np.flatnonzero(chosen)

    def _check_state(self, sizes: Sizes) -> None:
        super()._check_state(sizes)
        n_labels = len(vars(self.estimator_).get("labels_", self.train_rows_))
        require(n_labels == len(self.train_rows_), f"expected an estimator of {len(self.train_rows_)} training samples")

    def _n_clusters(self) -> int:
        n_clusters = setting(self.estimator, "n_clusters", 1)
        return int(n_clusters) if is_integer(n_clusters) else 1  # the method itself refuses other values

    def _least_samples_of_a_view(self) -> int:
        """Return how many training samples need to have a view, for the largest of several numbers of clusters."""
        wanted = setting(self.estimator, "n_clusters", 2)
        several = isinstance(wanted, Iterable) and not isinstance(wanted, str)
        return least_samples(max(int(k) for k in [2, *(wanted if several else [wanted])] if is_integer(k)))

    def _n_selected(self, n: int) -> int:
        wanted, n_clusters = self.n_train, self._n_clusters()
        if isinstance(wanted, str) and wanted == "auto":
            return min(n, max(2000, 50 * n_clusters))
        fraction = is_number(wanted) and not is_integer(wanted) and 0 < wanted <= 1
        count = int(wanted) if is_integer(wanted) else round(wanted * n) if fraction else 0
        least = min(max(2, n_clusters), n)
        if not least <= count <= n:
            raise InputError(
                f"n_train={wanted!r}: expected 'auto', an integer from {least} (n_clusters) to n_samples={n}, or a "
                "fraction of the samples within these bounds"
            )
        return count


class _EncodedRows:
    """A source whose categories are encoded."""

    def __init__(self, source: RowSource, encodings: Mapping[str, Encoding]) -> None:
        self.n_samples = source.n_samples
        self.rows_with = getattr(source, "rows_with", None)
        self._source, self._encodings = source, encodings

    def take(self, rows: Rows) -> Views:
        """Return these rows as encoded views."""
        return encoded(self._source.take(rows), self._encodings)


def _draw_among(candidates: Array, count: int, rng: np.random.Generator) -> Rows:
    """Return the numbers of `count` random rows among the candidates, a boolean array."""
    rows = np.flatnonzero(candidates)
    return rows[draw_rows(len(rows), count, rng)]


def _is_source(source: Any) -> bool:
    """Whether this is a `RowSource`; arrays have a take of their own."""
    return hasattr(source, "take") and hasattr(source, "n_samples")
