"""Kernels: each against its plain formula, at moderate and at extreme values."""

import math
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
import scipy.sparse as sp

from coview import (
    RBF,
    AutoKernel,
    Cosine,
    FuzzyGraph,
    InputError,
    Linear,
    NeighborGraph,
    NormalizedPolynomial,
    Polynomial,
    Precomputed,
    TMvKSCR,
)
from coview.kernels import Kernel, kernel_per_view
from coview.registry import KERNELS

X = np.array([[1.0, 0.0, 2.0], [0.0, -1.5, 0.0], [2.5, 0.5, -1.0], [1.0, 0.0, 2.0], [0.25, 3.0, 0.0]])
Y = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 2.0], [-2.0, 0.5, 1.5]])

# A few rounding errors of numbers near 1, in any order of summation.
CLOSE = {"rtol": 1e-12, "atol": 1e-12}

FORMATS = pytest.mark.parametrize("make", [np.array, sp.csr_array], ids=["dense", "csr"])


def gaussian(sigma2):
    return lambda a, b: math.exp(-sum((i - j) ** 2 for i, j in zip(a, b, strict=True)) / sigma2)


def inner(a, b):
    return sum(i * j for i, j in zip(a, b, strict=True))


def polynomial(degree, t):
    return lambda a, b: (inner(a, b) + t**2) ** degree


def normalized(degree, t):
    plain = polynomial(degree, t)
    return lambda a, b: plain(a, b) / math.sqrt(plain(a, a) * plain(b, b))


def cosine(a, b):
    return inner(a, b) / math.sqrt(inner(a, a) * inner(b, b))


def by_loops(formula, x, y):
    return np.array([[formula(a, b) for b in y.tolist()] for a in x.tolist()])


def squared_distances(x):
    """Return the squared distance of each pair of rows, once."""
    table = np.square(x[:, None] - x).sum(axis=2)
    return table[np.triu_indices(len(x), k=1)]


# Formulas


@FORMATS
@pytest.mark.parametrize("shift", [0.0, 1e8], ids=["near the origin", "far from the origin"])
@pytest.mark.parametrize(
    ("kernel", "formula"),
    [
        (RBF(sigma2=0.7), gaussian(0.7)),
        (RBF(sigma2=20.0), gaussian(20.0)),
        (Linear(), inner),
        (Polynomial(), polynomial(2, 1.0)),
        (Polynomial(degree=1, offset=0.0), polynomial(1, 0.0)),
        (Polynomial(degree=3, offset=1.5), polynomial(3, 1.5)),
        (NormalizedPolynomial(), normalized(2, 1.0)),
        (NormalizedPolynomial(degree=1, offset=0.5), normalized(1, 0.5)),
        (NormalizedPolynomial(degree=3, offset=1.5), normalized(3, 1.5)),
        (NormalizedPolynomial(degree=3, offset=0.0), normalized(3, 0.0)),
        (Cosine(), cosine),
    ],
    ids=lambda value: repr(value) if isinstance(value, Kernel) else "",
)
def test_similarities_follow_the_plain_formula(kernel, formula, shift, make):
    x, y = X + shift, Y + shift
    np.testing.assert_allclose(kernel(make(x), make(y)), by_loops(formula, x, y), **CLOSE)
    np.testing.assert_allclose(kernel(make(x)), by_loops(formula, x, x), **CLOSE)


@FORMATS
def test_precomputed_similarities_are_returned_unchanged(make):
    block = Precomputed()(make(X), make(Y))
    assert isinstance(block, np.ndarray)
    np.testing.assert_array_equal(block, X)


@FORMATS
@pytest.mark.parametrize(
    "kernel", [RBF(0.7), Linear(), Polynomial(), NormalizedPolynomial(), Cosine(), Precomputed()], ids=repr
)
def test_single_precision_rows_are_compared_in_double_precision(kernel, make):
    single = (X / 3).astype(np.float32)
    similarities = kernel(make(single))
    assert similarities.dtype == np.float64
    np.testing.assert_allclose(similarities, kernel(make(single.astype(np.float64))), **CLOSE)


