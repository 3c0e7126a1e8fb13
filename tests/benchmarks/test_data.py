"""Data sets: generated, stored, and small generated files in the authors' layouts."""

import csv
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.io import savemat

import coview.datasets
from benchmarks import data as datasets
from benchmarks.data import ads as ads_module
from coview.errors import InputError
from coview.methods import METHODS

PAPER = Path(__file__).parents[2] / "benchmarks" / "paper"
needs_store = pytest.mark.skipif(
    datasets.data_folder() is None, reason="real data sets absent: set COVIEW_DATA to their folder"
)

# Stored


@pytest.fixture
def store(tmp_path, monkeypatch):
    """A folder with one set of a dense and a sparse view."""
    monkeypatch.setenv("COVIEW_DATA", str(tmp_path))
    sparse = sp.csr_array(np.array([[0, 2], [1, 0], [0, 0]], dtype=np.uint8))
    np.savez(
        tmp_path / "mine.npz",
        y=np.array([1, 0, 1], dtype=np.int16),
        view_names=["image", "text"],
        x0=np.arange(6, dtype=np.uint16).reshape(3, 2),
        x1_data=sparse.data,
        x1_indices=sparse.indices.astype(np.uint16),
        x1_indptr=sparse.indptr,
        x1_shape=sparse.shape,
        class_names=["cat", "dog"],
    )
    return tmp_path


def test_a_stored_set_is_loaded_unchanged(store):
    views, labels, classes = datasets.load("mine")
    assert views.names == ("image", "text")
    np.testing.assert_array_equal(views["image"], [[0, 1], [2, 3], [4, 5]])
    assert sp.issparse(views["text"])
    np.testing.assert_array_equal(views["text"].toarray(), [[0, 2], [1, 0], [0, 0]])
    assert labels.tolist() == [1, 0, 1]
    assert labels.dtype == np.int64
    assert classes == ("cat", "dog")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("mind", "did you mean 'mine'"),
        ("../mine", "data set '../mine' is not in"),
        ("nothing like it", "known data sets: mine"),
        ("nus_wide", r"get it with read_nus_wide\(path\)"),
        ("synth1_appendix", r"get it with make_synth1\(\)"),
    ],
)
def test_an_unknown_name_is_refused_with_advice(store, name, message):
    with pytest.raises(InputError, match=message):
        datasets.load(name)


def test_a_known_set_that_is_not_stored_is_refused_with_its_reader(store):
    with pytest.raises(InputError, match=r"data set '3sources' is not in .*read_3sources"):
        datasets.load("3sources")


def test_without_a_folder_the_error_says_how_to_set_it(monkeypatch, tmp_path):
    monkeypatch.setenv("COVIEW_DATA", str(tmp_path / "absent"))
    assert datasets.data_folder() is None
    assert datasets.stored_names() == ()
    with pytest.raises(InputError, match=r"set COVIEW_DATA .*default: \.\./shared/data"):
        datasets.load("3sources")


def test_the_default_folder_is_relative_to_the_current_folder(monkeypatch, tmp_path):
    monkeypatch.delenv("COVIEW_DATA", raising=False)
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    assert datasets.data_folder() is None
    (tmp_path / "shared" / "data").mkdir(parents=True)
    assert datasets.data_folder() == tmp_path / "shared" / "data"


def test_damaged_archives_are_named(store):
    (store / "cut.npz").write_bytes((store / "mine.npz").read_bytes()[:200])
    with pytest.raises(InputError, match=r"cut\.npz is not an archive of views"):
        datasets.load("cut")
    np.savez(store / "short.npz", y=np.zeros(2, dtype=int), view_names=["a"], x0=np.ones((3, 1)))
    with pytest.raises(InputError, match=r"short\.npz has 3 samples, but its y has the shape \(2,\)"):
        datasets.load("short")


