"""Mistakes of new users, in the terminal and in Python, with words of the message that each of them gets.

Exit code 2 is an error of one line, and nothing is written. Exit code 0 is a result with a note, because the input may
be meant. `tests/bad_files.py` has damaged files, and `tests/test_bad_input.py` invalid tables and parameters.
"""

import pickle
import warnings
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import cdist
from sklearn.exceptions import NotFittedError

from coview import KSC, RBF, Coview, FixedSize, InputError, TMvKSCR, Views, load, read_views, save, summarize
from coview.compare import compare
from coview.data.mistakes import classes_among_features
from tests.cli.running import call, refused

N = 30
CLASSES = np.arange(N) % 3
SPECIES = np.array(["setosa", "virginica", "versicolor"])[CLASSES]
_RNG = np.random.default_rng(0)
TEXT = 9 * _RNG.normal(size=(3, 4))[CLASSES] + _RNG.normal(size=(N, 4))
IMAGE = 9 * _RNG.normal(size=(3, 3))[CLASSES] + _RNG.normal(size=(N, 3))
TEXT_FRAME = pd.DataFrame(TEXT.round(3), columns=[f"t{j}" for j in range(4)])
IMAGE_FRAME = pd.DataFrame(IMAGE.round(3), columns=[f"i{j}" for j in range(3)])
IDS = [f"s{i:02}" for i in range(N)]
FAR = np.where(np.arange(N) % 9, IMAGE[:, 0], -999)


def with_ids(frame, ids, name="id"):
    return pd.DataFrame({name: ids, **frame})


def changed(values):
    """The table of the images with other values in its first column."""
    return IMAGE_FRAME.assign(i0=list(values))


TABLES = {
    "text": TEXT_FRAME,
    "image": IMAGE_FRAME,
    "text_ids": with_ids(TEXT_FRAME, IDS),
    "image_ids": with_ids(IMAGE_FRAME, IDS)[::-1],
    "text_numbers": with_ids(TEXT_FRAME, range(1, N + 1)),
    "case": with_ids(IMAGE_FRAME, [name.upper() for name in IDS]),
    "suffix": with_ids(IMAGE_FRAME, [f"{name}-1" for name in IDS]),
    "prefix": with_ids(IMAGE_FRAME, [f"patient {i}" for i in range(N)]),
    "zeros": with_ids(IMAGE_FRAME, [f"{i:03}" for i in range(1, N + 1)]),
    "floats": with_ids(IMAGE_FRAME, [f"{i}.0" for i in range(1, N + 1)]),
    "people": with_ids(IMAGE_FRAME, [f"{letter}x" for letter in "abcdefghijklmnopqrstuvwxyzäöüß"]),
    "truth": with_ids({"species": SPECIES}, IDS),
    "one_class": with_ids({"species": ["setosa"] * N}, IDS),
    "measured": with_ids({"age": 20 + IMAGE[:, 0].round(4)}, IDS),
    "truth_only": pd.DataFrame({"species": SPECIES}),
    "with_classes": TEXT_FRAME.assign(target=CLASSES),
    "with_species": TEXT_FRAME.assign(species=SPECIES),
    "one_differs": pd.DataFrame({"x": [5.5] * (N - 1) + [6.5]}),
    "few_rows": TEXT_FRAME.iloc[CLASSES],
    "far": changed(FAR),
    "distances": pd.DataFrame(cdist(IMAGE, IMAGE), columns=IDS),
    "percent": changed(f"{value:.1f}%" for value in IMAGE[:, 0]),
    "prices": changed(f"${abs(value):.2f}" for value in IMAGE[:, 0]),
    "units": changed(f"{value:.1f} mg/dl" for value in IMAGE[:, 0]),
    "dates": changed(pd.date_range("2020-01-01", periods=N).astype(str)),
    "below_limit": changed(f"{'<' if i % 5 == 0 else ''}{abs(value):.1f}" for i, value in enumerate(IMAGE[:, 0])),
}
TEXTS = {
    "page.csv": "<!DOCTYPE html>\n<html><body>Sign in</body></html>\n",
    "pointer.csv": "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n",
    "comment.csv": "# measured in 2020\n" + IMAGE_FRAME.to_csv(index=False),
    "no_header.csv": IMAGE_FRAME.to_csv(index=False, header=False),
    "correlation.csv": TEXT_FRAME.corr().to_csv(),
    "text.json": TEXT_FRAME.to_json(),
}


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    """A folder with the files of a user, and two runs."""
    folder = tmp_path_factory.mktemp("desk")
    for name, table in TABLES.items():
        table.to_csv(folder / f"{name}.csv", index=False)
    for name, content in TEXTS.items():
        (folder / name).write_text(content, encoding="utf-8")
    np.save(folder / "left.npy", IMAGE)
    np.save(folder / "right.npy", IMAGE[:, ::-1])
    np.save(folder / "classes.npy", CLASSES)
    (folder / "text.pkl").write_bytes(pickle.dumps(TEXT))
    return folder


