"""Reference implementations: the equations of the papers, literally, to compare the fast code with.

Every matrix is formed, and no code is shared with the library.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import scipy.linalg
import scipy.optimize


def rbf(x, y, sigma2):
    return np.array([[np.exp(-sum((a - b) ** 2) / sigma2) for b in y] for a in x])


def regularized_degrees(gram, regularization=0.0):
    """The row sums, plus a multiple of their mean."""
    degrees = gram.sum(axis=1)
    return degrees + regularization * degrees.mean()


def centring_matrix(gram, regularization=0.0):
    """M = I - 1 1ᵀ D⁻¹ / (1ᵀ D⁻¹ 1) with the degrees of the uncentred Gram matrix."""
    n = len(gram)
    inverse_degrees = np.diag(1 / regularized_degrees(gram, regularization))
    ones = np.ones((n, 1))
    return np.eye(n) - ones @ ones.T @ inverse_degrees / (ones.T @ inverse_degrees @ ones).item()


def fused_problem(grams, kappa, rho, regularization=0.0):
    """The two matrices of the paper's generalised eigenproblem, M H = D H Λ."""
    centrings = [centring_matrix(gram, regularization) for gram in grams]
    centred = [centring @ gram @ centring.T for centring, gram in zip(centrings, grams, strict=True)]
    added = sum(weight * matrix for weight, matrix in zip(kappa, centred, strict=True))
    multiplied = np.ones_like(grams[0])
    for matrix in centred:
        multiplied = multiplied * matrix
    degrees = np.diag(sum(regularized_degrees(gram, regularization) for gram in grams))
    return rho * added + (1 - rho) * multiplied, degrees


def tmvkscr(grams, n_components, kappa, rho, regularization=0.0):
    """Eigenvalues, latent space and training scores of every view."""
    matrix, degrees = fused_problem(grams, kappa, rho, regularization)
    values, vectors = scipy.linalg.eigh(matrix, degrees)
    latent = vectors[:, ::-1][:, :n_components]
    centrings = [centring_matrix(gram, regularization) for gram in grams]
    scores = [centring @ gram @ centring.T @ latent for centring, gram in zip(centrings, grams, strict=True)]
    return values[::-1][:n_components], latent, scores


def incomplete_problem(grams, present, kappa, rho, regularization=0.0):
    """The same two matrices if samples lack views; the Gram matrix of a view is that of the samples that have it."""
    n = len(present[0])
    added, multiplied, degrees = np.zeros((n, n)), np.ones((n, n)), np.zeros((n, n))
    for gram, mask, weight in zip(grams, present, kappa, strict=True):
        centring = centring_matrix(gram, regularization)
        centred = centring @ gram @ centring.T
        typical = np.abs(centred).mean()
        place = {sample: i for i, sample in enumerate(np.flatnonzero(mask))}
        for i, j in itertools.product(range(n), repeat=2):
            both = i in place and j in place
            added[i, j] += weight * centred[place[i], place[j]] if both else 0
            multiplied[i, j] *= centred[place[i], place[j]] if both else typical
        for i in place:
            degrees[i, i] += regularized_degrees(gram, regularization)[place[i]]
    return rho * added + (1 - rho) * multiplied, degrees


def incomplete_tmvkscr(grams, present, n_components, kappa, beta, rho, regularization=0.0):
    """Eigenvalues, latent space and ensemble scores if samples lack views."""
    matrix, degrees = incomplete_problem(grams, present, kappa, rho, regularization)
    values, vectors = scipy.linalg.eigh(matrix, degrees)
    latent = vectors[:, ::-1][:, :n_components]
    n = len(latent)
    of_views = []  # for each view a dictionary from sample to scores
    for gram, mask in zip(grams, present, strict=True):
        centring, rows = centring_matrix(gram, regularization), np.flatnonzero(mask)
        of_views.append(dict(zip(rows, centring @ gram @ centring.T @ latent[rows], strict=True)))
    complete = [i for i in range(n) if all(i in scores for scores in of_views)]
    whole = {i: sum(b * scores[i] for b, scores in zip(beta, of_views, strict=True)) for i in complete}
    squares = sum(e @ e for e in whole.values())
    loadings = [sum(scores[i] @ whole[i] for i in complete) / squares for scores in of_views]
    if len(complete) < 5:
        loadings = [1.0] * len(of_views)
    ensemble = np.zeros_like(latent)
    for i in range(n):
        views = [v for v, scores in enumerate(of_views) if i in scores]
        total = sum(beta[v] * of_views[v][i] for v in views)
        ensemble[i] = total if len(views) == len(of_views) else total / sum(beta[v] * loadings[v] for v in views)
    return values[::-1][:n_components], latent, ensemble


