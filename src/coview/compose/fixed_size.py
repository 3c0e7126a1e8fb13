"""FixedSize: a model that is trained on a subset of the samples and labels all of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np

from coview.base.parameters import check_integer, is_integer, is_number
from coview.base.progress import Progress, reporting
from coview.compose.wrapper import Wrapper, learn
from coview.core.agreement import mean_agreements
from coview.core.assign import Labels, number_by_size
from coview.core.select import Rows, RowSource, Selector, Stratified, as_selector, draw_rows
from coview.data.as_views import Layout
from coview.data.view import Array
from coview.data.views import Views
from coview.errors import InputError, InputTypeError, Note, kind_of
from coview.kernels import Kernel
from coview.model.clusterer import SCORES
from coview.model.fitting import Seed, as_generator, least_samples, note_on_fewer
from coview.model.model import Model
from coview.model.schema import Schema
from coview.preprocess.encode import Encoding, encoded

_MORE_ROWS = 10_000
_MOST_TIMES = 10  # the labelled rows; above, copying the remaining rows costs more than labelling all again
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
    model_ : Model
        What is learnt. The attributes of the method are also attributes of this object, as in model.eigenvalues_,
        except those with one row per training sample, such as model.model_.learnt["scores_"].
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

    kept_abilities = SCORES  # not "recluster", which learns the clusters without labelling all samples
    train_rows_: Rows
    agreements_: Array

    trains_on_some_rows = True

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

    def check_views(self, views: Views) -> tuple[Note, ...]:
        self.require_method("trains", views.names)
        if "predict" not in self.abilities:
            raise InputError(
                f"{type(self.estimator).__name__} cannot label new samples; FixedSize needs a method that can, such as "
                "TMvKSCR, MvKSC, OPMC or MVSCBP"
            )
        return ()

    def check_coverage(self, views: Views) -> None:
        """Check nothing: it is the training samples among these that need to have all views."""

    def fit_model(self, views: Views, report: Progress) -> Model:
        model, rows, of_rows = self._trained(views, views.names, report)
        return replace(model, labels=_completed(model, rows, of_rows, views))

    def fit_reporting(self, X: Any, report: Progress) -> Self:
        if _is_source(X) and not isinstance(X, Views):
            raise InputTypeError(
                f"X is {kind_of(X)}, whose rows may not fit into memory; call train, which does not label all rows"
            )
        return super().fit_reporting(X, report)

    def of_part(self, found: Model, rows: Array, seed: int) -> Self:
        copy = super().of_part(found, rows, seed)
        if is_integer(self.n_train):
            copy.set_params(n_train=min(int(self.n_train), len(rows)))
        if isinstance(self.select, Stratified):
            copy.set_params(select=Stratified(np.asarray(self.select.groups)[rows]))
        return copy

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
        if hasattr(source, "filled_by"):
            source = source.filled_by(self)
        some = source.take(np.arange(1))
        if some.categories:  # whose encoding is learnt from more rows
            some = source.take(draw_rows(source.n_samples, _MORE_ROWS, as_generator(self.random_state)))
        self.check_missing(some)
        schema, views = Schema.learn(some, self.fills_cells, self.may_lack_views)
        notes = self.check_views(views)
        rows = _EncodedRows(source, schema.encodings) if schema.encodings else source
        with reporting(None) as report:
            model = self._trained(rows, views.names, report)[0]
        self._check_stacked_columns(some, some, reset=True)
        self.publish(replace(model, schema=schema, labels=np.zeros(0, np.int64), notes=(*notes, *model.notes)))
        return self

    def _trained(self, source: RowSource, names: tuple[str, ...], report: Progress) -> tuple[Model, Rows, Labels]:
        """Return the model with numbered clusters, and some rows whose labels are known, with these labels."""
        n_repeats = check_integer("n_repeats", self.n_repeats, 1)
        rng, selector = as_generator(self.random_state), as_selector(self.select)
        count, kernels, trained = self._n_selected(source.n_samples), self.kernels(names), []
        for _ in range(n_repeats):
            rows, views = self._selected(source, count, rng, selector, kernels)
            super().check_coverage(views)
            trained.append((rows, learn(self.estimator, views, report)))
        if n_repeats == 1 and count > _MORE_ROWS:  # the clusters are learnt and numbered
            no_rows = np.zeros(0, dtype=np.intp)
            return self._described(trained[0][1], trained[0][0], np.ones(1)), no_rows, no_rows.astype(np.int64)
        more = "recluster" in self.estimator.abilities and count < min(source.n_samples, _MORE_ROWS)
        known = draw_rows(source.n_samples, _MORE_ROWS, rng)
        some, models, found = source.take(known), [], []
        for _, model in trained:
            if more:
                model, labels = model.reclustered(some, as_generator(self.method.random_state))
                model = model.with_notes(*note_on_fewer(model.n_clusters, int(self.method.n_clusters)))
            else:
                labels = model.labels_and_ties(some)
            models.append(model)
            found.append(labels)
        agreements = mean_agreements([labels for labels, _ in (each.T for each in found)])
        best = int(agreements.argmax())
        model, (labels, tied) = models[best], np.ascontiguousarray(found[best].T)
        if count <= _MORE_ROWS:
            model, labels = _numbered(model, some, labels, tied)
        return self._described(model, trained[best][0], agreements), known, labels

    def _described(self, model: Model, rows: Rows, agreements: Array) -> Model:
        """Return the model with the attributes of this wrapper, whose method has fewer samples."""
        learnt = {**model.learnt, "train_rows_": rows, "agreements_": agreements}
        known = {*learnt, *(["view_labels_"] if model.can("labels_by_view") else [])}
        hidden = tuple(name for name in _ONE_ROW_PER_TRAINING_SAMPLE if name in known)
        return replace(
            model, learnt=learnt, method_labels=model.trained_labels, unpublished=(*model.unpublished, *hidden)
        )

    def _selected(
        self,
        source: RowSource,
        count: int,
        rng: np.random.Generator,
        selector: Selector,
        kernels: Mapping[str, Kernel],
    ) -> tuple[Rows, Views]:
        """Return the training rows and their views.

        If samples are not in memory, it is not known which views they lack. Rows are then drawn; if a view has too few
        samples among them, its rows are found in one pass, and rows that have it are exchanged for others.
        """
        if isinstance(source, Views) and not (source.complete or isinstance(selector, Stratified)):
            rows = self._selected_in_memory(source, count, rng, selector, kernels)
            return rows, source.take(rows)
        rows = selector.rows(source, count, rng, kernels)
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
        kept = self._selected_in_memory(views, count, rng, selector, kernels)
        return rows[kept], views.take(kept)

    def _selected_in_memory(
        self,
        source: Views,
        count: int,
        rng: np.random.Generator,
        selector: Selector,
        kernels: Mapping[str, Kernel],
    ) -> Rows:
        """Return the training rows among samples of which some lack views.

        Half of the rows are among the samples with all views, which relate the views to each other. The others are
        random, except that each view has the samples that it needs.
        """
        complete = np.flatnonzero(source.has_all())
        wanted = min(len(complete), max(count // 2, count - (source.n_samples - len(complete))))
        chosen = np.zeros(source.n_samples, dtype=bool)
        if wanted:
            chosen[complete[selector.rows(source.take(complete), wanted, rng, kernels)]] = True
        for name in sorted(source.present, key=source.n_present):
            has = source.present[name]
            needed = max(0, self._least_samples_of_a_view() - int((chosen & has).sum()))
            chosen[_draw_among(has & ~chosen, min(needed, count - int(chosen.sum())), rng)] = True
        chosen[_draw_among(~chosen, count - int(chosen.sum()), rng)] = True
        return np.flatnonzero(chosen)

    def _n_clusters(self) -> int:
        n_clusters = getattr(self.method, "n_clusters", 1)
        return int(n_clusters) if is_integer(n_clusters) else 1  # the method itself refuses other values

    def _least_samples_of_a_view(self) -> int:
        """Return how many training samples need to have a view, for the largest of several numbers of clusters."""
        wanted: Any = getattr(self.method, "n_clusters", 2)
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


def _completed(model: Model, rows: Rows, of_rows: Labels, views: Views) -> Labels:
    """Return the labels of all samples, given those of some rows, which are not scored again."""
    n = views.n_samples
    if n > _MOST_TIMES * len(rows):
        return np.asarray(model.predict(views), dtype=np.int64)
    labels = np.empty(n, dtype=np.int64)
    labels[rows] = of_rows
    for some in _blocks(np.setdiff1d(np.arange(n), rows)):
        labels[some] = model.predict(views.take(some))
    return labels


def _numbered(model: Model, views: Views, labels: Labels, tied: Labels) -> tuple[Model, Labels]:
    """Number the clusters by their size among these samples; return the labels of the samples as well."""
    while True:
        numbered, order = number_by_size(labels)
        changed = None if np.array_equal(order, np.arange(len(order))) else model.renumbered(order)
        if changed is None:
            return model, labels
        model, labels = changed, numbered
        # Of equally near clusters a sample is in that with the lower number, which may be another one now. It can
        # only move to a larger cluster, so this ends.
        for some in _blocks(np.flatnonzero(tied)):
            labels[some] = model.predict(views.take(some))


def _blocks(rows: Rows) -> list[Rows]:
    """Return the rows in blocks, because a copy of all of them may not fit into memory."""
    return [rows[start : start + _MORE_ROWS] for start in range(0, len(rows), _MORE_ROWS)]


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