@pytest.fixture
def at_desk(desk, monkeypatch, capsys):
    monkeypatch.chdir(desk)
    if not (desk / "run").exists():
        for views, run in ((BOTH, "run"), (ARRAYS, "arrays")):
            assert call(capsys, "fit", *views, *QUICK, "-o", run)[0] == 0


class Mistake(NamedTuple):
    """What is typed, words of the message, and the exit code."""

    typed: tuple[str, ...]
    words: tuple[str, ...]
    code: int = 2


def views(**files):
    return tuple(f"--view={name}={file}" for name, file in files.items())


QUICK = ("-k3", "-m", "tmvkscr", "--no-report")
BOTH = views(text="text.csv", image="image.csv")
ARRAYS = views(left="left.npy", right="right.npy")
NAMED = (*views(text="text_ids.csv", image="image_ids.csv"), "--ids=id")
NEW_RUN = ("-o", "new", "--force")


def fit(*typed):
    return ("fit", *typed, *QUICK, *NEW_RUN)


def image(file):
    """Fit a valid view and this file."""
    return fit(*views(text="text.csv", image=file))


def ids(file, first="text_ids.csv"):
    """Fit two views by their ids."""
    return fit(*views(text=first, image=file), "--ids=id")


TERMINAL = {
    # Results without a word before
    "the classes are a column of the features": Mistake(
        fit(*views(text="with_classes.csv", image="image.csv")),
        ("view 'text' has the column 'target' with 3 different values, which looks like classes", "drop it, unless"),
        code=0,
    ),
    "the known classes are categories among the features": Mistake(
        fit(*views(text="with_species.csv"), "--categories=onehot", "--truth=with_species.csv::species"),
        ("one value for each known class (column 'species')", "drop them if"),
        code=0,
    ),
    "the labels of an earlier run are a view": Mistake(
        (*image("run/labels.csv"), "--no-ids"),
        ("view 'image' (run/labels.csv) has strings in the column 'best_view'", "drop it"),
    ),
    "the map of an earlier run is a view": Mistake(
        (*image("run/map.csv"), "--no-ids"),
        ("view 'image' has the column 'cluster'", "labels of an earlier clustering"),
        code=0,
    ),
    "the same file is two views": Mistake(
        image("text.csv"), ("the views 'text' and 'image' have the same values", "given twice"), code=0
    ),
    "a view is constant but for one sample": Mistake(
        image("one_differs.csv"), ("view 'image' has the same values in 29 of 30 samples", "drop the view"), code=0
    ),
    "-999 stands for missing values": Mistake(
        image("far.csv"), ("view 'image' has the value -999 far from all others (column 'i0')", "impute"), code=0
    ),
    "distances are given as features": Mistake(
        image("distances.csv"), ("30 x 30 values with zeros on its diagonal", "--kernel precomputed"), code=0
    ),
    "the file has no column names": Mistake(
        image("no_header.csv"), ("(no_header.csv): the first line contains numbers and is read as a sample",), code=0
    ),
    "more clusters than different samples": Mistake(
        (*fit(*views(text="few_rows.csv")), "-k5", "--kernel=rbf"),
        ("found 3 distinct clusters instead of -k 5",),
        code=0,
    ),
    "the arrays of two views are swapped in predict": Mistake(
        ("predict", "arrays", *views(left="right.npy", right="left.npy"), "-o", "new.csv", "--force"),
        ("left, right have equal numbers of columns without names", "swapped files are not detected"),
        code=0,
    ),
    "one array is given for two views in predict": Mistake(
        ("predict", "arrays", *views(left="left.npy", right="left.npy"), "-o", "new.csv", "--force"),
        ("the views 'left' and 'right' have the same values",),
        code=0,
    ),
    "one weight per view without the names of the views": Mistake(
        fit(*BOTH, "--kappa=1,2"), ("--kappa 1 and 2: expected one value", "--kappa text=1 --kappa image=2")
    ),
    "one kernel per view without the names of the views": Mistake(
        fit(*BOTH, "--kernel=rbf", "--kernel=linear"), ("--kernel text=rbf --kernel image=linear",)
    ),
    "two kernels for one view": Mistake(
        fit(*BOTH, "--kernel=text=rbf", "--kernel=text=linear"), ("--kernel is given twice for the view 'text'",)
    ),
    "the demonstration replaces a run": Mistake(
        ("demo", "-o", "run"), ("run has results of another run, which coview demo does not replace", "another folder")
    ),
    "a report is written to a table": Mistake(
        ("report", "run", "-o", "text.csv"), ("-o text.csv: expected a name that ends in .html",)
    ),
    # Known classes
    "all samples have one class": Mistake(
        fit(*NAMED, "--truth=one_class.csv"), ("one_class.csv (--truth) has the same class 'setosa' for all 30",)
    ),
    "the classes are measurements": Mistake(
        fit(*NAMED, "--truth=measured.csv"), ("measured.csv (--truth) has a different class for each of the 30",)
    ),
    "the classes lack the ids": Mistake(
        fit(*NAMED, "--truth=truth_only.csv"), ("has the column 'species' only; add a column 'id' with the ids",)
    ),
    "the ids are named as the classes": Mistake(
        fit(*NAMED, "--truth=truth.csv::id"), ("the column 'id' has the ids of the samples; name that of the classes",)
    ),
    "the column of the classes is not named": Mistake(
        fit(*BOTH, "--truth=run/map.csv"), ("name that of the classes, as in map.csv::cluster",)
    ),
    "the classes are a view": Mistake(image("classes.npy"), ("view 'image' (classes.npy) is 1-D; a view is 2-D",)),
    # Ids
    "ids in upper case": Mistake(ids("case.csv"), ("differ in upper and lower case, as in 'S00' and 's00'",)),
    "ids with an ending": Mistake(ids("suffix.csv"), ("differ in their endings, as in 's00-1' and 's00'",)),
    "ids with a word before the number": Mistake(
        ids("prefix.csv"), ("differ in the text around the number, as in 'patient 1' and 's01'",)
    ),
    "ids with leading zeros": Mistake(
        ids("zeros.csv", "text_numbers.csv"), ("differ in leading zeros, as in '001' and '1'", "in the same way")
    ),
    "ids that were read as floats": Mistake(
        ids("floats.csv", "text_numbers.csv"), ("differ in a decimal point, as in '1.0' and '1'",)
    ),
    "ids of other samples": Mistake(ids("people.csv"), ("its first id is 'ax', that of the first view 's00'",)),
    "ids for arrays": Mistake(fit(*ARRAYS, "--ids=id"), ("has no column of ids, nor has any other view; leave out",)),
    # Cells
    "percent signs": Mistake(
        image("percent.csv"),
        (
            "column 'i0'",
            "%' in row 0); write numbers without signs",
        ),
    ),
    "prices": Mistake(image("prices.csv"), ("column 'i0' ('$", "write numbers without signs and units")),
    "units": Mistake(image("units.csv"), ("column 'i0'", "mg/dl' in row 0); write numbers without signs and units")),
    "dates": Mistake(image("dates.csv"), ("'2020-01-01' in row 0), which are dates; encode them as numbers",)),
    "values below the limit of detection": Mistake(
        image("below_limit.csv"), ("column 'i0' ('<", "which otherwise contains numbers; correct or drop it")
    ),
    # Files
    "a web page instead of the file": Mistake(image("page.csv"), ("(page.csv) is a web page", "download the file")),
    "a pointer of Git LFS": Mistake(image("pointer.csv"), ("(pointer.csv) is a pointer of Git LFS", "git lfs pull")),
    "a comment above the column names": Mistake(
        image("comment.csv"), ("1 column in its first line and 3 in line 2; delete lines above the column names",)
    ),
    "correlations between the features": Mistake(
        image("correlation.csv"), ("view 'image' (correlation.csv) has 4 samples but view 'text' (text.csv) has 30",)
    ),
    "a pickle": Mistake(image("text.pkl"), ("view 'image' (text.pkl) has an unknown ending; expected .csv",)),
    "JSON": Mistake(image("text.json"), ("view 'image' (text.json) has an unknown ending; expected .csv", ".jsonl")),
    "the folder of a run as a view": Mistake(image("run"), ("view 'image' (run) is a folder", "give a file")),
    "a model as a view": Mistake(image("run/model.safetensors"), ("view 'image'", "unknown ending; expected .csv")),
    "labels as a model": Mistake(
        ("predict", "run/labels.csv", *BOTH, "-o", "new.csv", "--force"), ("run/labels.csv", "not a model saved by")
    ),
    "files of two views swapped in predict": Mistake(
        ("predict", "run", *views(text="image.csv", image="text.csv"), "-o", "new.csv", "--force"),
        ("view 'text' (image.csv) lacks the column 't0'",),
    ),
    "the report of a table": Mistake(
        ("report", "text.csv"), ("text.csv is not the summary.json of a run; give the folder that coview fit",)
    ),
    # Options
    "files without --view": Mistake(("fit", "text.csv", "image.csv", "-k3"), ("Missing option '--view'",)),
    "a view without its name": Mistake(fit("--view=text.csv"), ("--view text.csv: expected a name and a file",)),
    "one name for two views": Mistake(
        fit("--view=a=text.csv", "--view=a=image.csv"), ("--view names 'a' twice; give every view its own name",)
    ),
    "two views in one option": Mistake(
        fit("--view=text=text.csv,image=image.csv"), ("repeat --view, as in --view text=text.csv --view image=image",)
    ),
    "a pattern": Mistake(fit("--view=text=t*.csv"), ("(t*.csv) does not exist; patterns are not expanded",)),
    "a path of another computer": Mistake(
        fit(r"--view=a=C:\data\a.csv"), (r"view 'a' (C:\data\a.csv) does not exist",)
    ),
    "a range with a hyphen": Mistake(("fit", *BOTH, "-k", "2-5"), ("-k 2-5: expected an integer", "such as 2..8")),
    "a range from zero": Mistake(("fit", *BOTH, "-k", "0..3"), ("-k 0..3: expected an integer of at least 2",)),
    "a parameter of scikit-learn's kernel": Mistake(
        fit(*BOTH, "--kernel=rbf:gamma=2"), ("rbf has no parameter 'gamma'. Its parameters: sigma2",)
    ),
    "a kernel by its other name": Mistake(fit(*BOTH, "--kernel=gaussian"), ("--kernel 'gaussian' is unknown", "rbf")),
    "features as a Gram matrix": Mistake(
        fit(*BOTH, "--kernel=precomputed"), ("view 'text' is 30×4", "expects a square Gram matrix")
    ),
    "an option of another method": Mistake(
        ("fit", *BOTH, "-k3", "-m", "opmc", "--rho=0.5", *NEW_RUN), ("the method opmc has no --rho; leave it out",)
    ),
    "a percentage of the samples": Mistake(fit(*BOTH, "--n-train=50%"), ("--n-train 50%: expected a number",)),
}