def kpca(gram, n_components):
    """Eigenvalues, latent space and scores of plain kernel PCA."""
    n = len(gram)
    centring = np.eye(n) - np.ones((n, n)) / n
    values, vectors = np.linalg.eigh(centring @ gram @ centring)
    latent = vectors[:, ::-1][:, :n_components]
    return values[::-1][:n_components], latent, centring @ gram @ centring @ latent


def new_row_scores(similarities, gram, latent):
    """Scores of one new row: its feature vector minus the training mean, times w = Φ_cᵀ H, from inner products.

    With φ_j the training samples in feature space and μ = Σ_j w_j φ_j their weighted mean,
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
    """Labels by the paper's codebook, with both kinds of ties decided by the scores."""

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


def membership(scores, clusters):
    """Memberships by the softmax of the nearness to each cluster, row by row."""
    rows = []
    for row in scores:
        direction = row / (np.linalg.norm(row) or 1.0)
        nearness = []
        for j, centre in enumerate(clusters.centres):
            if hasattr(clusters, "words"):
                signs = np.mean(
                    [(1 if value >= 0 else -1) * code for value, code in zip(row, clusters.words[j], strict=True)]
                )
                nearness.append(signs + direction @ centre / (2 * len(row)))
            else:
                nearness.append(-np.sum((direction - centre) ** 2) / 2)
        weights = np.exp(np.array(nearness) * np.log(1 + len(nearness)) / clusters.undecided)
        rows.append(weights / weights.sum())
    return np.array(rows)


def graph_closeness(distances, radii, n_neighbors):
    """Mean of r / (r + d) over the nearest rows, from a full matrix of distances; the own one is infinite."""
    closeness = []
    for row in distances:
        nearest = sorted(range(len(row)), key=lambda j: (row[j], j))[:n_neighbors]
        near = [(radii[j], row[j]) for j in nearest if np.isfinite(row[j])]
        closeness.append(np.mean([1.0 if r + d == 0 else r / (r + d) for r, d in near]) if near else 1.0)
    return np.array(closeness)


def quantile(value, reference, tolerance=0.0):
    """The fraction of a positive reference below a value, interpolated between neighbours, and from 0 to the first.

    Values that exceed the first of a tie by less than the tolerance belong to it. A value that differs by less from the
    mean of a tie has its middle rank.
    """
    ties = []
    for rank, each in enumerate(sorted(reference), start=1):
        if ties and each <= ties[-1][0][0] * (1 + tolerance):
            ties[-1].append((each, rank))
        else:
            ties.append([(each, rank)])
    means = [tuple(np.mean(tie, axis=0)) for tie in ties]
    nearest, middle_rank = min(means, key=lambda mean: abs(value - mean[0]))
    if abs(value - nearest) <= tolerance * nearest:
        return middle_rank / (len(reference) + 1)
    points = [0.0, *sorted(reference)]
    if value >= points[-1]:
        return len(reference) / (len(reference) + 1)
    i = max(j for j, point in enumerate(points) if point <= value)
    return (i + (value - points[i]) / (points[i + 1] - points[i])) / (len(reference) + 1)


