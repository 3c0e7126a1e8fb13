"""MuData and AnnData: cluster the cells, label new cells, and draw them; the results are where scanpy reads them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np
from sklearn.base import clone

from coview.base.extras import load_extra
from coview.base.palette import PALETTE
from coview.base.progress import Progress, ProgressParameter, reporting
from coview.base.runtime import require_memory
from coview.certainty.columns import labels_of, sample_columns
from coview.compose.wrapper import require_own
from coview.core.assign import Labels
from coview.data.as_views import views_of_tables
from coview.data.table import as_table
from coview.data.view import Array, Matrix, View, among_all
from coview.data.views import Views
from coview.errors import InputError, InputTypeError, kind_of
from coview.evaluate.coview import Coview
from coview.model.clusterer import Clusterer
from coview.model.fitting import Seed
from coview.plots.maps import draw_groups, name_of_map
from coview.registry import check_name
from coview.summary.clustering import Clustering
from coview.summary.map import map_positions
from coview.summary.settings import nested_name, parameters, versions

__all__ = ["cluster", "label_cells", "plot", "to_views"]

if TYPE_CHECKING:
    from coview.plots.axes import Axes

Modalities: TypeAlias = Mapping[str, str | None] | Sequence[str] | None
_X = "X"
_PCA = "X_pca"


def cluster(
    data: Any,
    modalities: Modalities = None,
    n_clusters: int | Iterable[int] | Literal["auto"] = "auto",
    *,
    key_added: str = "coview",
    estimator: Any = None,
    random_state: Seed = 0,
    progress: ProgressParameter = None,
    copy: bool = False,
) -> Any:
    """Cluster the cells of a MuData or AnnData, write the clusters into it, and return the fitted model.

    The labels are those of the estimator for the same matrices. A cell may lack modalities. A cell without any of the
    selected modalities is not used, and its values are missing (NaN) in all results.

    These are written, with `key_added="coview"`:

    - `obs["coview"]`: the clusters as categories "0", "1", …, numbered by decreasing size;
    - `obs["coview_membership"]` and `obs["coview_novelty"]`, if the model has them: the membership in the cluster, and
      how novel the cell is, from 0 to 1 (docs/certainty.md);
    - `obsm["X_coview"]`, if the model has scores: the latent scores;
    - `obsm["X_coview_map"]`: the map of these scores in two dimensions (t-SNE), as in the report;
    - `uns["coview"]`: the settings, the reason of the selection and the versions.

    Parameters
    ----------
    data : MuData or AnnData
        In memory or backed by a file.
    modalities : mapping, list of names, or None
        The views. Of a MuData, a mapping from modality to its matrix: a key of its obsm, or else of its layers, or None
        for X. Modalities in a list are represented by obsm["X_pca"] if they have it, otherwise by X. None means all
        modalities. Of an AnnData, a mapping from names of your choice to such keys, or a list of keys.
    n_clusters : int, "auto", or several integers such as range(3, 9)
        As in `Coview`.
    key_added : str
        The key of the results.
    estimator : estimator of this library, optional
        By default Coview(n_clusters, random_state=random_state). Another estimator has its own n_clusters and
        random_state. It is cloned.
    random_state : int, Generator, RandomState or None
        Seed of the default estimator.
    progress : bool or callable, optional
        True shows a bar. A function is called as progress(stage, done, total).
    copy : bool
        Write the results into a copy of the data, and return the copy and the model.

    Returns
    -------
    fitted estimator, or a tuple of the data and the fitted estimator if copy is True
        Keep it to label new cells with `label_cells`, or save it with `coview.save`.

    Examples
    --------
    >>> import numpy as np
    >>> from anndata import AnnData
    >>> rng = np.random.default_rng(0)
    >>> kind = np.repeat([0, 1, 2], 40)
    >>> rna, protein = (rng.normal(size=(3, d))[kind] * 4 + rng.normal(size=(120, d)) for d in (15, 20))
    >>> cells = AnnData(obsm={"X_pca": rna, "protein": protein})
    >>> model = cluster(cells, ["X_pca", "protein"])
    >>> cells.obs["coview"].value_counts().to_dict()
    {'0': 40, '1': 40, '2': 40}
    """
    _check_key(key_added)
    model = _estimator_to_fit(estimator, n_clusters, random_state)
    selected = _selected(data, modalities)
    target = _copied(data) if copy else data
    with reporting(progress) as report:
        views = selected.views(model.fills_cells)
        model.fit_reporting(views, lambda stage, done, total: report(f"fitting: {stage}", done, total))
        _write_results(target, key_added, selected, model, model.check(views), report)
    return (target, model) if copy else model


def label_cells(
    data: Any,
    model: Any,
    modalities: Modalities = None,
    *,
    key_added: str = "coview",
    progress: ProgressParameter = None,
    copy: bool = False,
) -> Any:
    """Label new cells with a fitted model, and write the same results as `cluster` does.

    The matrices need the columns of those that the model was fitted on: the same features in the same order, or
    components of the same rotation. Principal components that are computed anew for the new cells are other columns.

    Parameters
    ----------
    data : MuData or AnnData
    model : fitted estimator
        As returned by `cluster`, or read by `coview.load`.
    modalities : mapping, list of names, or None
        As in `cluster`; None means the modalities of the model. New cells may lack modalities.
    key_added : str
        The key of the results.
    progress : bool or callable, optional
        True shows a bar. A function is called as progress(stage, done, total).
    copy : bool
        Write the results into a copy of the data, and return it.

    Returns
    -------
    None, or the data if copy is True
    """
    _check_key(key_added)
    if not isinstance(model, Clusterer):
        raise InputTypeError(f"model is {kind_of(model)}; give the fitted model that cluster returns")
    selected = _selected(data, _names_known_to(model, data) if modalities is None else modalities)
    target = _copied(data) if copy else data
    with reporting(progress) as report:
        views = model.check(selected.views(model.fills_cells))
        _write_results(target, key_added, selected, model, views, report)
    return target if copy else None


def to_views(data: Any, modalities: Modalities = None) -> Views:
    """Return the matrices of a MuData or AnnData as views, for everything else in this library.

    Parameters
    ----------
    data : MuData or AnnData
    modalities : mapping, list of names, or None
        As in `cluster`.

    Returns
    -------
    Views
        With the names of the cells as row labels. Cells without any of the selected modalities are left out.

    Examples
    --------
    >>> import numpy as np
    >>> from anndata import AnnData
    >>> to_views(AnnData(np.ones((4, 3)), obsm={"protein": np.ones((4, 2))}), {"rna": None, "protein": "protein"})
    Views(4 samples; rna: 3, protein: 2)
    """
    return _selected(data, modalities).views(lambda name: True)


def plot(data: Any, key: str = "coview", *, ax: Axes | None = None) -> Axes:
    """Return the map of the cells, coloured by cluster.

    The colours are those in `uns["coview_colors"]`, as in scanpy's plots. If there are none, the colours of the report
    are used and, for up to ten clusters, stored there. Categories may be renamed or merged before.

    Parameters
    ----------
    data : MuData or AnnData
        With the results of `cluster` or `label_cells`.
    key : str
        The key of the results.
    ax : matplotlib axes, optional
        By default a new figure of pyplot, which notebooks show.

    Returns
    -------
    matplotlib axes
    """
    _check_kind(data)
    basis = f"X_{key}_map"
    if key not in data.obs:
        raise InputError(f"obs has no column {key!r}; call cluster(data, key_added={key!r}) first")
    if basis not in data.obsm:
        raise InputError(f"obsm has no {basis!r}: the model has no scores to map; use a method such as TMvKSCR")
    groups = data.obs[key].astype("category").cat
    names = [str(category) for category in groups.categories]
    colours = data.uns.get(f"{key}_colors", ())
    if len(colours) < len(names):
        colours = [PALETTE[i % len(PALETTE)] for i in range(len(names))]
        if len(names) <= len(PALETTE):
            data.uns[f"{key}_colors"] = np.array(colours)
    positions, codes = np.asarray(data.obsm[basis]), groups.codes.to_numpy()
    shown = (codes >= 0) & np.isfinite(positions).all(axis=1)
    ax = draw_groups(positions[shown], codes[shown], names, [str(colour) for colour in colours], ax)
    left_out = "" if shown.all() else f"; {(~shown).sum():,} cells without a cluster are not drawn"
    scores = data.obsm.get(f"X_{key}", np.empty((0, 2)))
    ax.set(title=key, xlabel=f"{basis}: {name_of_map(scores.shape[1])}{left_out}")
    return ax


class _Selected(NamedTuple):
    """The selected matrices, of the cells that have values in any of them."""

    keys: dict[str, str]  # of the matrices, by view
    tables: dict[str, View]
    has_values: Array  # of all cells
    names: Any  # pandas.Index of those with values

    def views(self, may_have_empty_cells: Callable[[str], bool]) -> Views:
        return views_of_tables(self.tables, self.names, may_have_empty_cells)


def _selected(data: Any, modalities: Modalities) -> _Selected:
    mudata = _check_kind(data)
    keys, cells = _keys(data, modalities, mudata), data.obs_names
    tables, has_values = {}, np.zeros(len(cells), dtype=bool)
    for name, key in keys.items():
        home = data.mod[name] if mudata else data
        table = _read_matrix(name, home, key)
        if not home.obs_names.equals(cells):
            place = _places(name, home.obs_names, cells)
            present = place >= 0
            table = replace(table, matrix=among_all(table.matrix[place[present]], present), present=present)
        dense = isinstance(table.matrix, np.ndarray)
        has_values |= ~np.isnan(table.matrix).all(axis=1) if dense else True if table.present is None else table.present
        tables[name] = table
    if not has_values.any():
        raise InputError(f"no cell has values in {', '.join(tables)}; check the names of the cells")
    if not has_values.all():
        tables = {name: table.take(has_values) for name, table in tables.items()}
    return _Selected(keys, tables, has_values, cells[has_values])


def _check_kind(data: Any) -> bool:
    """Return whether this is a MuData with common cells; raise an error if it is not one of the two kinds."""
    for library, kind in (("mudata", "MuData"), ("anndata", "AnnData")):
        if isinstance(data, getattr(load_extra(library, "scverse", "coview.scverse"), kind)):
            if getattr(data, "axis", 0) == 1:
                raise InputError("data is a MuData with axis=1, whose modalities have different cells; use axis=0")
            return kind == "MuData"
    raise InputTypeError(f"data is {kind_of(data)}; give a MuData or AnnData, or call an estimator with other data")


def _keys(data: Any, modalities: Any, mudata: bool) -> dict[str, str]:
    """Return the key of the matrix of each view."""
    if modalities is None and not mudata:
        known = [*data.obsm, *data.layers, *([_X] if data.X is not None else [])]
        raise InputError(f"modalities=None: name the matrices of the AnnData that are views, among {', '.join(known)}")
    if isinstance(modalities, Mapping):
        named = {str(name): _X if key is None else key for name, key in modalities.items()}
    elif modalities is None or (isinstance(modalities, Iterable) and not isinstance(modalities, (str, bytes))):
        names = list(data.mod if modalities is None else modalities)
        if mudata:
            with_pca = {name for name, modality in data.mod.items() if _PCA in modality.obsm}
            named = {name: _PCA if name in with_pca else _X for name in names}
        else:
            named = {name: name for name in names}
    else:
        raise InputTypeError(
            f"modalities={modalities!r}: expected a mapping such as {{'rna': 'X_pca', 'prot': None}}, or a list"
        )
    if not named:
        raise InputError("modalities is empty; name at least one")
    for name, key in named.items():
        if mudata:
            check_name("modality", name, list(data.mod))
            if hasattr(data.mod[name], "mod"):
                raise InputError(f"modality {name!r} is a MuData itself; give its modalities as those of one MuData")
        if not isinstance(key, str):
            raise InputTypeError(f"modalities[{name!r}]={key!r}: expected a key of obsm or layers, or None for X")
    return named


def _places(name: str, own: Any, cells: Any) -> Array:
    """Return the row in a modality of each cell of a MuData, -1 for cells without it."""
    if not cells.is_unique:
        twice = cells[cells.duplicated()][0]
        raise InputError(f"two cells are named {twice!r}; call data.obs_names_make_unique() and data.update()")
    if not own.is_unique or not own.isin(cells).all():
        raise InputError(f"modality {name!r} has other cells than the MuData states; call data.update() after changes")
    places: Array = own.get_indexer(cells)
    return places


def _read_matrix(name: str, home: Any, key: str) -> View:
    """Return X, or the entry of obsm, or else of layers, with the names of its columns."""
    if key in home.obsm:
        return as_table(f"view {name!r}", _in_memory(name, home.obsm[key]))
    if key in home.layers:
        matrix = home.layers[key]
    elif key == _X and home.X is not None:
        matrix = home.X
    else:
        known = [*home.obsm, *home.layers, *([_X] if home.X is not None else [])]
        if key == _X:
            raise InputError(f"view {name!r} has no X; name one of {', '.join(known)}")
        check_name(f"view {name!r}: key", key, known)
    columns = tuple(map(str, home.var_names)) if home.var_names.is_unique else None
    return replace(as_table(f"view {name!r}", _in_memory(name, matrix)), columns=columns)


def _in_memory(name: str, matrix: Any) -> Matrix:
    """Return a matrix of a backed file, or a lazy one, as an array or sparse matrix."""
    if hasattr(matrix, "to_memory"):  # sparse, in a file
        return matrix.to_memory()
    if hasattr(matrix, "compute"):  # of Dask
        return matrix.compute()
    if type(matrix).__module__.startswith("h5py"):
        needed = int(np.prod(matrix.shape)) * matrix.dtype.itemsize
        require_memory(needed, f"reading view {name!r}", "name a smaller matrix, such as obsm['X_pca']")
        return matrix[()]
    return matrix


def _estimator_to_fit(estimator: Any, n_clusters: Any, random_state: Any) -> Any:
    if estimator is None:
        return Coview(n_clusters, random_state=random_state)
    require_own(estimator, "estimator needs to be one of the")
    if not (isinstance(n_clusters, str) and n_clusters == "auto") or random_state != 0:
        kind = type(estimator).__name__
        raise InputError(f"set n_clusters and random_state in the estimator, as in {kind}(…, random_state=1)")
    return clone(estimator)


def _names_known_to(model: Any, data: Any) -> Modalities:
    """Return the views of a fitted model that are modalities of a MuData, or matrices of an AnnData."""
    mudata = _check_kind(data)
    known = data.mod if mudata else {*data.obsm, *data.layers, _X}
    names = [name for name in model.view_names_ if name in known]
    if not names:
        raise InputError(
            f"data has none of the views {', '.join(model.view_names_)} of the model; name their matrices in modalities"
        )
    return names


def _write_results(data: Any, key: str, selected: _Selected, model: Any, views: Views, report: Progress) -> None:
    """Write the clusters, the certainty, the scores, the map and the settings."""
    report("membership", 0, 3)
    labels, of_training = labels_of(model, views)
    columns = sample_columns(model.model_, views, labels, wanted=("membership", "novelty"))
    report("scores", 1, 3)
    scores = Clustering(model.model_, views, labels, of_training).scores
    report("map", 2, 3)
    _, positions = map_positions(model.model_, scores, labels, of_training)
    data.obs[key] = _categories(model, labels, selected.has_values)
    of_cells = {f"{key}_membership": columns.memberships, f"{key}_novelty": columns.novelties}
    for home, results in ((data.obs, of_cells), (data.obsm, {f"X_{key}": scores, f"X_{key}_map": positions})):
        for name, values in results.items():
            if values is not None:
                everything = np.full((len(selected.has_values), *values.shape[1:]), np.nan, dtype=values.dtype)
                everything[selected.has_values] = values
                home[name] = everything
            elif name in home:  # of an earlier model
                del home[name]
    data.uns[key] = {
        "params": {
            "modalities": selected.keys,
            "estimator": nested_name(model),
            "settings": json.dumps(parameters(model)),
        },
        "n_clusters": len(np.unique(labels)),
        "reason": str(getattr(model, "reason_", "")),
        "versions": versions(),
    }
    report("map", 3, 3)


def _categories(model: Any, labels: Labels, has_values: Array) -> Any:
    """Return the clusters as categories, also those of the model that no cell belongs to."""
    import pandas as pd

    clusters = np.union1d(getattr(model, "labels_", labels), labels)
    codes = np.full(len(has_values), -1)
    codes[has_values] = np.searchsorted(clusters, labels)
    return pd.Categorical.from_codes(codes, categories=[str(number) for number in clusters])


def _copied(data: Any) -> Any:
    if data.isbacked:
        raise InputError("copy=True: data is backed by a file; call data.to_memory() first, or leave copy=False")
    return data.copy()


def _check_key(key: Any) -> None:
    if not isinstance(key, str) or not key or "/" in key:
        raise InputError(f"key_added={key!r}: expected a name without '/', which HDF5 files do not allow")
