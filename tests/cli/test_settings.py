"""From what was typed to a model."""

import re

import pytest

from coview import (
    KSC,
    METHODS,
    RBF,
    Concat,
    Cosine,
    FixedSize,
    InputError,
    Linear,
    NeighborGraph,
    NormalizedPolynomial,
    TMvKSCR,
    Tuned,
)
from coview.cli.settings import (
    METHOD_TABLE,
    STEPS,
    Settings,
    chosen,
    kernels,
    known_views,
    n_train,
    view_files,
    weights,
)
from coview.compose import Preprocessed
from coview.preprocess.steps import NAMES as NAMES_OF_STEPS

NAMES = ("text", "image")


def test_the_table_of_methods_is_that_of_the_library():
    assert list(METHOD_TABLE) == list(METHODS)


def test_the_steps_of_preparations_are_those_of_the_library():
    assert tuple(name.replace("N", "50") for name in NAMES_OF_STEPS) == STEPS


def test_views_are_names_and_files():
    assert view_files(["text=a.csv", "image=C:\\b=c.mat::X"]) == {"text": "a.csv", "image": "C:\\b=c.mat::X"}


def test_a_tilde_is_the_home_folder(monkeypatch):
    monkeypatch.setenv("HOME", "/home/somebody")
    assert view_files(["text=~/a.csv"]) == {"text": "/home/somebody/a.csv"}


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        (["text.csv"], "--view 'text.csv' must be a name and a file, as in --view text=text.csv"),
        (["=text.csv"], "must be a name and a file"),
        (["text="], "must be a name and a file"),
        (["a=1.csv", "a=2.csv"], "--view names 'a' twice"),
    ],
)
def test_views_without_a_name_are_refused(typed, sentence):
    with pytest.raises(InputError, match=sentence):
        view_files(typed)


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        (["rbf"], RBF()),
        (["rbf:sigma2=0.5"], RBF(0.5)),
        (["normpoly:degree=3,offset=2"], NormalizedPolynomial(3, 2.0)),
        (["text=cosine"], {"text": Cosine(), "image": RBF()}),
        (["linear", "text=rbf:sigma2=2"], {"text": RBF(2.0), "image": Linear()}),
        (["text=normpoly:degree=2", "image=linear"], {"text": NormalizedPolynomial(2), "image": Linear()}),
    ],
)
def test_kernels(typed, expected):
    assert kernels(typed, NAMES) == expected


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        (
            "rfb",
            "--kernel 'rfb' is unknown; did you mean 'rbf'? Known, with parameters: rbf (sigma2), linear, "
            "poly (degree, offset), normpoly (degree, offset), cosine, graph (n_neighbors, scale_neighbor, metric), "
            "precomputed",
        ),
        ("txt=rbf", "--kernel names the view 'txt'; did you mean 'text'? Views: text, image"),
        ("rbf:sigma=1", "rbf has no parameter 'sigma'; did you mean 'sigma2'; its parameters are sigma2"),
        ("normpoly:2", "normpoly has no parameter '2'; its parameters are degree, offset"),
        ("cosine:degree=2", "cosine has no parameter 'degree'; it has no parameters"),
        ("rbf:sigma2=wide", "--kernel 'rbf:sigma2=wide': sigma2 must be a number, and 'wide' is none"),
        ("rbf:sigma2=-1", "RBF.sigma2=-1.0: expected a number above 0, or None"),
        ("poly:degree=1.5", "Polynomial.degree=1.5: expected an integer of at least 1"),
        ("graph:metric=cosin", "NeighborGraph.metric='cosin': expected one of euclidean, cosine"),
    ],
)
def test_mistyped_kernels_are_explained(typed, sentence):
    with pytest.raises(InputError, match=re.escape(sentence)):
        kernels([typed], NAMES)


def test_weights_are_one_number_or_by_view():
    assert weights("--kappa", ["2"], NAMES) == 2.0
    assert weights("--kappa", ["text=2"], NAMES) == {"text": 2.0, "image": 1.0}
    assert weights("--kappa", ["text=2,image=0.5"], NAMES) == {"text": 2.0, "image": 0.5}
    with pytest.raises(InputError, match="--kappa text must be a number, and 'x' is none"):
        weights("--kappa", ["text=x"], NAMES)
    with pytest.raises(InputError, match=r"--kappa names the view 'imag'; did you mean 'image'\?"):
        weights("--kappa", ["imag=1"], NAMES)