def test_the_list_marks_available_sets(store):
    (store / "mine.npz").rename(store / "mfeat.npz")
    known = {d.name: d for d in datasets.list_datasets()}
    assert known["mfeat"].available
    assert known["digits"].available
    assert not known["cora"].available
    assert not known["nus_wide"].available
    assert known["nus_wide"].call == "read_nus_wide(path)"
    assert known["ads"].classes == ("nonad", "ad")
    for d in known.values():
        assert d.origin
        assert d.licence


def test_every_call_in_the_list_exists():
    for d in datasets.list_datasets():
        for call in d.call.split(" or "):
            name = call.split("(")[0]
            assert callable(getattr(datasets, name, None) or getattr(coview.datasets, name))


def test_the_list_has_the_sizes_of_what_is_made():
    makers = {"digits": coview.datasets.digits_views, "synth1_appendix": coview.datasets.make_synth1}
    makers |= {"synth2_appendix": coview.datasets.make_synth2, "synth2_unpaired": coview.datasets.make_synth2_unpaired}
    made = {d.name: d for d in datasets.list_datasets() if d.licence == "free"}
    assert made.keys() == makers.keys()
    for name, d in made.items():
        views, labels = makers[name]()
        assert (views.n_samples, tuple(views.n_features.values())) == (d.samples, d.widths)
        assert len(np.unique(labels)) == d.clusters


@needs_store
@pytest.mark.parametrize("name", [d.name for d in datasets.list_datasets() if d.name in datasets.stored_names()])
def test_the_list_has_the_sizes_of_what_is_stored(name):
    known = {d.name: d for d in datasets.list_datasets()}[name]
    views, labels, classes = datasets.load(name)
    assert (views.n_samples, tuple(views.n_features.values())) == (known.samples, known.widths)
    assert np.unique(labels).tolist() == list(range(known.clusters))
    assert classes == known.classes
    if name == "ads":
        assert np.bincount(labels).tolist() == [2820, 459]  # so that "ad" is the name of 1


# The authors' files

READERS = {
    "synth1": datasets.read_synth1,
    "3sources": datasets.read_3sources,
    "reuters600": datasets.read_reuters600,
    "reuters_large": datasets.read_reuters_large,
    "ads": datasets.read_ads,
    "imgc": datasets.read_imgc,
    "youtube_games": datasets.read_youtube_games,
    "nus_wide": datasets.read_nus_wide,
}
SAMPLES, CLUSTERS = 12, 3


def small(monkeypatch, name, n_clusters=CLUSTERS):
    """Shrink the paper's table for one set, and return matrices and labels of that size."""
    rng = np.random.default_rng(0)
    titles = datasets.PAPER_TABLE[name].widths
    widths = {title: 4 + v for v, title in enumerate(titles)}
    monkeypatch.setitem(
        datasets.PAPER_TABLE,
        name,
        replace(datasets.PAPER_TABLE[name], samples=SAMPLES, clusters=n_clusters, widths=widths),
    )
    matrices = [rng.integers(0, 3, size=(SAMPLES, width)).astype(float) for width in widths.values()]
    return matrices, rng.permutation(np.arange(SAMPLES) % n_clusters)


def cell(*values):
    """A MATLAB cell array of one row."""
    cells = np.empty((1, len(values)), dtype=object)
    for i, value in enumerate(values):
        cells[0, i] = value
    return cells


def column(labels):
    return np.asarray(labels, dtype=float)[:, None] + 1


def in_two_parts(matrices, labels, names, splits):
    """The layout of ImgC, Ads, YT-VG and NUS: training and testing rows, and in most files several splits."""
    train, train_labels, test, test_labels = names
    upper, lower = cell(*(x[:7] for x in matrices)), cell(*(x[7:] for x in matrices))
    if not splits:
        return {train: upper, train_labels: column(labels[:7]), test: lower, test_labels: column(labels[7:])}
    other = cell(*(x[5:] for x in matrices)), cell(*(x[:5] for x in matrices))
    return {
        train: cell(upper, other[0]),
        train_labels: cell(column(labels[:7]), column(labels[5:])),
        test: cell(lower, other[1]),
        test_labels: cell(column(labels[7:]), column(labels[:5])),
    }