@FORMATS
def test_an_all_zero_row_has_cosine_zero_to_all_rows(make):
    similarities = Cosine()(make(np.array([[0.0, 0.0], [3.0, 4.0]])))
    np.testing.assert_allclose(similarities, [[0.0, 0.0], [0.0, 1.0]], **CLOSE)


# Extremes


@FORMATS
@pytest.mark.parametrize("unit", [1e5, 1e9, 1e160, 1e300])
def test_rows_many_bandwidths_apart_are_similar_only_if_equal(unit, make):
    place = np.array([0, 1, 0, 2, 1, 3])
    rows = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, -1.0], [1.0, 1.0]])[place] * unit
    np.testing.assert_array_equal(RBF(sigma2=1.0)(make(rows)), place[:, None] == place)


@FORMATS
def test_close_pairs_are_accurate_among_distant_rows(make):
    rows = np.array([[0.1], [0.8], [1e7 + 0.1], [1e7 + 0.8]])
    np.testing.assert_allclose(RBF(sigma2=2.0)(make(rows)), by_loops(gaussian(2.0), rows, rows), **CLOSE)


@FORMATS
@pytest.mark.parametrize("sigma", [1.0, 1e-150])
@pytest.mark.parametrize("far", [1e10, 1e160, 1e300])
def test_a_new_row_far_away_has_similarity_zero_to_all_rows(far, sigma, make):
    new = np.array([[far, -far, 0.0], X[0] * sigma])
    expected = [np.zeros(5), by_loops(gaussian(1.0), X[:1], X)[0]]
    np.testing.assert_allclose(RBF(sigma2=sigma**2)(make(new), make(X * sigma)), expected, **CLOSE)


@FORMATS
@pytest.mark.parametrize("scale", [1e-150, 1e150])
@pytest.mark.parametrize(
    ("kernel_at", "power"),
    [
        (lambda s: RBF(2.0 * s * s), 0),
        (lambda s: RBF(), 0),
        (lambda s: Cosine(), 0),
        (lambda s: NormalizedPolynomial(degree=2, offset=0.0), 0),
        (lambda s: NormalizedPolynomial(degree=3, offset=1.5 * s), 0),
        (lambda s: Linear(), 2),
        (lambda s: Polynomial(degree=1, offset=1.5 * s), 2),
    ],
    ids=["RBF", "RBF by the median", "Cosine", "NormalizedPolynomial", "with offset", "Linear", "Polynomial"],
)
def test_kernels_work_at_every_scale_of_the_rows(kernel_at, power, scale, make):
    scaled = kernel_at(scale)(make(X * scale), make(Y * scale)) / scale**power
    np.testing.assert_allclose(scaled, kernel_at(1.0)(X, Y), **CLOSE)


@FORMATS
@pytest.mark.parametrize("scale", [1e-200, 1e200])
@pytest.mark.parametrize(
    "kernel_at",
    [lambda s: Cosine(), lambda s: NormalizedPolynomial(offset=0.0), lambda s: NormalizedPolynomial(offset=1.5 * s)],
    ids=["Cosine", "NormalizedPolynomial", "with offset"],
)
def test_directions_are_compared_even_if_squares_leave_the_range_of_float64(kernel_at, scale, make):
    np.testing.assert_allclose(kernel_at(scale)(make(X * scale), make(Y * scale)), kernel_at(1.0)(X, Y), **CLOSE)


@FORMATS
@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_a_median_distance_outside_float64_is_refused_with_the_name_of_the_view(scale, make):
    with pytest.raises(InputError, match=r"^view 'x' .* outside the range of float64; rescale the view"):
        RBF().resolve(make(X * scale))
    with pytest.raises(InputError, match=r"^view 'text' .* outside the range of float64; rescale the view"):
        TMvKSCR(2, kernel=RBF()).fit({"image": X, "text": make(X * scale)})