def test_n_train_is_a_count_a_share_or_auto():
    assert n_train("auto") == "auto"
    assert n_train("200") == 200
    assert isinstance(n_train("200"), int)
    assert n_train("0.5") == 0.5
    assert isinstance(n_train("1.0"), float)  # a share: all of them
    with pytest.raises(InputError, match="--n-train must be a number, and 'many' is none"):
        n_train("many")


def test_names_are_suggested_when_one_is_close():
    assert chosen("--preprocess", "l2", ("standard", "l2")) == "l2"
    with pytest.raises(InputError, match=r"--preprocess 'standrad' is unknown; did you mean 'standard'\? Known: st"):
        chosen("--preprocess", "standrad", ("standard", "l2"))
    with pytest.raises(InputError, match=r"--preprocess 'xyz' is unknown\. Known: standard, l2"):
        chosen("--preprocess", "xyz", ("standard", "l2"))


def test_views_are_compared_with_those_of_the_model():
    known_views({"image": "b", "text": "a"}, NAMES)
    with pytest.raises(InputError, match=r"no view 'txt'; did you mean 'text'\? Its views: text, image"):
        known_views({"txt": "a", "image": "b"}, NAMES)
    with pytest.raises(InputError, match="needs the view 'image' as well; add --view image=FILE"):
        known_views({"text": "a"}, NAMES)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (Settings(n_clusters=3), Tuned(3, budget="small", random_state=0)),
        (Settings(n_clusters="auto", seed=4), Tuned("auto", budget="small", random_state=4)),
        (Settings(n_clusters=range(2, 5)), Tuned(range(2, 5), budget="small", random_state=0)),
        (Settings(n_clusters=3, kernel=("rbf",)), Preprocessed(TMvKSCR(3, kernel=RBF(), random_state=0))),
        (
            Settings(n_clusters=3, kernel=("graph:metric=cosine,n_neighbors=5",)),
            TMvKSCR(3, kernel=NeighborGraph(5, metric="cosine"), random_state=0),
        ),
        (Settings(n_clusters=3, rho=0.5), Preprocessed(TMvKSCR(3, rho=0.5, random_state=0))),
        (Settings(n_clusters=3, kappa=("2",)), Preprocessed(TMvKSCR(3, kappa=2.0, random_state=0))),
        (Settings(n_clusters=3, assigner="codebook"), Preprocessed(TMvKSCR(3, assigner="codebook", random_state=0))),
        (Settings("mvksc", 3), Preprocessed(METHODS["mvksc"](3, random_state=0))),
        (Settings(n_clusters=3, preprocess=("none",), seed=7), TMvKSCR(3, random_state=7)),
        (Settings(n_clusters=3, preprocess=("l2",)), Preprocessed(TMvKSCR(3, random_state=0), "l2")),
        (
            Settings(n_clusters=3, preprocess=("text=tfidf+l2", "image=total+pca9")),
            Preprocessed(TMvKSCR(3, random_state=0), {"text": "tfidf+l2", "image": "total+pca9"}),
        ),
        (Settings(n_clusters=3, preprocess=("text=l2", "image=l2")), Preprocessed(TMvKSCR(3, random_state=0), "l2")),
        (Settings(n_clusters=3, preprocess=("text=none", "none")), TMvKSCR(3, random_state=0)),
        (
            Settings(n_clusters=3, preprocess=("l2", "text=log1p")),
            Preprocessed(TMvKSCR(3, random_state=0), {"text": "log1p", "image": "l2"}),
        ),
        (
            Settings(n_clusters=3, preprocess=("text=tfidf+l2",)),
            Preprocessed(TMvKSCR(3, random_state=0), {"text": "tfidf+l2", "image": "standard"}),
        ),
        (
            Settings(
                n_clusters=3, rho=0.2, kappa=("2",), assigner="codebook", kernel=("rbf:sigma2=1",), preprocess=("none",)
            ),
            TMvKSCR(3, rho=0.2, kappa=2.0, assigner="codebook", kernel=RBF(1.0), random_state=0),
        ),
        (Settings("ksc", 3), Preprocessed(Concat(KSC(3, random_state=0)))),
        (
            Settings(n_clusters=3, n_train="50", select="kmeans"),
            FixedSize(Tuned(3, budget="small", random_state=0), n_train=50, select="kmeans", random_state=0),
        ),
        (
            Settings(n_clusters=3, n_train="50", select="kmeans", preprocess=("standard",)),
            FixedSize(Preprocessed(TMvKSCR(3, random_state=0)), n_train=50, select="kmeans", random_state=0),
        ),
        (Settings("comic", preprocess=("none",)), METHODS["comic"](random_state=0)),
    ],
)
def test_the_method_and_its_wrappers(settings, expected):
    assert repr(settings.estimator(NAMES)[0]) == repr(expected)