def layouts(name, matrices, labels):
    """Return the variables of distributed files, by their origin."""
    sparse = [sp.csc_matrix(x) for x in matrices]
    several, single = ("Xs", "Ys", "Xts", "Yts"), ("X", "Y", "Xt", "Yt")
    return {
        "synth1": {
            "authors": {"X": cell(*matrices), "truth": column(labels)},
            "co-regularisation": {**{f"X{v + 1}": x for v, x in enumerate(matrices)}, "truth": column(labels)},
        },
        "3sources": {
            "authors": {"X": cell(*sparse), "Y": cell(*[column(labels)] * 3)},
            "samples in columns": {"data": cell(*(x.T for x in matrices)), "truelabel": cell(*[column(labels).T] * 3)},
            "other order": {"X": cell(*sparse[::-1]), "gt": column(labels)},
            "indicators": {"X": cell(*sparse), "Y": np.eye(CLUSTERS)[labels]},
            "sparse indicators": {"X": cell(*sparse), "Y": sp.csc_matrix(np.eye(CLUSTERS)[labels].T)},
        },
        "reuters600": {
            "authors": {**dict(zip(("En", "Fr", "Gr"), sparse, strict=False)), "GND": column(labels).T},
            "tensor": {"X": cell(*(x.T for x in sparse)), "gt": column(labels)},
        },
        "reuters_large": {"authors": {"X": cell(*sparse), "Y": column(labels)}},
        "ads": {"authors": in_two_parts(matrices, labels, single, splits=True)},
        "imgc": {
            "authors": in_two_parts(matrices, labels, several, splits=True),
            "one split": in_two_parts([*matrices[:2], sparse[2].tocsr()], labels, single, splits=False),
        },
        "youtube_games": {"authors": in_two_parts(matrices, labels, several, splits=True)},
        "nus_wide": {"authors": in_two_parts(matrices, labels, several, splits=True)},
    }[name]


KNOWN_LAYOUTS = [
    (name, layout)
    for name in READERS
    for layout in layouts(name, [np.eye(SAMPLES)[:, : 4 + v] for v in range(3)], np.arange(SAMPLES) % CLUSTERS)
]


@pytest.mark.parametrize(("name", "layout"), KNOWN_LAYOUTS)
def test_the_authors_files_are_read_in_every_known_layout(name, layout, tmp_path, monkeypatch):
    matrices, labels = small(monkeypatch, name)
    path = tmp_path / "authors.mat"
    savemat(path, layouts(name, matrices, labels)[layout])
    views, found, classes = READERS[name](path)
    assert views.names == tuple(datasets.PAPER_TABLE[name].widths)
    for x, expected in zip(views.values(), matrices, strict=True):
        np.testing.assert_array_equal(x.toarray() if sp.issparse(x) else x, expected)
    np.testing.assert_array_equal(found, labels)
    assert classes is None
    if name == "reuters_large":
        assert all(map(sp.issparse, views.values()))