# The bandwidth rule


@FORMATS
@pytest.mark.parametrize("shift", [0.0, 1e4, 1e8])
def test_the_bandwidth_is_the_median_squared_distance_of_pairs(shift, make):
    # Adding the shift rounds the rows by 1e-8 at most.
    resolved = RBF().resolve(make(X + shift))
    assert resolved.sigma2 == pytest.approx(np.median(squared_distances(X)), rel=1e-6)


@FORMATS
def test_the_bandwidth_is_robust_to_an_outlier(make):
    rows = np.array([[0.0], [1.0], [2.0], [4.0], [8.0], [1e8]])
    resolved = RBF().resolve(make(rows))
    assert resolved.sigma2 == pytest.approx(np.median(squared_distances(rows)), rel=1e-6)


@FORMATS
def test_the_bandwidth_is_the_mean_if_more_than_half_of_the_pairs_coincide(make):
    rows = np.array([[0.1, 0.2]] * 4 + [[3.1, 0.2]])
    assert np.median(squared_distances(rows)) == 0
    assert RBF().resolve(make(rows)).sigma2 == pytest.approx(np.mean(squared_distances(rows)), rel=1e-12)


@FORMATS
@pytest.mark.parametrize("value", [0.0, 0.1, 1e8 * math.pi, 1e-150])
@pytest.mark.parametrize("n", [1, 2, 7])
def test_the_bandwidth_is_one_if_all_rows_are_equal(n, value, make):
    assert RBF().resolve(make(np.full((n, 3), value))).sigma2 == 1.0


def test_the_bandwidth_of_500_rows_uses_all_of_them():
    rows = np.random.default_rng(0).normal(size=(500, 2))
    resolved = RBF().resolve(rows, np.random.default_rng(1))
    assert resolved.sigma2 == pytest.approx(np.median(squared_distances(rows)), rel=1e-9)
    assert resolved == RBF().resolve(rows, np.random.default_rng(2))


