"""From options to an estimator."""

import re
from functools import partial

import pytest

from coview import (
    KSC,
    METHODS,
    RBF,
    AutoKernel,
    Concat,
    Cosine,
    Coview,
    FixedSize,
    FuzzyGraph,
    InputError,
    Linear,
    NeighborGraph,
    NormalizedPolynomial,
    TMvKSCR,
)
from coview.cli.estimator import ModelOptions
from coview.cli.options import STEP_NAMES
from coview.cli.parse import match_views, parse_kernels, parse_n_train, parse_views, parse_weights
from coview.compose import Preprocessed
from coview.preprocess.steps import parse_steps

NAMES = ("text", "image")
tmvkscr = partial(ModelOptions, "tmvkscr", "3")


def test_names_of_steps_are_those_of_the_library():
    assert [parse_steps(name).name for name in STEP_NAMES] == list(STEP_NAMES)


def test_views_are_names_and_files():
    assert parse_views(["text=a.csv", "image=C:\\b=c.mat::X"]) == {"text": "a.csv", "image": "C:\\b=c.mat::X"}


def test_a_tilde_is_expanded(monkeypatch):
    monkeypatch.setenv("HOME", "/home/user")
    assert parse_views(["text=~/a.csv"]) == {"text": "/home/user/a.csv"}


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        (["text.csv"], "--view text.csv: expected a name and a file, as in --view text=text.csv"),
        (["=text.csv"], "expected a name and a file"),
        (["text="], "expected a name and a file"),
        (["a=1.csv", "a=2.csv"], "--view names 'a' twice"),
        (["gr\udcc3\udcb6=1.csv"], "letters that this locale cannot represent; set LC_ALL=C.UTF-8"),
    ],
)
def test_views_without_a_name_are_refused(typed, sentence):
    with pytest.raises(InputError, match=sentence):
        parse_views(typed)


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        (["rbf"], RBF()),
        (["rbf:sigma2=0.5"], RBF(0.5)),
        (["normpoly:degree=3,offset=2"], NormalizedPolynomial(3, 2.0)),
        (["text=cosine"], {"text": Cosine(), "image": "auto"}),
        (["fuzzy:metric=cosine"], FuzzyGraph(metric="cosine")),
        (["auto"], AutoKernel()),
        (["linear", "text=rbf:sigma2=2"], {"text": RBF(2.0), "image": Linear()}),
        (["text=normpoly:degree=2", "image=linear"], {"text": NormalizedPolynomial(2), "image": Linear()}),
    ],
)
def test_kernels(typed, expected):
    assert parse_kernels(typed, NAMES, "auto") == expected


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        (
            "rfb",
            "--kernel 'rfb' is unknown; did you mean 'rbf'? Known, with parameters: auto (n_neighbors, recall), "
            "rbf (sigma2), linear, poly (degree, offset), normpoly (degree, offset), cosine, "
            "fuzzy (n_neighbors, metric, recall), graph (n_neighbors, scale_neighbor, metric, recall), precomputed",
        ),
        ("txt=rbf", "--kernel names the view 'txt'; did you mean 'text'? Views: text, image"),
        (
            "rbf:sigma=1",
            "--kernel rbf:sigma=1: rbf has no parameter 'sigma'; did you mean 'sigma2'? Its parameters: sigma2",
        ),
        ("normpoly:2", "normpoly has no parameter '2'. Its parameters: degree, offset"),
        ("cosine:degree=2", "cosine has no parameter 'degree'. It has no parameters"),
        ("rbf:sigma2=wide", "--kernel rbf:sigma2=wide: expected a number, got 'wide'"),
        ("rbf:sigma2=-1", "RBF.sigma2=-1.0: expected a number above 0, or None"),
        ("poly:degree=1.5", "Polynomial.degree=1.5: expected an integer of at least 1"),
        ("graph:metric=cosin", "NeighborGraph.metric='cosin': expected one of euclidean, cosine"),
    ],
)
def test_mistyped_kernels_are_explained(typed, sentence):
    with pytest.raises(InputError, match=re.escape(sentence)):
        parse_kernels([typed], NAMES, "auto")


def test_weights_are_one_number_or_one_per_view():
    assert parse_weights("--kappa", ["2"], NAMES) == 2.0
    assert parse_weights("--kappa", ["text=2"], NAMES) == {"text": 2.0, "image": 1.0}
    assert parse_weights("--kappa", ["text=2,image=0.5"], NAMES) == {"text": 2.0, "image": 0.5}
    with pytest.raises(InputError, match="--kappa text=x: expected a number, got 'x'"):
        parse_weights("--kappa", ["text=x"], NAMES)
    with pytest.raises(InputError, match=r"--kappa names the view 'imag'; did you mean 'image'\?"):
        parse_weights("--kappa", ["imag=1"], NAMES)