@pytest.mark.parametrize("name", READERS)
def test_a_file_of_another_size_is_refused_with_both_sizes(name, tmp_path, monkeypatch):
    table = datasets.PAPER_TABLE[name]
    with monkeypatch.context() as shrunk:
        matrices, labels = small(shrunk, name)
        savemat(tmp_path / "small.mat", layouts(name, matrices, labels)["authors"])
    with pytest.raises(InputError) as caught:
        READERS[name](tmp_path / "small.mat")
    message = str(caught.value)
    assert f"small.mat is not the file of {table.paper_name}: expected {table.samples} samples" in message
    assert "found views of 12 by" in message
    assert "12 labels and 3 clusters" in message


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"X": None}, "found the variables Y$"),
        ({"Y": None}, "found the variables X$"),
        ({"X": None, "Y": None, "Xt": np.eye(2)}, "found a plain variable"),
        ({"X": cell(np.eye(3), np.eye(3))}, "found a cell array of 2 in place of the views"),
        ({"X": np.eye(3)}, "found a plain variable of 3 by 3 in place of the views"),
        ({"X": cell(np.eye(3), "text", {"a": 1})}, "found a view that is not a numeric matrix"),
        ({"Y": cell(*(np.roll(np.arange(12) % 3, v) for v in range(3)))}, "found labels that differ between views"),
        ({"Y": cell(cell(1.0), cell(2.0))}, "found labels that are neither numbers nor strings"),
        ({"Y": np.zeros((12, 1))}, "found views of .* and 1 clusters"),
        ({"Y": (np.arange(11) % 3)[:, None]}, "found views of .*, 11 labels"),
        ({"X": cell(np.ones((12, 4)), np.ones((12, 5)), np.ones((12, 7)))}, "found views of .*, 12 by 7"),
        ({"X": cell(np.ones((12, 4)), np.ones((12, 5)), np.ones((12, 5)))}, "found views of .*, 12 by 5"),
        (
            {"Xt": cell(*(np.ones((2, 3)) for _ in range(3))), "Yt": np.ones((2, 1))},
            "found parts of one view of 4 and 3 columns",
        ),
        ({"Xt": cell(*(np.ones((2, 4 + v)) for v in range(3)))}, "found the variables X, Xt, Y$"),
    ],
)
def test_the_wrong_file_is_refused_in_one_sentence(change, message, tmp_path, monkeypatch):
    matrices, labels = small(monkeypatch, "3sources")
    variables = {"X": cell(*matrices), "Y": column(labels), **change}
    savemat(tmp_path / "wrong.mat", {name: value for name, value in variables.items() if value is not None})
    with pytest.raises(InputError, match=rf"wrong\.mat is not the file of 3Sources: expected 12 samples.*{message}"):
        datasets.read_3sources(tmp_path / "wrong.mat")


def test_a_file_that_is_not_matlab_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"absent\.mat does not exist"):
        datasets.read_imgc(tmp_path / "absent.mat")
    (tmp_path / "text.mat").write_text("not MATLAB at all, but text that goes on for a while" * 10)
    with pytest.raises(InputError, match=r"text\.mat cannot be read as a MATLAB file"):
        datasets.read_imgc(tmp_path / "text.mat")
    header = b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM"
    (tmp_path / "new.mat").write_bytes(header.ljust(512, b"\0") + b"\x89HDF\r\n\x1a\n")
    with pytest.raises(InputError, match=r"new\.mat is a MATLAB file of version 7\.3; save it with -v7"):
        datasets.read_imgc(tmp_path / "new.mat")


# Ads as text


@pytest.fixture
def ad_data(tmp_path, monkeypatch):
    """A small ad.data: 4 images, and two columns for each kind of term but one for captions."""
    columns = dict.fromkeys(("height", "width", "aratio", "local"), 1)
    columns |= {"url": 2, "origurl": 2, "ancurl": 2, "alt": 2, "caption": 1}
    monkeypatch.setattr(ads_module, "COLUMNS", columns)
    widths = {"url+alt+caption": 5, "origurl": 2, "ancurl": 2}
    shape = replace(datasets.PAPER_TABLE["ads"], samples=4, widths=widths)
    monkeypatch.setitem(datasets.PAPER_TABLE, "ads", shape)
    path = tmp_path / "ad.data"
    path.write_text(
        " 125, 125, 1.0,1,1,0,0,1,0,0,0,0,1,ad.\n"
        "   ?,   ?,   ?,0,0,1,1,0,0,0,1,0,0,nonad.\n"
        "\n"
        "  57, 468, 8.2,?,0,0,0,0,1,1,0,1,0,ad.\n"
        "  33, 230, 6.9,1,0,0,0,0,0,0,0,0,0,nonad.\n"
    )
    return path