def test_one_view_needs_no_wrapper():
    estimator, notes = Settings("ksc", 3, kernel=("text=rbf",), preprocess=("none",)).estimator(("text",))
    assert isinstance(estimator, KSC)
    assert notes == ()


def test_what_is_decided_for_the_user_is_told():
    assert "side by side (Concat)" in Settings("kpca", 3).estimator(NAMES)[1][0]
    estimator, notes = Settings(n_clusters=3, kernel=("text=cosine",)).estimator(NAMES)
    assert isinstance(estimator, TMvKSCR)  # centred columns would have negative similarities
    assert notes == (
        "not preprocessed, because a kernel other than rbf was chosen: text, image; --preprocess standard or l2 does",
    )
    estimator, notes = Settings(n_clusters=3, kernel=("text=cosine",), preprocess=("text=tfidf",)).estimator(NAMES)
    assert estimator.steps == {"text": "tfidf", "image": "none"}
    assert notes[0].startswith("not preprocessed, because a kernel other than rbf was chosen: image;")
    assert Settings(n_clusters=3, kernel=("cosine",), preprocess=("l2",)).estimator(NAMES)[1] == ()
    assert Settings(n_clusters=3).estimator(NAMES)[1] == ()


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (Settings("tmvkscrr", 3), r"--method 'tmvkscrr' is unknown; did you mean 'tmvkscr'\?"),
        (Settings(), "say how many clusters to find with -k"),
        (Settings(n_clusters="auto", rho=0.5), "-k chooses from several numbers only where all settings are chosen"),
        (Settings("opmc", range(2, 4)), "give one number, or leave out --method"),
        (Settings("comic", 3), "the method comic has no -k: it finds the number of clusters by itself; leave it out"),
        (Settings("opmc", 3, kernel=("rbf",)), "the method opmc has no --kernel; leave it out"),
        (Settings("mvksc", 3, rho=0.5), "the method mvksc has no --rho; leave it out"),
        (Settings("ksc", 3, kappa=("1",)), "the method ksc has no --kappa; leave it out"),
        (Settings("coreg", 3, assigner="codebook"), "the method coreg has no --assigner; leave it out"),
        (Settings("ksc", 3, kernel=("text=rbf",)), "ksc sees one table and takes one --kernel for all views"),
        (
            Settings(n_clusters=3, assigner="directons"),
            r"--assigner 'directons' is unknown; did you mean 'directions'\?",
        ),
        (
            Settings(n_clusters=3, preprocess=("standart",)),
            r"--preprocess 'standart' is unknown; did you mean 'standard'\?",
        ),
        (
            Settings(n_clusters=3, preprocess=("text=tfidf+l3",)),
            r"--preprocess 'l3' is unknown\. Known: none, standard, l2",
        ),
        (
            Settings(n_clusters=3, preprocess=("txt=l2",)),
            r"--preprocess names the view 'txt'; did you mean 'text'\? Views: text,",
        ),
        (Settings(n_clusters=3, preprocess=("text=",)), r"--preprocess '' is unknown\. Known: none"),
        (Settings(n_clusters=3, select="kmeans"), "say how many with --n-train"),
        (
            Settings(n_clusters=3, n_train="9", select="kmean"),
            r"--select 'kmean' is unknown; did you mean 'kmeans'\?",
        ),
        (Settings("coreg", 3, n_train="9"), "coreg cannot label new samples, which --n-train needs"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(settings, sentence):
    with pytest.raises(InputError, match=sentence):
        settings.estimator(NAMES)
