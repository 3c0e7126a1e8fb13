"""Views as Dask collections, in blocks of rows; an error names the view and the rows."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from operator import getitem
from typing import Any, NamedTuple, TypeAlias
from uuid import uuid4

import numpy as np
import scipy.sparse as sp

from coview.base.extras import load_extra
from coview.core.select import Rows
from coview.data.rows import slab_places
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
RowBlock: TypeAlias = tuple[range, dict[str, Matrix]]  # the numbers of its rows, and the rows by view


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
        self._arrays, self._heights = arrays, _common_heights([array.chunks[0] for array in arrays.values()])
        self._tasks = _Tasks.of(arrays, self._heights)

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
        chosen = {}
        for i, place in enumerate(slab_places(self._heights)):
            inside = wanted[slice(*np.searchsorted(wanted, [place.start, place.stop]))]
            if len(inside):
                chosen[i] = [self.cells_may_be_empty, inside - place.start]
        pieces = dask.compute(*self._computed_by(_pick, chosen))
        gathered = {view: _stack([piece[v] for piece in pieces]) for v, view in enumerate(self.names)}
        checked = Views(gathered, may_have_empty_cells=self._empty_cells.__contains__)
        columns = self._example.columns
        return checked.map(lambda name, view: replace(view, columns=columns[name])).take(places)

    @property
    def example(self) -> Views:
        """An arbitrary row, with the columns and dtypes of the views."""
        return self._example

    @property
    def cells_may_be_empty(self) -> tuple[str, ...]:
        """The names of the views whose empty cells are not refused."""
        return tuple(sorted(self._empty_cells))

    def in_large_blocks(self) -> DaskViews:
        """Return the same views with small blocks merged: those take more time to schedule than to compute."""
        heights = _merged_heights(self._heights)
        return self if heights == self._heights else self._with(self._arrays, heights)

    def on(self, cluster: DaskCluster) -> dict[str, Blocks]:
        """Return the rows of each view on a cluster, after they are validated; all samples must have all views."""
        blocks = cluster.compute(self._computed_by(_complete_block))
        return {
            view: Blocks(cluster, [cluster.submit(getitem, block, v) for block in blocks], self._heights, width)
            for v, (view, width) in enumerate(self.n_features.items())
        }

    def lazily(self, name: str, function: Callable[..., Any], settings: Sequence[Any], model: Any, like: Array) -> Any:
        """Return a function of settings, a model and each block as a dask array whose rows are like those of `like`.

        `model` is the task of the model, or its future result on a cluster.
        """
        import dask.array as da
        from dask.base import tokenize

        name = (
            f"{name}-{tokenize(model.key, *(array.name for array in self._arrays.values()), self._heights, settings)}"
        )
        of_blocks = dict.fromkeys(range(len(self._heights)), settings)
        graph = self._graph(name, function, of_blocks, (0,) * (like.ndim - 1), model)
        return da.Array(graph, name, (self._heights, *((n,) for n in like.shape[1:])), like.dtype)

    def _rows_with(self, view: str) -> Sequence[Rows]:
        import dask

        alone = self._with({view: self._arrays[view]}, self._heights)
        found: Sequence[Rows] = dask.compute(*alone._computed_by(_with_values))
        return found

    def _with(self, arrays: Mapping[str, DaskArray], heights: tuple[int, ...]) -> DaskViews:
        """Return some of the views in blocks of these heights."""
        new = copy(self)
        new._arrays, new._heights, new._tasks = dict(arrays), heights, _Tasks.of(arrays, heights)
        return new

    def _computed_by(self, function: Callable[..., Any], settings: Mapping[int, Sequence[Any]] | None = None) -> Any:
        """Return a function of each block as delayed values; of some blocks if their settings are given."""
        from dask.delayed import Delayed

        name = f"coview-blocks-{uuid4().hex}"
        of_blocks: Mapping[int, Sequence[Any]] = settings or dict.fromkeys(range(len(self._heights)), ())
        graph = self._graph(name, function, of_blocks)
        return [Delayed((name, i), graph, layer=name) for i in of_blocks]

    def _graph(
        self,
        name: str,
        function: Callable[..., Any],
        settings: Mapping[int, Sequence[Any]],
        columns: tuple[int, ...] = (),
        model: Any = None,
    ) -> Any:
        """Return a graph with a task for each of some blocks: a function of its settings, the model and the block."""
        from dask.highlevelgraph import HighLevelGraph
        from dask.task_spec import Task, TaskRef

        graph = dict(self._tasks.shared)
        first = [] if model is None else [TaskRef(model.key)]
        for i, some in settings.items():
            block = self._tasks.blocks[i]
            key = (name, i, *columns)
            graph[key] = Task.fuse(block, Task(key, sent(function, *some), *first, TaskRef(block.key)))
        if model is not None:
            graph[model.key] = model
        return HighLevelGraph.from_collections(name, graph, dependencies=self._tasks.annotated)


class _Tasks(NamedTuple):
    """A task for each block of rows, and what else they need.

    All that only one block needs is part of its task. So a block is read in the task that uses it, not sent between
    workers, and errors name the view and the rows.
    """

    blocks: list[Any]
    shared: dict[Key, Any]
    annotated: list[DaskArray]  # whose tasks stay as they are: they have resources, retries or shuffles

    @classmethod
    def of(cls, arrays: Mapping[str, DaskArray], heights: tuple[int, ...]) -> _Tasks:
        from dask.task_spec import Task, TaskRef

        places = slab_places(heights)
        own: list[list[Any]] = [[] for _ in heights]
        found = cls([], {}, [])
        aligned = {view: array.rechunk((heights, array.shape[1:]), method="tasks") for view, array in arrays.items()}
        for view, array in aligned.items():
            if any(layer.annotations for layer in array.dask.layers.values()):
                found.annotated.append(array)
            else:
                found._add_view(view, array, places, own)
        widths = {view: array.shape[1] for view, array in aligned.items()}
        for i, (place, tasks) in enumerate(zip(places, own, strict=True)):
            inputs = [TaskRef((array.name, i, 0)) for array in aligned.values()]
            block = Task(f"coview-rows-{i}", sent(_row_block, place.start, place.stop, widths), *inputs)
            found.blocks.append(Task.fuse(*tasks, block))
        return found

    def _add_view(self, view: str, array: DaskArray, places: Sequence[slice], own: Sequence[list[Any]]) -> None:
        """Add the tasks of a view: to those of a block that alone needs them, or to the shared ones."""
        import dask
        from dask.task_spec import Task, TaskRef

        with dask.config.set({"optimization.fuse.active": None}):  # so that all tasks have the present format
            tasks = dict(dask.optimize(array)[0].dask)
        keys: list[Key] = [(array.name, i, 0) for i in range(len(places))]
        first, from_end = _first_users(tasks, keys), _first_users(tasks, keys[::-1])
        of_block: list[list[Any]] = [[] for _ in keys]

        def named(task: Any, first: int, last: int) -> Any:
            inputs = sorted(task.dependencies, key=str)
            compute = sent(_computed, view, places[first].start, places[last].stop, task, inputs)
            return Task(task.key, compute, *map(TaskRef, inputs))

        for key, i in first.items():
            last = len(keys) - 1 - from_end[key]
            if key not in tasks:  # a result that a cluster holds
                self.shared[key] = array.dask[key]
            elif i < last:
                self.shared[key] = named(tasks[key], i, last)
            else:
                of_block[i].append(tasks[key])
        for i, needed in enumerate(of_block):
            own[i].extend([named(Task.fuse(*needed), i, i)] if needed else [])


def _first_users(tasks: Mapping[Key, Any], keys: Sequence[Key]) -> dict[Key, int]:
    """Return which of the results with these keys is the first that needs each task."""
    found: dict[Key, int] = {}
    for i, result in enumerate(keys):
        waiting = [result]
        while waiting:
            key = waiting.pop()
            if key not in found:
                found[key] = i
                waiting += tasks[key].dependencies if key in tasks else []
    return found


def _computed(view: str, start: int, stop: int, task: Any, inputs: Sequence[Key], *given: Any) -> Any:
    """Return the result of a task of a view that these rows need."""
    try:
        return task(dict(zip(inputs, given, strict=True)))
    except Exception as error:
        raise InputError(
            f"view {view!r} cannot be computed in rows {start} to {stop - 1}: {type(error).__name__}: {error}"
        ) from error


def _row_block(start: int, stop: int, widths: Mapping[str, int], *blocks: Any) -> RowBlock:
    """Return the numbers of the rows of a block, and the rows by view."""
    for (view, width), block in zip(widths.items(), blocks, strict=True):
        if np.shape(block) != (stop - start, width):
            raise InputError(
                f"view {view!r} has a block of shape {np.shape(block)} for rows {start} to {stop - 1}; "
                f"its metadata say {(stop - start, width)}"
            )
    return range(start, stop), dict(zip(widths, blocks, strict=True))


def _pick(empty_cells: Sequence[str], chosen: Rows, block: RowBlock) -> list[Matrix]:
    """Return some rows of one block."""
    rows, of_views = block
    some = {view: x[chosen] for view, x in of_views.items()}
    return list(checked(some, empty_cells, chosen + rows[0]).values())


def _complete_block(block: RowBlock) -> list[Array]:
    """Return one block of rows of every view."""
    rows, of_views = block
    views = checked(of_views, (), rows)
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


def _with_values(block: RowBlock) -> Rows:
    """Return the numbers of the rows of a block of one view that have it."""
    rows, of_views = block
    return np.concatenate([rows_with_values(x) for x in of_views.values()]) + rows[0]


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