def test_raw_ads_are_split_into_their_views(ad_data):
    views, labels, classes = datasets.read_ads(ad_data)
    assert views.names == ("url+alt+caption", "origurl", "ancurl")
    np.testing.assert_array_equal(
        views["url+alt+caption"].toarray(),
        [[1, 0, 0, 0, 1], [0, 1, 1, 0, 0], [0, 0, 0, 1, 0], [0, 0, 0, 0, 0]],
    )
    np.testing.assert_array_equal(views["origurl"].toarray(), [[0, 1], [1, 0], [0, 0], [0, 0]])
    np.testing.assert_array_equal(views["ancurl"].toarray(), [[0, 0], [0, 0], [1, 1], [0, 0]])
    assert [classes[label] for label in labels] == ["ad", "nonad", "ad", "nonad"]


def test_raw_ads_are_split_by_the_names_of_the_columns(ad_data, tmp_path):
    """The columns of the two kinds of URLs are swapped here."""
    names = tmp_path / "ad.names"
    names.write_text(
        "| a comment: with a colon\nad, nonad | classes.\n\nheight: continuous.\nwidth: continuous.\n"
        "aratio: continuous.\nlocal: 0,1.\nurl*a: 0,1.\nurl*b+c: 0,1.\nancurl*d: 0,1.\nancurl*e: 0,1. | why\n"
        "origurl*f: 0,1.\norigurl*g: 0,1.\nalt*h: 0,1.\nalt*i: 0,1.\ncaption*j: 0,1.\n",
        encoding="latin-1",
    )
    swapped, _, _ = datasets.read_ads(ad_data, names)
    plain, _, _ = datasets.read_ads(ad_data)
    for one, other in (("origurl", "ancurl"), ("ancurl", "origurl"), ("url+alt+caption", "url+alt+caption")):
        np.testing.assert_array_equal(swapped[one].toarray(), plain[other].toarray())


def test_the_wrong_text_is_refused_with_its_line(ad_data, tmp_path):
    lines = ad_data.read_text().splitlines()
    for change, message in (
        ("1,2,ad.", r"expected 13 values and then 'ad\.' or 'nonad\.', found 3 fields that end in 'ad\.' in line 2"),
        (lines[1].replace("nonad.", "other"), r"found 14 fields that end in 'other' in line 2"),
        (lines[1].replace("0,0,1,1", "0,?,1,1"), r"line 2: expected 0 or 1 for a term, found '\?'"),
    ):
        ad_data.write_text("\n".join([lines[0], change, *lines[2:]]))
        with pytest.raises(InputError, match=message):
            datasets.read_ads(ad_data)
    ad_data.write_text("\n".join(lines[:-1]))
    with pytest.raises(InputError, match=r"expected 4 samples.*found views of 3 by 5, 3 by 2, 3 by 2, 3 labels"):
        datasets.read_ads(ad_data)
    (tmp_path / "other.names").write_text("sepal length: continuous.\n")
    with pytest.raises(InputError, match=r"other\.names is not ad\.names: .*found \['sepal length'\]"):
        datasets.read_ads(ad_data, tmp_path / "other.names")
    with pytest.raises(InputError, match="does not exist"):
        datasets.read_ads(tmp_path / "absent.data")


def test_the_columns_of_ads_make_the_views_of_the_paper():
    columns = ads_module.COLUMNS
    assert sum(columns.values()) == 1558  # as the publishers count them
    for title, width in datasets.PAPER_TABLE["ads"].widths.items():
        assert sum(columns[place] for place in title.split("+")) == width


# Published tables


