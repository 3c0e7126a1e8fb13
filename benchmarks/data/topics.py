"""Generated documents in five languages, of the size and sparsity of large-scale Reuters, which is not available."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from benchmarks.data.shapes import PAPER_TABLE
from coview.data.as_views import as_views
from coview.data.view import Array
from coview.data.views import Views

SHAPE = PAPER_TABLE["reuters_large"]
TOPICS = 60  # ten of them are frequent in each class
WORDS = 97  # of a document on average, with repetitions: about 85 different ones, as in `reuters600_5v`
ON_TOPIC = 0.5  # part of the words that come from the document's topics; the others are of the language


def make_topics(random_state: int = 0, n_samples: int = SHAPE.samples) -> tuple[Views, Array]:
    """Return documents of six classes as sparse word counts in five languages, with tf-idf weights.

    A class has its own distribution of topics, a document draws its mixture of topics from it, and the views share this
    mixture. Each topic prefers some words of each language; words are as frequent as Zipf's law has it.

    Parameters
    ----------
    random_state : int
    n_samples : int
        By default that of large-scale Reuters.

    Returns
    -------
    views : Views
    labels : array of shape (n_samples,)
    """
    rng = np.random.default_rng(random_state)
    truth = rng.integers(SHAPE.clusters, size=n_samples)
    of_class = rng.dirichlet(np.full(TOPICS, 0.2), size=SHAPE.clusters)
    mixture = np.stack([rng.dirichlet(20 * of_class[c] + 1e-2) for c in truth])
    return as_views({name: _language(mixture, width, rng) for name, width in SHAPE.widths.items()}), truth


def _language(mixture: Array, width: int, rng: np.random.Generator) -> sp.csr_array:
    """Return the documents in one language."""
    n = len(mixture)
    lengths = np.maximum(rng.poisson(WORDS * rng.lognormal(-0.08, 0.4, n)), 5)
    on_topic = rng.binomial(lengths, ON_TOPIC)
    counts = rng.multinomial(on_topic, mixture)  # of words from each topic
    frequency = 1 / np.arange(1.0, width + 1)  # Zipf's law
    documents, words = (
        [np.repeat(np.arange(n), lengths - on_topic)],
        [_draw(frequency, (lengths - on_topic).sum(), rng)],
    )
    for topic in range(counts.shape[1]):
        documents.append(np.repeat(np.arange(n), counts[:, topic]))
        words.append(_draw(rng.permutation(frequency), counts[:, topic].sum(), rng))
    rows, columns = np.concatenate(documents), np.concatenate(words)
    found = sp.csr_array((np.ones(len(rows)), (rows, columns)), shape=(n, width))
    found.sum_duplicates()
    present = np.bincount(found.indices, minlength=width)
    found.data *= (np.log((1 + n) / (1 + present)) + 1)[found.indices]
    return found


def _draw(weights: Array, n: int, rng: np.random.Generator) -> Array:
    """Return n numbers of words, drawn in proportion to weights."""
    ends = np.cumsum(weights)
    return np.searchsorted(ends, ends[-1] * rng.random(n), side="right").clip(max=len(weights) - 1)