def test_n_train_is_a_number_a_fraction_or_auto():
    assert parse_n_train("auto") == "auto"
    assert parse_n_train("200") == 200
    assert isinstance(parse_n_train("200"), int)
    assert parse_n_train("0.5") == 0.5
    assert isinstance(parse_n_train("1.0"), float)  # a fraction: all of them
    with pytest.raises(InputError, match="--n-train many: expected a number, got 'many'"):
        parse_n_train("many")


def test_views_are_compared_with_those_of_the_model():
    match_views({"image": "b", "text": "a"}, NAMES, may_lack=False)
    match_views({"text": "a"}, NAMES, may_lack=True)
    with pytest.raises(InputError, match=r"no view 'txt'; did you mean 'text'\? Views: text, image"):
        match_views({"txt": "a", "image": "b"}, NAMES, may_lack=True)
    with pytest.raises(InputError, match="needs the view 'image' as well; add --view image=FILE"):
        match_views({"text": "a"}, NAMES, may_lack=False)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (ModelOptions(), Coview("auto", random_state=0)),
        (ModelOptions(n_clusters="3"), Coview(3, random_state=0)),
        (ModelOptions(n_clusters="auto", seed="4"), Coview("auto", random_state=4)),
        (ModelOptions(n_clusters="2..4"), Coview(range(2, 5), random_state=0)),
        (tmvkscr(kernel=("rbf",)), Preprocessed(TMvKSCR(3, kernel=RBF(), random_state=0))),
        (
            tmvkscr(kernel=("graph:metric=cosine,n_neighbors=5",)),
            TMvKSCR(3, kernel=NeighborGraph(5, metric="cosine"), random_state=0),
        ),
        (tmvkscr(kernel=("auto",)), TMvKSCR(3, kernel=AutoKernel(), random_state=0)),
        (tmvkscr(rho="0.5"), TMvKSCR(3, rho=0.5, random_state=0)),
        (tmvkscr(kappa=("2",)), TMvKSCR(3, kappa=2.0, random_state=0)),
        (tmvkscr(assigner="codebook"), TMvKSCR(3, assigner="codebook", random_state=0)),
        (tmvkscr(), TMvKSCR(3, random_state=0)),
        (ModelOptions("TMvKSCR", "3"), TMvKSCR(3, random_state=0)),
        (
            tmvkscr(kernel=("text=rbf",)),
            Preprocessed(
                TMvKSCR(3, kernel={"text": RBF(), "image": "auto"}, random_state=0),
                {"text": "standard", "image": "none"},
            ),
        ),
        (ModelOptions("coview", "3"), Coview(3, random_state=0)),
        (ModelOptions("Coview", impute=("median",)), Preprocessed(Coview("auto", random_state=0), "median")),
        (ModelOptions("mvksc", "3"), Preprocessed(METHODS["mvksc"](3, random_state=0))),
        (tmvkscr(preprocess=("none",), seed="7"), TMvKSCR(3, random_state=7)),
        (tmvkscr(preprocess=("l2",)), Preprocessed(TMvKSCR(3, random_state=0), "l2")),
        (
            tmvkscr(preprocess=("text=tfidf+l2", "image=total+pca9")),
            Preprocessed(TMvKSCR(3, random_state=0), {"text": "tfidf+l2", "image": "total+pca9"}),
        ),
        (tmvkscr(preprocess=("text=l2", "image=l2")), Preprocessed(TMvKSCR(3, random_state=0), "l2")),
        (tmvkscr(preprocess=("text=none", "none")), TMvKSCR(3, random_state=0)),
        (
            tmvkscr(preprocess=("l2", "text=log1p")),
            Preprocessed(TMvKSCR(3, random_state=0), {"text": "log1p", "image": "l2"}),
        ),
        (
            tmvkscr(preprocess=("text=tfidf+l2",)),
            Preprocessed(TMvKSCR(3, random_state=0), {"text": "tfidf+l2", "image": "none"}),
        ),
        (
            tmvkscr(rho="0.2", kappa=("2",), assigner="codebook", kernel=("rbf:sigma2=1",), preprocess=("none",)),
            TMvKSCR(3, rho=0.2, kappa=2.0, assigner="codebook", kernel=RBF(1.0), random_state=0),
        ),
        (ModelOptions("ksc", "3"), Preprocessed(Concat(KSC(3, random_state=0)))),
        (
            ModelOptions(n_clusters="3", n_train="50", select="kmeans"),
            FixedSize(Coview(3, random_state=0), n_train=50, select="kmeans", random_state=0),
        ),
        (
            tmvkscr(n_train="50", select="kmeans", preprocess=("standard",)),
            FixedSize(Preprocessed(TMvKSCR(3, random_state=0)), n_train=50, select="kmeans", random_state=0),
        ),
        (ModelOptions("comic", preprocess=("none",)), METHODS["comic"](random_state=0)),
    ],
)
def test_the_method_and_its_wrappers(options, expected):
    assert repr(options.estimator(NAMES)[0]) == repr(expected)


