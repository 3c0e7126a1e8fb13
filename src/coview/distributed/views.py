"""Views as Dask collections, in blocks of rows; an error names the view and the rows."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from itertools import accumulate, pairwise
from operator import getitem
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sp

from coview.base.extras import load_extra
from coview.core.select import Rows
from coview.data.source import BlocksOfViews, checked_block, rows_with_values
from coview.data.view import Array, Matrix
from coview.data.views import Views
from coview.distributed.cluster import DaskCluster
from coview.distributed.tasks import sent
from coview.errors import InputError, InputTypeError, kind_of
from coview.neighbors.blocks import Blocks

_FEWEST_ROWS = 8192  # smaller blocks are merged: they take more time to schedule than to label

DaskArray: TypeAlias = Any  # dask's arrays have no element types
Key: TypeAlias = Hashable
Graph: TypeAlias = dict[Any, Any]


class DaskViews(BlocksOfViews):
    """Aligned views as Dask collections; blocks of rows are in memory only while they are used.

    Rows are matched by position. If the views have different chunks, all views get those of the view with the most
    chunks, and small chunks are merged. The rows of data frames, and of arrays of unknown length, are counted once, at
    construction. Empty cells are refused, except by functions of this module with a model that fills them, and in
    views.filled_by(model).

    Parameters
    ----------
    sources : mapping from view name to dask array or dask data frame
        Arrays are 2-D, with NumPy or SciPy sparse blocks; frames have numeric columns.

    Attributes
    ----------
    names : tuple of str
    n_samples : int
    n_features : dict from view name to int

    Notes
    -----
    A complete run, with views that do not fit into memory::

        views = DaskViews({"text": text, "image": image})
        model = fit(FixedSize(TMvKSCR(6), n_train=1000, random_state=0), views)
        labels = predict(model, views)  # lazy: labels.compute(), or labels.to_zarr(…)
    """

    def __init__(self, sources: Mapping[str, Any]) -> None:
        load_extra("dask.array", "dask", "DaskViews")
        if not isinstance(sources, Mapping) or len(sources) == 0:
            raise InputTypeError("sources: expected a mapping from view name to dask array or dask data frame")
        if len({str(name) for name in sources}) < len(sources):
            raise InputError(f"two views have the same name among {', '.join(map(str, sources))}; rename one")
        opened = {str(name): _as_array(str(name), source) for name, source in sources.items()}
        arrays = {name: array for name, (array, _) in opened.items()}
        first = next(iter(arrays))
        for name, array in arrays.items():
            if len(array) != len(arrays[first]):
                raise InputError(
                    f"view {name!r} has {len(array)} samples but view {first!r} has {len(arrays[first])}; "
                    "every view needs the same samples in the same order"
                )
        if len(arrays[first]) == 0:
            raise InputError(f"view {first!r} has 0 samples while a minimum of 1 is required.")
        self._example = Views.of({name: example.tables[name] for name, (_, example) in opened.items()})
        self._heights = _common_heights([array.chunks[0] for array in arrays.values()])
        self._tasks = [
            _ViewTasks.of(name, array.rechunk((self._heights, array.shape[1:]), method="tasks"))
            for name, array in arrays.items()
        ]

    def __repr__(self) -> str:
        shapes = ", ".join(f"{name}: {width}" for name, width in self.n_features.items())
        return f"DaskViews({self.n_samples} samples in {len(self._heights)} blocks; {shapes})"

    @property
    def names(self) -> tuple[str, ...]:
        return self._example.names

    @property
    def n_samples(self) -> int:
        return sum(self._heights)

    @property
    def n_features(self) -> dict[str, int]:
        return self._example.n_features

    def take(self, rows: Any) -> Views:
        """Return the selected rows of every view, in memory; a block without any of them is not computed.

        Parameters
        ----------
        rows : array of int
            Row numbers from 0 to n_samples - 1.

        Returns
        -------
        Views
        """
        import dask

        wanted, places = np.unique(rows, return_inverse=True)
        numbers = np.ndim(rows) == 1 and wanted.size > 0 and wanted.dtype.kind in "iu"
        if not numbers or wanted[0] < 0 or wanted[-1] >= self.n_samples:
            raise InputError(f"rows: expected one or more row numbers from 0 to {self.n_samples - 1}")
        name = f"coview-take-{dask.base.tokenize(wanted, self._token, sorted(self._empty_cells))}"
        tasks: Graph = {}
        for i, (start, stop) in enumerate(pairwise(accumulate(self._heights, initial=0))):
            inside = wanted[slice(*np.searchsorted(wanted, [start, stop]))]
            if len(inside):
                tasks[name, i] = self._task(i, _pick, [tuple(self._empty_cells), inside - start])
        pieces = self._computed(name, tasks)
        gathered = {view: _stack([piece[v] for piece in pieces]) for v, view in enumerate(self.names)}
        checked = Views(gathered, may_have_empty_cells=self._empty_cells.__contains__)
        columns = self._example.columns
        return checked.map(lambda name, view: replace(view, columns=columns[name])).take(places)

    @property
    def example(self) -> Views:
        """An arbitrary row, with the columns and dtypes of the views."""
        return self._example

    def in_large_blocks(self) -> DaskViews:
        """Return the same views with small blocks merged: those take more time to schedule than to compute."""
        merged = copy(self)
        merged._heights = _merged_heights(self._heights)
        if merged._heights != self._heights:
            merged._tasks = [
                _ViewTasks.of(name, view.array.rechunk((merged._heights, view.array.shape[1:]), method="tasks"))
                for name, view in zip(self.names, self._tasks, strict=True)
            ]
        return merged

    def on(self, cluster: DaskCluster) -> dict[str, Blocks]:
        """Return the rows of each view on a cluster, after they are validated; all samples must have all views."""
        from dask.base import tokenize
        from dask.delayed import Delayed

        name = f"coview-blocks-{tokenize(self._token)}"
        tasks: Graph = {(name, i): self._task(i, _complete_block, []) for i in range(len(self._heights))}
        graph = self._graph(name, tasks)
        blocks = cluster.compute([Delayed(key, graph, layer=name) for key in tasks])
        return {
            view: Blocks(cluster, [cluster.submit(getitem, block, v) for block in blocks], self._heights, width)
            for v, (view, width) in enumerate(self.n_features.items())
        }

    def _rows_with(self, view: str) -> Sequence[Rows]:
        alone = copy(self)
        alone._tasks = [self._tasks[self.names.index(view)]]
        name = f"coview-rows-{alone._token[0]}"
        tasks: Graph = {(name, i): alone._task(i, _with_values, []) for i in range(len(self._heights))}
        return alone._computed(name, tasks)

    def _computed(self, name: str, tasks: Graph) -> Sequence[Any]:
        """Return the results of the tasks."""
        import dask
        from dask.delayed import Delayed

        graph = self._graph(name, tasks)
        results: Sequence[Any] = dask.compute(*(Delayed(key, graph, layer=name) for key in tasks))
        return results

    @property
    def _token(self) -> list[Key]:
        return [view.array.name for view in self._tasks]

    def _task(self, i: int, function: Callable[..., Any], settings: Sequence[Any], *first: Key) -> tuple[Any, ...]:
        """Return a task: a function of a module, called with the keys `first` and row block i of all views."""
        parts = [view.parts[i] for view in self._tasks]
        return sent(function, parts, *settings), *first, *(key for part in parts for key in part.inputs)

    def _graph(self, name: str, tasks: Graph) -> Any:
        """Return the tasks with all of their dependencies."""
        from dask.highlevelgraph import HighLevelGraph

        layer = dict(tasks)
        for view in self._tasks:
            layer |= view.shared
        return HighLevelGraph.from_collections(
            name, layer, dependencies=[view.array for view in self._tasks if view.unchanged]
        )


class _Part(NamedTuple):
    """Some rows of one view: the tasks that compute them, the key of the result, and the keys of other inputs."""

    view: str
    start: int
    stop: int
    width: int
    tasks: Graph
    key: Key
    inputs: list[Key]


class _ViewTasks(NamedTuple):
    """The tasks of one view: those that serve one row block only are part of its task, the others are shared.

    A row block is then read in the task that uses it: it is not sent between workers, and errors name view and rows.
    """

    array: DaskArray
    parts: list[_Part]
    shared: Graph
    unchanged: bool

    @classmethod
    def of(cls, view: str, array: DaskArray) -> _ViewTasks:
        from dask.core import get_dependencies, toposort

        starts = [0, *accumulate(array.chunks[0])]
        keys = [(array.name, i, 0) for i in range(len(starts) - 1)]

        def part(first: int, last: int, tasks: Graph, key: Key) -> _Part:
            inside = set().union(*(needs[k] for k in tasks)) - tasks.keys() if tasks else {key}
            return _Part(view, starts[first], starts[last + 1], array.shape[1], tasks, key, sorted(inside, key=str))

        if any(layer.annotations for layer in array.dask.layers.values()):  # resources, retries, shuffles
            return cls(array, [part(i, i, {}, key) for i, key in enumerate(keys)], {}, unchanged=True)

        graph = dict(array.dask)
        needs = {key: get_dependencies(graph, key) for key in graph}
        held = {key for key in graph if key in needs[key]}  # by the cluster: a future depends on itself
        order = toposort(graph, dependencies={key: needs[key] - {key} for key in graph})
        serves = {key: (i, i) for i, key in enumerate(keys)}  # the first and the last block that need a task
        for key in reversed(order):
            if key in serves:
                first, last = serves[key]
                for need in needs[key]:
                    before = serves.get(need, (first, last))
                    serves[need] = min(first, before[0]), max(last, before[1])

        own: list[Graph] = [{} for _ in keys]
        shared: Graph = {}
        for key, (first, last) in serves.items():
            if key in held:
                shared[key] = graph[key]
            elif first == last:
                own[first][key] = graph[key]
            else:
                alone = part(first, last, {key: graph[key]}, key)
                shared[key] = (sent(_compute, [alone]), *alone.inputs)
        return cls(array, [part(i, i, own[i], key) for i, key in enumerate(keys)], shared, unchanged=False)


def _pick(parts: list[Any], empty_cells: Sequence[str], chosen: Rows, *given: Any) -> list[Matrix]:
    """Return some rows of one block."""
    blocks, rows = compute_block(parts, given)
    some = {view: block[chosen] for view, block in blocks.items()}
    return list(checked(some, empty_cells, chosen + rows[0]).values())


def _complete_block(parts: list[Any], *given: Any) -> list[Array]:
    """Return one block of rows of every view."""
    blocks, rows = compute_block(parts, given)
    views = checked(blocks, (), rows)
    for view, x in views.items():
        if sp.issparse(x):
            raise InputError(
                f"view {view!r} is sparse, and a fit on all samples of a cluster needs dense blocks; convert it "
                "with map_blocks(lambda block: block.toarray()), or train FixedSize on some samples"
            )
        if view in views.present:
            raise InputError(
                f"row {rows[int(np.argmin(views.present[view]))]} lacks the view {view!r}, and a fit on all samples of "
                "a cluster needs all views of each; drop these samples, or train FixedSize, which accepts them"
            )
    return list(views.values())


def _with_values(parts: list[Any], *given: Any) -> Rows:
    """Return the numbers of the rows of one block that have its view."""
    blocks, rows = compute_block(parts, given)
    (block,) = blocks.values()
    return rows_with_values(block) + rows[0]


def _compute(parts: list[Any], *given: Any) -> Any:
    """Return the result of one part: a row block of a view, or a task that several row blocks need."""
    from dask.core import get

    (part,) = map(_Part._make, parts)
    values = dict(zip(part.inputs, given, strict=True))
    try:
        return get(part.tasks, [part.key], cache=values)[0] if part.tasks else values[part.key]
    except Exception as error:
        raise InputError(
            f"view {part.view!r} cannot be computed in rows {part.start} to {part.stop - 1}: "
            f"{type(error).__name__}: {error}"
        ) from error


def compute_block(parts: list[Any], given: Sequence[Any]) -> tuple[dict[str, Any], range]:
    """Return one block of rows of every view, and the numbers of these rows."""
    blocks, taken = {}, 0
    for part in map(_Part._make, parts):
        block = _compute([part], *given[taken : taken + len(part.inputs)])
        taken += len(part.inputs)
        expected = part.stop - part.start, part.width
        if np.shape(block) != expected:
            raise InputError(
                f"view {part.view!r} has a block of shape {np.shape(block)} for rows {part.start} to {part.stop - 1}; "
                f"its metadata say {expected}"
            )
        blocks[part.view] = block
    return blocks, range(part.start, part.stop)


def checked(blocks: Mapping[str, Any], empty_cells: Sequence[str], rows: Sequence[int] | Rows) -> Views:
    """Return the blocks as validated views; messages number the rows from the first row of all blocks."""
    return checked_block(blocks, dict.fromkeys(blocks), empty_cells, {view: f"view {view!r}" for view in blocks}, rows)


def _stack(pieces: list[Matrix]) -> Matrix:
    return sp.vstack(pieces, format="csr") if sp.issparse(pieces[0]) else np.vstack(pieces)


def as_dask_views(views: DaskViews | Mapping[str, Any]) -> DaskViews:
    """Return the views, aligned to common row blocks."""
    return views if isinstance(views, DaskViews) else DaskViews(views)


def _as_array(view: str, source: Any) -> tuple[DaskArray, Views]:
    """Return a collection as an array of known length, and an arbitrary row with its columns and dtype."""
    import dask
    import dask.array as da

    if not (dask.is_dask_collection(source) and isinstance(getattr(source, "ndim", None), int)):
        raise InputTypeError(
            f"view {view!r} is {kind_of(source)}; give a dask array or dask data frame, for example "
            "dask.array.from_array(x, chunks=(10_000, -1))"
        )
    if source.ndim != 2:
        raise InputError(f"view {view!r} is {source.ndim}-D; expected a 2-D table, samples by features")
    try:
        if not isinstance(source, da.Array):
            from dask.dataframe.utils import meta_nonempty

            example = Views({view: meta_nonempty(source._meta).iloc[:1]})
            for column in example.categories.get(view, {}):
                raise InputError(
                    f"view {view!r} has categories in the column {column!r}, which DaskViews does not encode; store "
                    "the view as Parquet files and read them with ViewsReader, or encode the column as numbers"
                )
            return source.astype(example.dtype).to_dask_array(lengths=True), example
        if np.isnan(source.shape).any():
            source = source.copy().compute_chunk_sizes()  # works in place, so on a copy
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"the rows of view {view!r} cannot be counted: {type(error).__name__}: {error}") from error
    return source, Views({view: np.ones((1, source.shape[1]), source.dtype)})


def _common_heights(cuts: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """Return the numbers of rows of the blocks of all views, given the chunks of each."""
    cuts = [tuple(height for height in cut if height) for cut in cuts]
    if len(set(cuts)) == 1:
        return cuts[0]
    return _merged_heights(max(cuts, key=len))


def _merged_heights(cut: Sequence[int]) -> tuple[int, ...]:
    """Return the numbers of rows of blocks, after small ones are merged."""
    heights: list[int] = []
    for height in cut:
        if heights and heights[-1] + height <= _FEWEST_ROWS:
            heights[-1] += height
        else:
            heights.append(height)
    return tuple(heights)