@pytest.fixture(scope="module")
def published():
    with (PAPER / "published.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_the_published_tables_are_complete(published):
    cells = {(row["table"], row["dataset"], row["method"], row["metric"]) for row in published}
    assert len(cells) == len(published) == 2 * 11 * 8 + 11 * 6 + 4 * 3
    names = {shape.paper_name for shape in datasets.PAPER_TABLE.values()}
    assert {row["dataset"] for row in published} == names
    assert {row["metric"] for row in published} == {"ari", "nmi", "seconds"}
    for row in published:
        value = float(row["value"])
        assert value > 0 if row["metric"] == "seconds" else -1 <= value <= 1


def test_the_best_values_are_those_that_the_paper_marks(published):
    """The paper marks the best value of each column, so a transcription error would change it."""
    columns = {}
    for row in published:
        columns.setdefault((row["table"], row["dataset"], row["metric"]), []).append(row)
    for (table, dataset, metric), rows in columns.items():
        sign = -1 if metric == "seconds" else 1
        eligible = [r for r in rows if metric != "seconds" or not r["method"].startswith("KSC")]
        best = max(sign * float(r["value"]) for r in eligible)
        marked = [r for r in rows if "bold" in r["note"] or "underlined" in r["note"]]
        assert [sign * float(r["value"]) for r in marked] == [best], (table, dataset, metric)


def test_the_published_sums_match_those_of_the_printed_tables(published):
    """The sums were computed from the printed tables, independently of the file."""
    sums = {}
    for row in published:
        key = (row["table"], row["method"])
        sums[key] = round(sums.get(key, 0) + float(row["value"]), 3)
    assert sums["ari", "TMvKSCR"] == 4.501
    assert sums["ari", "KSC (best)"] == 2.778
    assert sums["nmi", "SFMC"] == 3.639
    assert sums["nmi", "TMvKSCR"] == 4.494
    assert sums["time", "tSVD-MSC"] == 6201.8
    assert sums["time", "TMvKSCR"] == 7.53


# Settings


@pytest.fixture(scope="module")
def settings():
    with (PAPER / "settings.toml").open("rb") as file:
        return tomllib.load(file)


def test_the_ranges_are_those_of_the_appendix(settings):
    kernels, flagship = settings["kernels"], settings["methods"]["TMvKSCR"]
    for grid, ends in (
        (kernels["rbf"]["full"]["log_sigma2"], (-7, 7)),
        (kernels["normpoly"]["full"]["log_t"], (-5, 5)),
        (kernels["normpoly"]["full"]["degree"], (1, 2)),
        (flagship["full"]["rho"], (0, 1)),
        (settings["figures"]["full"]["kappa"], (0, 3)),
    ):
        assert (grid[0], grid[-1]) == ends
        assert grid == sorted(set(grid))


def test_the_settings_cover_every_data_set_of_the_paper(settings):
    names = {shape.paper_name: shape for shape in datasets.PAPER_TABLE.values()}
    assert settings["datasets"].keys() == names.keys()
    known = {d.name for d in datasets.list_datasets()}
    for title, entry in settings["datasets"].items():
        assert len(entry["kernel"]) == len(names[title].widths)
        assert set(entry["kernel"]) <= settings["kernels"].keys()
        assert ("not_run_here" in entry) != ("name" in entry)
        for source in (entry.get("name"), entry.get("also")):
            assert source is None or source in known or callable(getattr(datasets, source))
    assert set(settings["stand_ins"]) <= known


def test_the_settings_cover_every_method_of_the_paper(settings, published):
    assert settings["methods"].keys() == {row["method"] for row in published}
    for entry in settings["methods"].values():
        parameters = METHODS[entry["estimator"]]().get_params()
        assert not entry["kernel"] or "kernel" in parameters
        for extent in ("full", "coarse", "quick"):
            grids = {name: grid for name, grid in entry.get(extent, {}).items() if isinstance(grid, list)}
            for name, grid in grids.items():
                assert name.removeprefix("log10_") in parameters
                assert len(grid) == len(set(grid)) > 0


# Statements of the data page


def repeats(x):
    rows = x.toarray() if sp.issparse(x) else x
    return len(rows) - len(np.unique(rows, axis=0))


@needs_store
def test_the_authors_synth1_repeats_one_point():
    views, labels, _ = datasets.load("synth1")
    assert np.bincount(labels).tolist() == [575, 425]
    np.testing.assert_array_equal(np.unique(views["X2"][labels == 0], axis=0), [[1, 2]])


@needs_store
def test_half_of_the_stored_sets_are_sorted_by_class():
    changes = {}
    for name in {d.name for d in datasets.list_datasets()} & set(datasets.stored_names()):
        labels = datasets.load(name).labels
        changes[name] = np.count_nonzero(np.diff(labels)) == len(np.unique(labels)) - 1
    page = (PAPER.parents[1] / "docs" / "paper" / "data.md").read_text()
    listed = page.split("are sorted by class: ")[1].split(". Rows")[0]
    assert {name for name, is_sorted in changes.items() if is_sorted} == set(listed.split("`")[1::2])


@needs_store
def test_ads_has_empty_and_repeated_rows():
    views, labels, _ = datasets.load("ads")
    assert labels[:459].all()
    assert not labels[459:].any()
    assert [int((np.diff(x.indptr) == 0).sum()) for x in views.values()] == [335, 833, 941]
    assert [len(labels) - repeats(x) for x in views.values()] == [1165, 237, 534]
    together = sp.hstack(list(views.values())).toarray()
    assert (~together.any(axis=1)).sum() == 176
    _, group = np.unique(together, axis=0, return_inverse=True)
    ads, all_of_them = np.bincount(group, weights=labels), np.bincount(group)
    mixed = (ads > 0) & (ads < all_of_them)
    assert (len(all_of_them), mixed.sum(), all_of_them[mixed].sum()) == (1938, 14, 299)


@needs_store
def test_the_first_view_of_imgc_is_beyond_the_papers_bandwidths():
    x = datasets.load("imgc").views["HSV768"]
    squares = np.square(x).sum(axis=1)
    distances = (squares[:, None] + squares - 2 * x @ x.T)[np.triu_indices(len(x), 1)]
    apart = distances[distances > 1]  # one row repeats another
    assert np.exp(-apart.min() / np.exp(7)) == 0


def test_no_partition_of_unpaired_synth2_scores_above_its_first_labels():
    """Only the number of rows of each kind matters; the test checks every ninth number and the ends."""
    from sklearn.metrics import adjusted_rand_score

    _, labels = coview.datasets.make_synth2_unpaired(0)
    kinds = np.array([[np.sum((labels == (a, b)).all(axis=1)) for b in (0, 1)] for a in (0, 1)])
    assert kinds.tolist() == [[625, 172], [162, 41]]

    def pairs(n):
        return n * (n - 1) / 2

    def ari(inside, sizes, in_first):
        both = sum(pairs(i) + pairs(n - i) for i, n in zip(inside, sizes, strict=True))
        found, true = pairs(in_first) + pairs(1000 - in_first), sum(map(pairs, sizes))
        by_chance = found * true / pairs(1000)
        return (both - by_chance) / ((found + true) / 2 - by_chance)

    steps = [np.unique([*range(0, n, 9), n]).astype(float) for n in kinds.ravel()]
    a, b, c, d = np.meshgrid(*steps, indexing="ij", sparse=True)
    total = a + b + c + d
    rows = ari((a + b, c + d), kinds.sum(axis=1), total)
    columns = ari((a + c, b + d), kinds.sum(axis=0), total)
    ceiling = np.mean([1, adjusted_rand_score(labels[:, 0], labels[:, 1])])
    assert ceiling == pytest.approx(0.496, abs=5e-4)
    assert ((rows + columns) / 2).max() == pytest.approx(ceiling)


def test_generated_documents_have_the_sparsity_of_the_five_languages():
    from benchmarks.data.topics import SHAPE, make_topics

    views, truth = make_topics(0, n_samples=400)
    again, _ = make_topics(0, n_samples=400)
    assert {name: x.shape[1] for name, x in views.items()} == SHAPE.widths
    assert len(set(truth.tolist())) == SHAPE.clusters
    for name, x in views.items():
        assert 75 < x.nnz / 400 < 95, name  # 81 to 90 in the real documents
        assert (x != again[name]).nnz == 0
        assert x.data.min() > 0