def test_one_view_needs_no_wrapper():
    estimator, notes = ModelOptions("ksc", "3", kernel=("text=rbf",), preprocess=("none",)).estimator(("text",))
    assert isinstance(estimator, KSC)
    assert notes == ()


def test_defaults_that_depend_on_other_options_are_noted():
    assert "columns of all views are concatenated (Concat)" in ModelOptions("kpca", "3").estimator(NAMES)[1][0]
    estimator, notes = tmvkscr(kernel=("text=cosine",)).estimator(NAMES)
    assert isinstance(estimator, TMvKSCR)  # standardised columns have negative inner products
    assert notes == ("not preprocessed, because the kernel is not rbf: text; --preprocess standard or l2 changes that",)
    assert tmvkscr().estimator(NAMES)[1] == ()  # the kernel auto needs no preprocessing
    notes = tmvkscr(kernel=("cosine",)).estimator(NAMES)[1]
    assert notes[0].startswith("not preprocessed, because the kernel is not rbf: text, image;")
    estimator, notes = tmvkscr(kernel=("text=cosine",), preprocess=("text=tfidf",)).estimator(NAMES)
    assert estimator.steps == {"text": "tfidf", "image": "none"}
    assert notes == ()
    estimator, _ = ModelOptions("mvksc", "3", kernel=("text=cosine",)).estimator(NAMES)
    assert estimator.steps == {"text": "none", "image": "standard"}
    assert tmvkscr(kernel=("cosine",), preprocess=("l2",)).estimator(NAMES)[1] == ()
    assert ModelOptions(n_clusters="3").estimator(NAMES)[1] == ()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (ModelOptions("tmvkscrr", "3"), r"--method 'tmvkscrr' is unknown; did you mean 'tmvkscr'\?"),
        (
            ModelOptions("tmvkscr"),
            "the method tmvkscr needs one number of clusters, as in -k 6; only coview selects it",
        ),
        (ModelOptions("tmvkscr", "auto"), "the method tmvkscr needs one number of clusters"),
        (ModelOptions(n_clusters="3..x"), r"-k 3\.\.x: expected an integer of at least 2"),
        (ModelOptions("opmc", "2..3"), "the method opmc needs one number of clusters"),
        *(
            (
                ModelOptions(n_clusters="3", **{name: value}),
                rf"--method coview \(the default\) has its own settings; add --method tmvkscr to use --{name}",
            )
            for name, value in {
                "kernel": ["rbf"],
                "rho": 0.0,
                "kappa": ["1"],
                "assigner": "codebook",
                "preprocess": ["l2"],
            }.items()
        ),
        (
            ModelOptions("comic", "3"),
            "the method comic has no -k: it finds the number of clusters by itself; leave it out",
        ),
        (ModelOptions("opmc", "3", kernel=("rbf",)), "the method opmc has no --kernel; leave it out"),
        (ModelOptions("mvksc", "3", rho="0.5"), "the method mvksc has no --rho; leave it out"),
        (ModelOptions("ksc", "3", kappa=("1",)), "the method ksc has no --kappa; leave it out"),
        (ModelOptions("coreg", "3", assigner="codebook"), "the method coreg has no --assigner; leave it out"),
        (
            ModelOptions("ksc", "3", kernel=("text=rbf",)),
            "the method ksc takes one view; give one --kernel without the name of a view",
        ),
        (
            tmvkscr(assigner="directons"),
            r"--assigner 'directons' is unknown; did you mean 'directions'\?",
        ),
        (
            tmvkscr(preprocess=("standart",)),
            r"--preprocess 'standart' is unknown; did you mean 'standard'\?",
        ),
        (
            tmvkscr(preprocess=("text=tfidf+l3",)),
            r"--preprocess 'l3' is unknown\. Known: none, standard, l2",
        ),
        (
            tmvkscr(preprocess=("txt=l2",)),
            r"--preprocess names the view 'txt'; did you mean 'text'\? Views: text,",
        ),
        (tmvkscr(preprocess=("text=",)), r"--preprocess '' is unknown\. Known: none"),
        (ModelOptions(n_clusters="3", select="kmeans"), "give their number with --n-train"),
        (
            ModelOptions(n_clusters="3", n_train="9", select="kmean"),
            r"--select 'kmean' is unknown; did you mean 'kmeans'\?",
        ),
        (ModelOptions("coreg", "3", n_train="9"), "coreg cannot label new samples, which --n-train needs"),
    ],
)
def test_options_that_exclude_each_other_are_refused(options, sentence):
    with pytest.raises(InputError, match=sentence):
        options.estimator(NAMES)