def plain_fit(views, sigma2, rho, n_clusters):
    """Fit in plain NumPy, float64, written with care: the baseline of speed.

    Same result as TMvKSCR with RBF(sigma2) for each view, the sum and product weighted by rho, equal weights, and
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


def tfidf(train, rows):
    """Counts times 1 + ln((1 + n) / (1 + m)), where m of the n training samples contain the word."""
    n = len(train)
    weighted = np.zeros((len(rows), train.shape[1]))
    for i, j in itertools.product(range(len(rows)), range(train.shape[1])):
        having = sum(train[k, j] != 0 for k in range(n))
        weighted[i, j] = rows[i, j] * (1 + np.log((1 + n) / (1 + having)))
    return weighted


def equal_sums(train, rows):
    """Each row over its sum, times the median sum of the nonzero training samples; zero rows do not change."""
    positive = sorted(sum(row) for row in train if sum(row) > 0)
    middle = (positive[(len(positive) - 1) // 2] + positive[len(positive) // 2]) / 2
    return np.array([[value / sum(row) * middle if sum(row) > 0 else 0.0 for value in row] for row in rows])


def components(train, rows, count, *, centred):
    """Coordinates along the leading eigenvectors of the matrix of (centred) second moments; signs are arbitrary."""
    centre = sum(train) / len(train) if centred else np.zeros(train.shape[1])
    moments = sum(np.outer(row - centre, row - centre) for row in train)
    _, vectors = np.linalg.eigh(moments)
    leading = vectors[:, ::-1][:, :count]
    return np.array([[(row - centre) @ direction for direction in leading.T] for row in rows])


def neighbour_order(x, rows, without=None):
    """Numbers of the rows by increasing distance to x; of equal distances the smaller number first.

    A row (`without` is its number) has no neighbours if all rows are equal: none is nearer than another.
    """
    if without is not None and all((row == x).all() for row in rows):
        return []
    others = [j for j in range(len(rows)) if j != without]
    return sorted(others, key=lambda j: (float(np.sqrt(sum((x - rows[j]) ** 2))), j))


def neighbour_scale(x, rows, order, scale_neighbor):
    """Distance of x from its scale_neighbor-th neighbour; if that is a duplicate, from the nearest different row."""
    distances = [float(np.sqrt(sum((x - rows[j]) ** 2))) for j in order]
    scale = distances[min(scale_neighbor, len(distances)) - 1] if distances else 1.0
    return scale or min((d for row in rows if (d := float(np.sqrt(sum((x - row) ** 2)))) > 0), default=1.0)


def neighbour_graph(rows, n_neighbors, scale_neighbor):
    """The Gram matrix of the neighbour graph, and for each row its scale and the distance of its last neighbour."""
    n, width = len(rows), max(n_neighbors, scale_neighbor)
    orders = [neighbour_order(rows[i], rows, without=i)[:width] for i in range(n)]
    scales = [neighbour_scale(rows[i], rows, orders[i], scale_neighbor) for i in range(n)]
    near = [set(order[:n_neighbors]) for order in orders]
    last = [orders[i][:n_neighbors][-1] if orders[i] else i for i in range(n)]
    radii = [float(np.sqrt(sum((rows[i] - rows[last[i]]) ** 2))) for i in range(n)]
    gram = np.eye(n)
    for i, j in itertools.permutations(range(n), 2):
        if j in near[i] or i in near[j]:
            gram[i, j] = np.exp(-sum((rows[i] - rows[j]) ** 2) / (scales[i] * scales[j]))
    return gram, scales, radii


def neighbour_graph_row(x, rows, n_neighbors, scale_neighbor):
    """Similarities of a new row, different from all rows, to all of them."""
    _, scales, radii = neighbour_graph(rows, n_neighbors, scale_neighbor)
    order = neighbour_order(x, rows)[: max(n_neighbors, scale_neighbor)]
    scale = neighbour_scale(x, rows, order, scale_neighbor)
    similarities = np.zeros(len(rows))
    for j in range(len(rows)):
        distance = float(np.sqrt(sum((x - rows[j]) ** 2)))
        if j in order[:n_neighbors] or distance < radii[j]:
            similarities[j] = np.exp(-(distance**2) / (scale * scales[j]))
    return similarities


def fuzzy_scales(distances):
    """Offset and bandwidth of a row with these distances to its k neighbours; its weights sum to log2(k)."""
    if not distances:
        return 0.0, 1.0
    offset = min((d for d in distances if d > 0), default=0.0)
    low = 1e-3 * (distances[-1] or 1.0)
    high = low

    def total(bandwidth):
        return sum(fuzzy_weight(d, (offset, bandwidth)) for d in distances)

    if total(low) >= math.log2(len(distances)):  # a smaller bandwidth is not used
        return offset, low
    while total(high) < math.log2(len(distances)):
        high *= 2
    return offset, scipy.optimize.brentq(lambda s: total(s) - math.log2(len(distances)), low, high, xtol=1e-15 * low)


def fuzzy_weight(distance, scales):
    offset, bandwidth = scales
    return math.exp(-max(distance - offset, 0) / bandwidth)


def fuzzy_graph(rows, n_neighbors):
    """The Gram matrix of the fuzzy graph; for each row its scales, the distance of its last neighbour, its degree."""
    n = len(rows)
    orders = [neighbour_order(rows[i], rows, without=i)[:n_neighbors] for i in range(n)]
    distances = [[float(np.sqrt(sum((rows[i] - rows[j]) ** 2))) for j in orders[i]] for i in range(n)]
    scales = [fuzzy_scales(own) for own in distances]
    directed = np.zeros((n, n))
    for i in range(n):
        directed[i, orders[i]] = [fuzzy_weight(distance, scales[i]) for distance in distances[i]]
    weights = directed + directed.T - directed * directed.T
    np.fill_diagonal(weights, 1.0)
    degrees = weights.sum(axis=1)
    radii = [own[-1] if own else 0.0 for own in distances]
    return weights / np.sqrt(np.outer(degrees, degrees)), scales, radii, degrees


def fuzzy_graph_row(x, rows, n_neighbors):
    """Similarities of a new row, different from all rows, to all of them."""
    _, scales, radii, degrees = fuzzy_graph(rows, n_neighbors)
    distances = [float(np.sqrt(sum((x - row) ** 2))) for row in rows]
    order = neighbour_order(x, rows)[:n_neighbors]
    own = fuzzy_scales([distances[j] for j in order])
    weights = np.zeros(len(rows))
    for j in range(len(rows)):
        there = fuzzy_weight(distances[j], own) if j in order else 0.0
        back = fuzzy_weight(distances[j], scales[j]) if distances[j] < radii[j] else 0.0
        weights[j] = there + back - there * back
    return weights / np.sqrt((1 + weights.sum()) * degrees)


def membership_strength(scores, labels, centres):
    """Mean over clusters of the members' soft membership: products of the cosine distances to all other centres."""
    k, by_cluster = len(centres), {}
    for e, label in zip(scores, labels, strict=True):
        distances = [1 - e @ s / (np.linalg.norm(e) * np.linalg.norm(s)) for s in centres]
        products = [math.prod(distances[j] for j in range(k) if j != p) for p in range(k)]
        by_cluster.setdefault(label, []).append(products[label] / sum(products))
    return sum(sum(values) / len(values) for values in by_cluster.values()) / len(by_cluster)


