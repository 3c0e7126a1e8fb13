import numpy as np
import pytest

from coview.base.runtime import Workers
from coview.core.tiles import SymmetricTiles


def tiles_of(matrix, dtype=np.float64, tile_rows=7, workers=None):
    tiles = SymmetricTiles(len(matrix), dtype, workers or Workers(1), tile_rows)
    for tile, (rows, columns) in zip(tiles.tiles, tiles.places, strict=True):
        tile[...] = matrix[rows, columns]
    return tiles


@pytest.fixture(params=[1, 5, 7, 8, 40])
def matrix(request):
    half = np.random.default_rng(0).normal(size=(request.param, request.param))
    return half + half.T


def test_tiles_hold_the_whole_matrix(matrix):
    tiles = tiles_of(matrix)
    np.testing.assert_array_equal(tiles.to_dense(), matrix)
    np.testing.assert_array_equal(tiles.diagonal(), matrix.diagonal())


@pytest.mark.parametrize("shape", [(), (1,), (3,)])
def test_products_use_both_sides_of_every_tile(matrix, shape):
    x = np.random.default_rng(1).normal(size=(len(matrix), *shape))
    np.testing.assert_allclose(tiles_of(matrix) @ x, matrix @ x, atol=1e-12)
    narrow = tiles_of(matrix, np.float32) @ x
    assert narrow.dtype == np.float64
    np.testing.assert_allclose(narrow, matrix @ x, atol=1e-4)


@pytest.mark.parametrize("width", [2, 12, 40])
def test_products_with_few_vectors_are_those_of_the_whole_matrix(width):
    half = np.random.default_rng(0).normal(size=(900, 900))
    x = np.random.default_rng(1).normal(size=(900, width))
    product = tiles_of(half + half.T, tile_rows=450) @ x
    np.testing.assert_allclose(product, (half + half.T) @ x, atol=1e-10)  # sums of 900 numbers of size 1


def test_products_are_bitwise_equal_for_any_number_of_threads():
    half = np.random.default_rng(0).normal(size=(60, 60))
    x = np.random.default_rng(1).normal(size=60)
    products = []
    for n_jobs in (1, 2, 5):
        with Workers(n_jobs) as workers:
            products.append(tiles_of(half + half.T, np.float32, 7, workers) @ x)
    assert all(np.array_equal(product, products[0]) for product in products)


@pytest.mark.parametrize("n", [10, 512, 3000, 10_000])
def test_memory_is_about_half_a_matrix(n):
    stored = sum(tile.nbytes for tile in SymmetricTiles(n, np.float32, Workers(1)).tiles)
    assert stored <= SymmetricTiles.nbytes(n, np.float32) <= 1.2 * 4 * n * max(n, 5000) / 2