@pytest.mark.parametrize("mistake", TERMINAL.values(), ids=TERMINAL)
def test_mistakes_in_the_terminal(mistake, at_desk, capsys):
    if mistake.code:
        message = refused(capsys, *mistake.typed, code=mistake.code)
    else:
        code, _, message = call(capsys, *mistake.typed)
        assert code == 0, message
    for words in mistake.words:
        assert words in message


def test_spaces_around_the_equals_sign_of_a_view_are_no_mistake(at_desk, capsys):
    assert call(capsys, *fit("--view=text = text.csv", "--view= image=image.csv"))[0] == 0


def test_the_demonstration_replaces_its_own_results(at_desk, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("coview.datasets.digits_views", lambda: ({"a": TEXT, "b": IMAGE}, CLASSES))
    for _ in range(2):
        assert call(capsys, "demo", "-q", "-o", tmp_path / "demo")[0] == 0


@pytest.fixture(scope="module")
def fitted():
    return TMvKSCR(3, random_state=0).fit({"text": TEXT_FRAME, "image": IMAGE_FRAME})


def model():
    return TMvKSCR(3, random_state=0)


def told(fitted, **truth):
    return summarize(fitted, {"text": TEXT_FRAME, "image": IMAGE_FRAME}, **truth)


# A function of a fitted model and a folder, and words of the error.
PYTHON = {
    "the second view as y": (lambda m, _: model().fit(TEXT_FRAME, IMAGE_FRAME), ["y is ignored", "fit([text, image])"]),
    "the second view as y of fit_predict": (lambda m, _: KSC(3).fit_predict(TEXT, IMAGE), ["table of 30 x 3 values"]),
    "columns in a list": (
        lambda m, _: model().fit([TEXT_FRAME.t0, TEXT_FRAME.t1]),
        ["list of columns (a Series)", "frame[['a', 'b']]"],
    ),
    "columns in a mapping": (lambda m, _: model().fit({"x": TEXT_FRAME.t0}), ["view 'x' is 1-D", "reshape(-1, 1)"]),
    "one view transposed": (
        lambda m, _: model().fit({"text": TEXT.T, "image": IMAGE}),
        ["view 'text' has 30 columns, which may be the samples", "text.T"],
    ),
    "views stacked to three dimensions": (
        lambda m, _: model().fit(np.stack([TEXT[:, :3], IMAGE])),
        ["X is 3-D", "several views as a list of 2-D tables"],
    ),
    "one sample without its second dimension": (
        lambda m, _: m.predict([TEXT[0], IMAGE[0]]),
        ["every view of a list needs two dimensions", "[text[:1], image[:1]]"],
    ),
    "paths as views": (lambda m, _: model().fit({"text": "text.csv"}), ["view 'text' is 'text.csv'", "read_views({"]),
    "a list of paths": (lambda m, _: model().fit(["text.csv", "image.csv"]), ["X is ['text.csv',", "read_views({"]),
    "a generator": (lambda m, _: model().fit(x for x in (TEXT, IMAGE)), ["X is a generator", "give a 2-D array"]),
    "a list of paths to read": (lambda m, _: read_views(["a.csv"]), ["expected a mapping from view name to the path"]),
    "frames swapped in predict": (lambda m, _: m.predict([IMAGE_FRAME, TEXT_FRAME]), ["view 'text' has 3 columns"]),
    "the views as parameters": (
        lambda m, _: Coview([TEXT, IMAGE]).fit([TEXT]),
        ["n_clusters=[array(", "…: expected an"],
    ),
    "a class instead of a model": (lambda m, _: FixedSize(TMvKSCR).fit([TEXT]), ["instance such as TMvKSCR(3)"]),
    "a kernel by its other name": (lambda m, _: TMvKSCR(3, kernel="gaussian").fit(TEXT), ["kernel='gaussian'", "rbf"]),
    "a view in upper case": (
        lambda m, _: TMvKSCR(3, kappa={"Text": 2}).fit({"text": TEXT, "image": IMAGE}),
        ["kappa: view 'Text' is unknown; did you mean 'text'?"],
    ),
    "the summary of a class": (lambda m, _: summarize(TMvKSCR, TEXT), ["model is the class TMvKSCR; give a fitted"]),
    "the arguments of summarize swapped": (lambda m, _: summarize({"text": TEXT}, m), ["model is a dict; give a"]),
    "known classes with NaN": (
        lambda m, _: told(m, truth=np.where(CLASSES, CLASSES, np.nan)),
        ["truth has no entry in row 0 (nan)"],
    ),
    "known classes as a column": (lambda m, _: told(m, truth=CLASSES[:, None]), ["more than one dimension", "ravel()"]),
    "one known class": (lambda m, _: told(m, truth=["a"] * N), ["truth has the same class 'a' for all 30 samples"]),
    "known classes that are measurements": (
        lambda m, _: compare([TEXT], 3, methods=["tmvkscr"], truth=TEXT[:, 0]),
        ["truth has a different class for each of the 30"],
    ),
    "a method as a class": (lambda m, _: compare([TEXT], 3, methods=[TMvKSCR]), ["TMvKSCR", "Known: coview, tmvkscr"]),
    "the arguments of save swapped": (
        lambda m, folder: save(folder, m),
        ["give a fitted estimator", "save(model, path)"],
    ),
    "a model saved to a folder": (lambda m, folder: save(m, folder), ["cannot be written: Is a directory"]),
    "a model saved before fit": (lambda m, folder: save(model(), folder / "m"), ["is not fitted; call fit before"]),
    "a folder loaded": (lambda m, folder: load(folder), ["it is a folder; give the file of the model"]),
    "a pickle loaded": (
        lambda m, folder: load(folder / "text.pkl"),
        ["text.pkl cannot", "not a model saved by coview"],
    ),
    "a table loaded": (lambda m, folder: load(folder / "text.csv"), ["text.csv cannot", "not a model saved by coview"]),
}


@pytest.mark.parametrize(("mistake", "words"), PYTHON.values(), ids=PYTHON)
def test_mistakes_in_python(mistake, words, fitted, desk):
    with pytest.raises(InputError) as caught:
        mistake(fitted, desk)
    for each in words:
        assert each in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("use", [lambda m: m.predict([TEXT, IMAGE]), lambda m: summarize(m, [TEXT, IMAGE])])
def test_unfitted_models_are_refused(use):
    with pytest.raises(NotFittedError, match=r"not fitted yet\. Call 'fit'"):
        use(model())


LACKING = np.where(np.arange(N)[:, None] % 5 == 0, np.nan, IMAGE)  # the first sample lacks the view
SUSPECTS = {
    "the known classes as a view": ([TEXT, CLASSES[:, None]], "view 'view1' has one column with 3 different values"),
    "the target among the features": ([TABLES["with_classes"]], "has the column 'target' with 3 different values"),
    "the same table twice": ([TEXT, TEXT.copy()], "the views 'view0' and 'view1' have the same values"),
    "the same table twice, with samples that lack it": (
        [TEXT, LACKING, LACKING.copy()],
        "the views 'view1' and 'view2' have the same values",
    ),
    "-999 for missing values": ([np.column_stack([TEXT, FAR])], r"the value -999 far from all others \(column '4'\)"),
    "dates as numbers": (
        [pd.DataFrame({"visit": 20230101 + 100 * np.arange(N) % 1200 + np.arange(N), "x": TEXT[:, 0]}), IMAGE],
        r"dates that are written as numbers such as 20230101 \(column 'visit'\), whose differences are not days",
    ),
    "distances": ([TEXT, cdist(IMAGE, IMAGE)], "view 'view1' is a symmetric table of 30 x 30 values with zeros"),
    "a view of one sample": ([TEXT, np.eye(N)[:, :1]], "the same values in 29 of 30 samples"),
}


@pytest.mark.parametrize(
    "fit_with", [lambda data: model().fit(data), lambda data: compare(data, 3, methods=["tmvkscr"])]
)
@pytest.mark.parametrize(("data", "words"), SUSPECTS.values(), ids=SUSPECTS)
def test_suspect_views_give_one_warning(data, words, fit_with):
    with pytest.warns(UserWarning, match=words) as caught:
        fit_with(data)
    assert len(caught) == 1


def test_classes_among_features_are_found_if_the_first_sample_of_a_class_lacks_the_view():
    leaked = np.where(np.isnan(LACKING[:, :1]), np.nan, np.column_stack([IMAGE, CLASSES]))
    views = Views({"text": TEXT, "image": leaked})
    (sentence,) = classes_among_features(views, SPECIES)
    assert sentence.startswith("view 'image' has features with one value for each known class (column '3')")
    absent = views.map(lambda name, view: view.among(np.zeros(N, dtype=bool)) if name == "image" else view)
    assert classes_among_features(absent, SPECIES) == []


INNOCENT = SimpleNamespace(
    few_rows=[np.eye(9), np.eye(9)],
    counts=[_RNG.poisson(0.1, size=(N, 40)).astype(float) + np.eye(N, 40), TEXT],
    names=[pd.DataFrame(TEXT, columns=["class_size", "labelled", "grouping", "y"]), IMAGE],
    ages=[pd.DataFrame({"age": np.r_[43 : 43 + 2 * N - 4 : 2, 99, 99], "height": TEXT[:, 0]}), IMAGE],
    similarities=[np.corrcoef(TEXT), IMAGE],
    numbers_of_eight_digits=[pd.DataFrame({"n": 20230101 + 100 * np.arange(N), "y": TEXT[:, 0]}), IMAGE],
    fractions=[pd.DataFrame({"n": 20230101.5 + np.arange(N) % 28, "y": TEXT[:, 0]}), IMAGE],
)


@pytest.mark.parametrize("data", vars(INNOCENT).values(), ids=vars(INNOCENT))
def test_other_views_give_no_warning(data):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model().set_params(kernel=RBF()).fit(data)