def rows_around(centre, points, radii):
    """Numbers of the points within the second of two radii of a centre; those within the first one come first."""
    distances = np.linalg.norm(points - centre, axis=1)
    inner, outer = distances <= radii[0], distances <= radii[1]
    return [*np.flatnonzero(inner), *np.flatnonzero(outer & ~inner)]


def neighbours_of_neighbours(lists, own):
    """Rows that a refinement compares with a group: neighbours in either direction, and their neighbours."""
    near = {j for i in own for j in lists[i]} | {i for i, found in enumerate(lists) for j in found if j in own}
    return sorted(near | {j for i in near for j in lists[i]})


def merged_list(a, b, k):
    """The k nearest of two lists of (distance, row), each row once."""
    return sorted(set(a) | set(b))[:k]


def smallest_of_each(query, numbers, k, n_queries):
    """Places of the k smallest numbers of each query, by sorting the numbers of one query at a time."""
    places = [np.flatnonzero(query == q) for q in range(n_queries)]
    return np.array([own[np.argsort(numbers[own], kind="stable")[:k]] for own in places])


def stability(labels, halves):
    """Mean Jaccard index of each cluster's best match, and the fraction of models in which each sample stays.

    A half is a dictionary from sample to the label by one model. Clusters are matched one to one by trying all ways.
    """
    names = sorted(set(labels))
    indices, stays = {name: [] for name in names}, {i: [] for i in range(len(labels))}
    for found in halves:
        theirs = sorted(set(found.values()))
        members = {name: {i for i in found if labels[i] == name} for name in names}
        other = {name: {i for i in found if found[i] == name} for name in theirs}
        jaccard = {(a, b): len(members[a] & other[b]) / len(members[a] | other[b]) for a in names for b in theirs}
        for name in names:
            if members[name]:
                indices[name].append(max(jaccard[name, each] for each in theirs))
        nothing = [None] * len(names)
        ways = itertools.permutations([*theirs, *nothing], len(names))
        best = max(ways, key=lambda way: sum(jaccard.get(pair, 0) for pair in zip(names, way, strict=True)))
        match = dict(zip(names, best, strict=True))
        for i in found:
            stays[i].append(match[labels[i]] == found[i])
    means = [sum(each) / len(each) if each else None for each in indices.values()]
    return means, [sum(each) / len(each) if each else None for each in stays.values()]


