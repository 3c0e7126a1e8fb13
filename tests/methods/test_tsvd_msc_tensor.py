import numpy as np
import pytest

from coview.base.runtime import Workers
from coview.methods.tsvd_msc_tensor import shrink


def slow_shrink(tensor, threshold, twice=()):
    """All Fourier slices, one full singular value decomposition each; the slices in `twice` are shrunk again."""
    transformed = np.fft.fft(tensor, axis=1)
    total = 0.0
    for f in [*range(tensor.shape[1]), *twice]:
        u, values, vt = np.linalg.svd(transformed[:, f, :], full_matrices=False)
        values = np.maximum(values - threshold, 0)
        total += values.sum()
        transformed[:, f, :] = (u * values) @ vt
    shrunk = np.fft.ifft(transformed, axis=1)
    assert np.abs(shrunk.imag).max() < 1e-12
    return shrunk.real, total / tensor.shape[1]


def shrunk(tensor, threshold, n_jobs=1):
    out = np.full_like(tensor, np.nan)
    with Workers(n_jobs) as workers:
        norm = shrink(tensor, threshold, out, workers)
    return out, norm


@pytest.mark.parametrize("shape", [(1, 5, 5), (3, 8, 8), (3, 9, 9), (8, 5, 5), (4, 1, 1), (3, 2, 2), (2, 300, 300)])
@pytest.mark.parametrize("threshold", [0.3, 3.0])
def test_shrinkage_matches_the_reference_implementation(shape, threshold):
    tensor = np.random.default_rng(0).normal(size=shape)
    expected, norm = slow_shrink(tensor, threshold)
    ours, our_norm = shrunk(tensor, threshold)
    np.testing.assert_allclose(ours, expected, atol=1e-12)
    assert our_norm == pytest.approx(norm, rel=1e-12)


def test_small_singular_values_keep_their_digits():
    """Views that are nearly equal: Gram matrices of the slices would lose their differences."""
    rng = np.random.default_rng(1)
    tensor = rng.normal(size=(1, 12, 12)) + 1e-7 * rng.normal(size=(3, 12, 12))
    np.testing.assert_allclose(shrunk(tensor, 2e-7)[0], slow_shrink(tensor, 2e-7)[0], atol=1e-13)


def test_the_result_minimises_threshold_times_norm_plus_half_the_squared_change():
    rng = np.random.default_rng(2)
    tensor = rng.normal(size=(3, 7, 7))
    best, norm = shrunk(tensor, 0.8)

    def cost(g):
        return 0.8 * slow_shrink(g, 0.0)[1] + 0.5 * np.square(g - tensor).sum()

    assert norm == pytest.approx(slow_shrink(best, 0.0)[1])
    for _ in range(20):
        assert cost(best) < cost(best + 1e-3 * rng.normal(size=best.shape))


def test_a_threshold_above_all_singular_values_gives_zero():
    tensor = np.random.default_rng(3).normal(size=(2, 6, 6))
    ours, norm = shrunk(tensor, 1e4)
    assert not ours.any()
    assert norm == 0
    assert not shrunk(np.zeros_like(tensor), 0.0)[0].any()


def test_the_number_of_threads_does_not_change_the_result():
    tensor = np.random.default_rng(4).normal(size=(3, 290, 290))
    np.testing.assert_array_equal(shrunk(tensor, 1.0, n_jobs=1)[0], shrunk(tensor, 1.0, n_jobs=3)[0])