def test_the_bandwidth_of_more_rows_depends_on_the_generator_only():
    rows = np.random.default_rng(0).normal(size=(1500, 2))
    first, again, other = (RBF().resolve(rows, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert first == again
    assert first != other
    assert RBF().resolve(rows) == RBF().resolve(rows)


def test_a_call_computes_the_bandwidth_from_its_second_argument():
    np.testing.assert_array_equal(RBF()(X, Y), RBF().resolve(Y)(X, Y))


def test_resolve_returns_a_new_kernel_and_does_not_change_the_old_one():
    kernel = RBF()
    resolved = kernel.resolve(X)
    assert resolved.sigma2 > 0
    assert kernel == RBF(sigma2=None)


@pytest.mark.parametrize(
    "kernel", [RBF(0.5), Linear(), Polynomial(3), NormalizedPolynomial(3), Cosine(), Precomputed()], ids=repr
)
def test_a_kernel_without_free_parameters_resolves_to_itself(kernel):
    assert kernel.resolve(X) == kernel


# Kernels as values


@pytest.mark.parametrize(
    ("kernel", "parameter"),
    [(RBF(), "sigma2"), (Polynomial(), "degree"), (NormalizedPolynomial(), "offset")],
    ids=["RBF", "Polynomial", "NormalizedPolynomial"],
)
def test_a_kernel_cannot_be_changed(kernel, parameter):
    with pytest.raises(FrozenInstanceError):
        setattr(kernel, parameter, 2)


@pytest.mark.parametrize(
    ("kernel", "text"),
    [
        (RBF(), "RBF(sigma2=None)"),
        (RBF(0.5), "RBF(sigma2=0.5)"),
        (Linear(), "Linear()"),
        (Polynomial(), "Polynomial(degree=2, offset=1.0)"),
        (NormalizedPolynomial(degree=3), "NormalizedPolynomial(degree=3, offset=1.0)"),
        (Cosine(), "Cosine()"),
        (NeighborGraph(5), "NeighborGraph(n_neighbors=5, scale_neighbor=7, metric='euclidean', recall=0.95)"),
        (Precomputed(), "Precomputed()"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_repr_of_a_kernel_evaluates_to_an_equal_kernel(kernel, text):
    assert repr(kernel) == text
    same = eval(text)
    assert same == kernel
    assert hash(same) == hash(kernel)


@pytest.mark.parametrize(
    ("one", "other"),
    [(RBF(0.5), RBF(0.6)), (RBF(), RBF(1.0)), (Polynomial(), NormalizedPolynomial()), (Linear(), Cosine())],
    ids=repr,
)
def test_kernels_with_different_parameters_or_classes_are_not_equal(one, other):
    assert one != other


@pytest.mark.parametrize(
    ("make", "parameter", "value"),
    [
        *((RBF, "sigma2", value) for value in (0, -1.0, math.nan, math.inf, "wide", True)),
        *(
            (kernel, parameter, value)
            for kernel in (Polynomial, NormalizedPolynomial)
            for parameter, value in [
                ("degree", 0),
                ("degree", -2),
                ("degree", 2.5),
                ("degree", math.nan),
                ("degree", math.inf),
                ("degree", "two"),
                ("degree", True),
                ("offset", -0.1),
                ("offset", math.nan),
                ("offset", math.inf),
                ("offset", "none"),
                ("offset", True),
            ]
        ),
    ],
)
def test_parameters_out_of_range_are_refused_by_name(make, parameter, value):
    with pytest.raises(InputError, match=rf"^{make.__name__}\.{parameter}={value!r}: expected "):
        make(**{parameter: value})


def test_a_degree_from_a_command_line_becomes_int():
    assert repr(Polynomial(3.0)) == "Polynomial(degree=3, offset=1.0)"


# One kernel for each view


@pytest.mark.parametrize(
    ("name", "kernel"),
    [
        ("rbf", RBF()),
        ("linear", Linear()),
        ("poly", Polynomial()),
        ("normpoly", NormalizedPolynomial()),
        ("cosine", Cosine()),
        ("graph", NeighborGraph()),
        ("auto", AutoKernel()),
        ("fuzzy", FuzzyGraph()),
        ("precomputed", Precomputed()),
    ],
)
def test_a_name_stands_for_the_kernel_with_its_defaults(name, kernel):
    assert kernel_per_view(name, ("a", "b")) == {"a": kernel, "b": kernel}


def test_every_kernel_has_a_name():
    assert set(KERNELS.values()) == {
        RBF,
        Linear,
        Polynomial,
        NormalizedPolynomial,
        Cosine,
        AutoKernel,
        FuzzyGraph,
        NeighborGraph,
        Precomputed,
    }


@pytest.mark.parametrize(
    "kernel",
    [
        [RBF(0.5), "linear"],
        (RBF(0.5), Linear()),
        {"b": "linear", "a": RBF(0.5)},
    ],
    ids=["list", "tuple", "mapping"],
)
def test_each_view_gets_its_own_kernel(kernel):
    kernels = kernel_per_view(kernel, ("a", "b"))
    assert list(kernels.items()) == [("a", RBF(0.5)), ("b", Linear())]


@FORMATS
def test_rows_beyond_float32_have_finite_factors_and_their_similarities(make):
    rows = np.array([[2e36, 2e36], [2e36, 2e36], [1.0, 2.0]])
    similarity = RBF(1.0).against(make(rows), np.float32)
    factor = similarity.factor.toarray() if sp.issparse(similarity.factor) else similarity.factor
    assert np.isfinite(factor).all()
    # Exponents of numbers near 10 have rounding errors of about 1e-6 in float32.
    np.testing.assert_allclose(similarity(make(rows)), [[1, 1, 0], [1, 1, 0], [0, 0, 1]], atol=1e-5)