def view_contributions(parts, weights, centres, label, others=()):
    """The contribution of each view to the label of one sample, from its summand of the score; None if it is absent.

    The score may have further summands, of no view, in other coordinates: these count for the nearest cluster only.
    """
    known = [part for part in parts if part is not None]
    score = sum([*known, *others])
    direction = score / math.sqrt(sum(score**2))
    far = {c: sum((direction - centre) ** 2) for c, centre in enumerate(centres) if c != label}
    second = min(far, key=far.get)
    seen = sum(known) != 0  # the coordinates to which the views contribute
    p, q = centres[label] * seen, centres[second] * seen
    weight = sum(w for w, part in zip(weights, parts, strict=True) if part is not None)
    constant = (sum(p**2) - sum(q**2)) / 2
    return [
        None if part is None else sum(part * (p - q)) / math.sqrt(sum(score**2)) - w / weight * constant
        for w, part in zip(weights, parts, strict=True)
    ]


def encoded_mixed(rows, kinds, training):
    """Return rows of a mixed table as numbers, cell by cell; kinds are "number", "category", or a list of levels."""
    columns = list(zip(*training, strict=True))
    out = []
    for row in rows:
        encoded = []
        for cell, kind, column in zip(row, kinds, columns, strict=True):
            if kind == "category":
                fractions = {value: column.count(value) / len(column) for value in set(column)}
                gini = 1 - sum(p**2 for p in fractions.values())
                encoded += [float(cell == value) / (gini**0.5 or 1.0) for value in sorted(fractions)]
                continue
            ranks = {value: float(i) for i, value in enumerate(kind)} if kind != "number" else None
            known = [float(value) if ranks is None else ranks[value] for value in column]
            mean = sum(known) / len(known)
            deviation = (sum((value - mean) ** 2 for value in known) / len(known)) ** 0.5
            value = mean if ranks is not None and cell not in ranks else float(cell) if ranks is None else ranks[cell]
            encoded.append((value - mean) / (deviation or 1.0))
        out.append(encoded)
    return np.array(out)


