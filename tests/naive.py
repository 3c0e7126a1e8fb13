"""Slow twins: the mathematics of the paper written down as it stands, to compare the fast code with.

Every matrix is formed, nothing is folded, nothing is shared with the library.
"""

from __future__ import annotations

import itertools

import numpy as np
import scipy.linalg


def rbf(x, y, sigma2):
    return np.array([[np.exp(-sum((a - b) ** 2) / sigma2) for b in y] for a in x])


def centring_matrix(gram):
    """M = I - 1 1ᵀ D⁻¹ / (1ᵀ D⁻¹ 1) with the degrees of the uncentred Gram matrix."""
    n = len(gram)
    inverse_degrees = np.diag(1 / gram.sum(axis=1))
    ones = np.ones((n, 1))
    return np.eye(n) - ones @ ones.T @ inverse_degrees / (ones.T @ inverse_degrees @ ones).item()


def fused_problem(grams, kappa, rho):
    """The two matrices of the paper's generalised eigenproblem, M H = D H Λ."""
    centred = [centring_matrix(gram) @ gram @ centring_matrix(gram).T for gram in grams]
    added = sum(weight * matrix for weight, matrix in zip(kappa, centred, strict=True))
    multiplied = np.ones_like(grams[0])
    for matrix in centred:
        multiplied = multiplied * matrix
    degrees = np.diag(sum(gram.sum(axis=1) for gram in grams))
    return rho * added + (1 - rho) * multiplied, degrees


def tmvkscr(grams, n_components, kappa, rho):
    """Eigenvalues, latent space and training scores of every view."""
    matrix, degrees = fused_problem(grams, kappa, rho)
    values, vectors = scipy.linalg.eigh(matrix, degrees)
    latent = vectors[:, ::-1][:, :n_components]
    scores = [centring_matrix(gram) @ gram @ centring_matrix(gram).T @ latent for gram in grams]
    return values[::-1][:n_components], latent, scores


def kpca(gram, n_components):
    """Eigenvalues, latent space and scores of plain kernel PCA."""
    n = len(gram)
    centring = np.eye(n) - np.ones((n, n)) / n
    values, vectors = np.linalg.eigh(centring @ gram @ centring)
    latent = vectors[:, ::-1][:, :n_components]
    return values[::-1][:n_components], latent, centring @ gram @ centring @ latent


def new_row_scores(similarities, gram, latent):
    """Scores of one new row: its feature vector minus the training mean, times w = Φ_cᵀ H, inner product by product.

    With φ_j the training rows in feature space and μ = Σ_j w_j φ_j their weighted mean,
    e = Σ_j <φ(x) - μ, φ_j - μ> H_j.
    """
    n = len(gram)
    weights = 1 / gram.sum(axis=1)
    weights = weights / weights.sum()
    scores = np.zeros(latent.shape[1])
    mean_with_mean = sum(weights[i] * weights[j] * gram[i, j] for i, j in itertools.product(range(n), repeat=2))
    row_with_mean = sum(weights[i] * similarities[i] for i in range(n))
    for j in range(n):
        mean_with_j = sum(weights[i] * gram[i, j] for i in range(n))
        scores += (similarities[j] - row_with_mean - mean_with_j + mean_with_mean) * latent[j]
    return scores


def codebook(scores, n_clusters):
    """Labels by the paper's codebook, with the two ties decided in score space."""

    def signs(row):
        return tuple(1 if value >= 0 else -1 for value in row)

    def direction(row):
        return row / np.linalg.norm(row)

    members = {}
    for row in scores:
        members.setdefault(signs(row), []).append(row)
    ranked = sorted(
        members, key=lambda code: (len(members[code]), sum(np.linalg.norm(row) for row in members[code])), reverse=True
    )
    codes = ranked[:n_clusters]
    centres = [direction(sum(direction(row) for row in members[code])) for code in codes]
    labels = []
    for row in scores:
        distances = [sum(a != b for a, b in zip(signs(row), code, strict=True)) for code in codes]
        nearest = [i for i, distance in enumerate(distances) if distance == min(distances)]
        labels.append(max(nearest, key=lambda i: direction(row) @ centres[i]))
    return np.array(labels)


def plain_fit(views, sigma2, rho, n_clusters):
    """Fit in plain NumPy, float64, as one would write it by hand and with care: the yardstick of speed.

    Same answer as TMvKSCR with RBF(sigma2) for each view, the sum and product weighted by rho, equal weights, and
    k-means on score directions.
    """
    from scipy.sparse.linalg import eigsh
    from sklearn.cluster import KMeans

    added, multiplied, degrees = 0.0, 1.0, 0.0
    for x, s in zip(views, sigma2, strict=True):
        lengths = (x * x).sum(axis=1)
        gram = np.exp(-np.maximum(lengths[:, None] + lengths - 2 * x @ x.T, 0) / s)
        degree = gram.sum(axis=1)
        weights = 1 / degree
        weights /= weights.sum()
        means = gram @ weights
        centred = gram - means[:, None] - means + weights @ means
        added = added + centred
        multiplied = multiplied * centred
        degrees = degrees + degree
    root = np.sqrt(degrees)
    matrix = (rho * added + (1 - rho) * multiplied) / root[:, None] / root
    start = np.random.default_rng(0).standard_normal(len(root))
    values, vectors = eigsh(matrix, n_clusters - 1, which="LA", v0=start, tol=1e-6)
    scores = added @ (vectors[:, ::-1] / root[:, None]) / len(views)
    directions = scores / np.linalg.norm(scores, axis=1, keepdims=True)
    return values[::-1], KMeans(n_clusters, n_init=10, random_state=0).fit(directions).labels_


def mvksc(grams, n_components, gamma):
    """Eigenvalues and training scores of every view, from the published unsymmetric pencil A α = λ B α."""
    n, n_views = len(grams[0]), len(grams)
    centred = [centring_matrix(gram) @ gram @ centring_matrix(gram).T for gram in grams]
    degrees = [gram.sum(axis=1) for gram in grams]
    a, b = np.zeros((n_views * n, n_views * n)), np.eye(n_views * n)
    for v, u in itertools.product(range(n_views), repeat=2):
        block = np.ix_(range(v * n, (v + 1) * n), range(u * n, (u + 1) * n))
        if u == v:
            b[block] -= gamma[v] / n * np.diag(1 / degrees[v]) @ centred[v]
        else:
            a[block] = np.diag(degrees[v] ** -0.5) @ np.diag(degrees[u] ** -0.5) @ centred[u]
    values, vectors = scipy.linalg.eig(a, b)
    largest = np.argsort(-values.real)[:n_components]
    alpha = vectors[:, largest].real.reshape(n_views, n, n_components)
    return values.real[largest], [omega @ part for omega, part in zip(centred, alpha, strict=True)]