def places_on_map(directions, arranged, positions, n_neighbours=5):
    """The mean position of the nearest arranged samples, weighted by the inverse squares of their distances."""
    found = []
    for direction in directions:
        distances = [math.sqrt(sum((a - b) ** 2 for a, b in zip(direction, other, strict=True))) for other in arranged]
        last = sorted(distances)[:n_neighbours][-1]
        near = [i for i, distance in enumerate(distances) if distance <= last]
        weights = [1 / max(distances[i], 1e-5) ** 2 for i in near]
        x, y = (sum(w * positions[i][axis] for w, i in zip(weights, near, strict=True)) for axis in (0, 1))
        found.append((x / sum(weights), y / sum(weights)))
    return np.array(found)


def best_overlap(a, b):
    """The largest number of samples in matched clusters, over all one-to-one matchings of two clusterings."""
    rows, columns = sorted(set(a)), sorted(set(b))
    shared = {(i, j): sum(x == i and y == j for x, y in zip(a, b, strict=True)) for i in rows for j in columns}
    if len(rows) > len(columns):
        return best_overlap(b, a)
    return max(
        sum(shared[i, j] for i, j in zip(rows, some, strict=True))
        for some in itertools.permutations(columns, len(rows))
    )


def average_linkage(labels):
    """Partitions of the samples by number of clusters, the distance of two samples being the fraction of clusterings
    that separate them; and the least difference between the smallest two distances of a merge above distance 0.
    """
    clusters = [[i] for i in range(len(labels))]
    apart = [[sum(a != b for a, b in zip(x, y, strict=True)) / len(x) for y in labels] for x in labels]
    partitions, least_gap = {}, math.inf
    while True:
        partition = np.empty(len(labels), dtype=int)
        for number, cluster in enumerate(clusters):
            partition[cluster] = number
        partitions[len(clusters)] = partition
        if len(clusters) == 1:
            return partitions, least_gap
        means = sorted(
            (sum(apart[a][b] for a in first for b in second) / (len(first) * len(second)), i, j)
            for j, second in enumerate(clusters)
            for i, first in enumerate(clusters[:j])
        )
        distance, i, j = means[0]
        if distance > 0 and len(means) > 1:
            least_gap = min(least_gap, means[1][0] - distance)
        clusters[i] = clusters[i] + clusters.pop(j)


def clusters_of_size(partitions, n_clusters, least):
    """Clusters of a hierarchy of distinct samples, given by its partitions: merges of parts with at least some samples
    are undone first, then the others, the highest first. The smaller part becomes a cluster of its own, so that a
    sample belongs to the last merge in whose smaller part it is.
    """
    undone = []
    for k in range(1, len(partitions)):
        merged = next(c for c in set(partitions[k]) if len(set(partitions[k + 1][partitions[k] == c])) == 2)
        parts = [set(np.flatnonzero((partitions[k] == merged) & (partitions[k + 1] == c))) for c in partitions[k + 1]]
        smaller, larger = sorted((part for i, part in enumerate(parts) if part and part not in parts[:i]), key=len)
        undone.append((len(smaller) < least, k, smaller, len(smaller) == len(larger)))
    chosen = sorted(undone, key=lambda merge: merge[:2])[: n_clusters - 1]
    assert not any(equal for *_, equal in chosen), "either part of equal size may become the new cluster"
    inside = [[k for _, k, smaller, _ in chosen if i in smaller] for i in range(len(partitions[1]))]
    return [max(merges, default=0) for merges in inside]


def walk(weights, graphs, n_components):
    """Eigenvalues and eigenvectors of D⁻¹ W for the weighted sum W of graphs, without the constant eigenvector.

    The eigenvectors have Σ dᵢ vᵢ² = Σ dᵢ, as the constant vector of ones has.
    """
    total = sum(weight * graph for weight, graph in zip(weights, graphs, strict=True))
    degrees = np.array([sum(row) for row in total])
    transitions = np.array([row / degree for row, degree in zip(total, degrees, strict=True)])
    stationary = degrees / sum(degrees)
    # The constant vector gets the eigenvalue -1, the last one, because 1ᵀ D v = 0 for all others.
    values, vectors = np.linalg.eig(transitions - 2 * np.outer(np.ones(len(total)), stationary))
    order = np.argsort(-values.real)[:n_components]
    values, vectors = values[order].real, vectors[:, order].real
    norms = [math.sqrt(sum(stationary * v**2)) for v in vectors.T]
    return values, vectors / norms


def label_fractions(clusters, labels):
    """The fraction of the samples of each cluster that have each label, among those with a label (-1 is no label)."""
    table = np.zeros((max(clusters) + 1, max(labels) + 1))
    for cluster, label in itertools.product(range(len(table)), range(table.shape[1])):
        members = [other for own, other in zip(clusters, labels, strict=True) if own == cluster and other >= 0]
        table[cluster, label] = sum(other == label for other in members) / max(len(members), 1)
    return table


def mean_fraction(clusters, member_labels, own):
    """The mean over the members of the fraction of each cluster that has the sample's own label."""
    columns = list(zip(*member_labels, strict=True))
    tables = [label_fractions(clusters, column) for column in columns]
    return [
        sum(table[cluster, label] for table, label in zip(tables, own, strict=True)) / len(tables)
        for cluster in range(max(clusters) + 1)
    ]


def consensus_membership(steps, clusters, member_labels, own):
    """The membership of a sample: votes of its neighbours plus mean fractions of labels, divided by their sum."""
    n_clusters = max(clusters) + 1
    votes = [sum(step for step, c in zip(steps, clusters, strict=True) if c == k) for k in range(n_clusters)]
    both = [vote + fraction for vote, fraction in zip(votes, mean_fraction(clusters, member_labels, own), strict=True)]
    return [value / sum(both) for value in both]


def missing_label(steps, training):
    """The label with the largest sum of steps to training samples that have one; the most frequent without steps."""
    known = [label for label in training if label >= 0]
    votes = dict.fromkeys(sorted(known), 0.0)
    for step, label in zip(steps, training, strict=True):
        if label >= 0:
            votes[label] += step
    if not any(votes.values()):
        return max(sorted(votes), key=known.count)
    return max(votes, key=votes.get)


def valley(graph, first, second, prior=0.1, ending=1e-3):
    """The cut between two clusters, divided by the weakest and by the mean cut in the central half of a cluster.

    The samples of both are in the order of (L + εD)⁻¹ D y, where y is 0 in the first cluster and 1 in the second,
    those of the first cluster before those of the second. A cut is the weight of the edges between the samples before
    it and those after it. The prior, a multiple of the mean degree of the whole graph, is added to all cuts.
    """
    added = prior * sum(sum(row) for row in graph) / len(graph)
    samples = [*first, *second]
    part = np.array([[graph[i, j] for j in samples] for i in samples])
    degrees = np.diag(part.sum(axis=1))
    target = np.array([0.0] * len(first) + [1.0] * len(second))
    position = np.linalg.solve(degrees - part + ending * degrees, degrees @ target)
    low = sorted(range(len(first)), key=lambda i: position[i])
    order = low + sorted(range(len(first), len(samples)), key=lambda i: position[i])

    def cut(n_before):
        return sum(part[i, j] for i in order[:n_before] for j in order[n_before:])

    def inside(start, size):
        return [cut(start + n) for n in range(1, size) if size / 4 <= n <= 3 * size / 4] or [0.0]

    cuts = [inside(0, len(first)), inside(len(first), len(second))]
    between = cut(len(first)) + added
    weakest = min(min(each) for each in cuts) + added
    mean = min(sum(each) / len(each) for each in cuts) + added
    return between / weakest, between / mean


def modularity(graph, labels):
    """Σᵢⱼ (Wᵢⱼ / w - dᵢ dⱼ / w²) over pairs of the same community, with the sum w of all weights."""
    n, total = len(graph), sum(sum(row) for row in graph)
    degrees = [sum(row) for row in graph]
    return sum(
        graph[i, j] / total - degrees[i] * degrees[j] / total**2
        for i, j in itertools.product(range(n), repeat=2)
        if labels[i] == labels[j]
    )
