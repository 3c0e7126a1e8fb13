"""The consensus of the members: one clustering that labels any samples."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.utils import gen_batches

from coview.core.assign import Labels, new_numbers, number_by_size
from coview.core.novelty import joint_quantiles, quantiles
from coview.data.rows import evenly_spaced
from coview.data.view import Array, Matrix
from coview.data.views import Views
from coview.evaluate.graphs import RepresentationGraph, Walk
from coview.evaluate.linkage import Tree
from coview.evaluate.members import Located, Member, Multiscale
from coview.evaluate.pool import Clusterings, Pool, filled, n_components_for
from coview.model.model import Renumbered, Scorer, concatenated

_DECIMALS = 9  # of memberships, so that rounding errors do not decide between equal ones
_BLOCK_ROWS = 8192
_MOST_ROUNDS = 100  # of numbering clusters by size
_MOST_REFERENCE = 1000  # training samples with which the novelty of others is compared


def clusters_of_tree(members: Clusterings, n_clusters: int) -> Labels:
    """Return the clusters of the training samples by the tree of all members.

    Samples whose labels are too rare for the tree get the cluster that has most labels in common with them.
    """
    clusters = Tree.learn(members.labels).cut(n_clusters)
    rare = np.flatnonzero(clusters < 0)
    if len(rare):
        fractions = label_fractions(clusters, members.own_labels, members.members)
        clusters[rare] = mean_fraction(fractions, members.labels[rare]).argmax(axis=1)
    return clusters


def label_fractions(clusters: Labels, labels: Labels, members: Sequence[Member]) -> list[Array]:
    """Return for each member how the samples of a cluster are divided among its labels, (n_clusters, n_labels).

    A cluster or label of -1 is not counted.
    """
    tables = []
    for member, of_member in zip(members, labels.T, strict=True):
        counts = np.zeros((clusters.max() + 1, len(member.centres)))
        known = (clusters >= 0) & (of_member >= 0)
        np.add.at(counts, (clusters[known], of_member[known]), 1)
        tables.append(counts / np.maximum(counts.sum(axis=1, keepdims=True), 1))
    return tables


def mean_fraction(fractions: list[Array], labels: Labels) -> Array:
    """Return the mean over the members of the fraction of each cluster that has the label of a sample."""
    mean: Array = np.mean([table[:, each].T for table, each in zip(fractions, labels.T, strict=True)], axis=0)
    return mean


@dataclass(frozen=True)
class Consensus(Scorer):
    """The graphs and walks of the training samples, the members, and the clusters that they agree on.

    A sample belongs to the clusters of its neighbours in the walk on all graphs, and to the clusters whose samples have
    the same labels by the members; both count the same. Its label is the cluster to which it belongs most. If a cluster
    has so few samples that it would be lost, the neighbours do not count.
    """

    graphs: tuple[RepresentationGraph, ...]
    walks: tuple[Walk, ...]
    members: tuple[Member, ...]
    member_labels: Labels  # -1 if a member has none
    clusters: Labels  # of the training samples
    neighbours_vote: bool

    @classmethod
    def learn(cls, pool: Pool, members: Clusterings, clusters: Labels) -> tuple[Consensus, Labels]:
        """Return the consensus with these clusters, and its labels of the training samples, by decreasing size."""
        walks = tuple(walk.first(n_components_for(max(members.numbers))) for walk in pool.walks)
        model = cls(pool.graphs.graphs, walks, members.members, members.own_labels, clusters, neighbours_vote=True)
        for _ in range(_MOST_ROUNDS):
            labels = model.membership_of(pool.samples.steps[-1], members.labels).argmax(axis=1)
            order = number_by_size(labels)[1]
            if len(order) == model.n_clusters:
                if (order == np.arange(len(order))).all():
                    break
                # Numbers decide between equal memberships, so that the labels are computed again.
                model = replace(model, clusters=np.argsort(order)[model.clusters])
            elif model.neighbours_vote:  # a cluster of very few samples is outvoted by their neighbours
                model = replace(model, neighbours_vote=False)
            else:  # a cluster to which no sample belongs most is dropped
                kept = np.where(np.isin(model.clusters, order), model.clusters, labels)
                model = replace(model, clusters=np.unique(kept, return_inverse=True)[1])
        return model, model.membership_of(pool.samples.steps[-1], members.labels).argmax(axis=1)

    @property
    def n_clusters(self) -> int:
        return int(self.clusters.max()) + 1

    @cached_property
    def training_labels(self) -> Labels:
        """The labels of the training samples."""
        steps = self.walks[-1].steps([graph.training_similarities() for graph in self.graphs])
        labels = filled(self.member_labels, self.member_labels, steps)
        found: Labels = self.membership_of(steps, labels).argmax(axis=1)
        return found

    def words(self, view: str) -> list[str]:
        learnt = [graph.representation.preprocessing for graph in self.graphs]
        # Without the last step, for stacked views.
        found = [each[view].preprocessing.description.rsplit(", ", 1)[0] for each in learnt if view in each]
        return ["; ".join(dict.fromkeys(found))]

    def renumbered(self, order: Labels, labels: Labels, learnt: Mapping[str, Any]) -> Renumbered:
        numbers = new_numbers(order, self.n_clusters)[1]
        changed, support = replace(self, clusters=numbers[self.clusters]), learnt["support_"]
        return Renumbered(changed, changed.training_labels, {"support_": support and support.renumbered(numbers)})

    def level(self, n_clusters: int) -> Labels:
        """Return the clusters of the training samples for another number: a level of the tree with the labels.

        Levels are nested. Fewer clusters are unions of the clusters by `training_labels`, and more divide them.
        """
        level = self._tree.cut(n_clusters)
        for cluster in np.unique(self.training_labels[level < 0]):  # samples whose labels are too rare for the tree
            inside = self.training_labels == cluster
            level[inside & (level < 0)] = np.bincount(level[inside & (level >= 0)]).argmax()
        return level

    @cached_property
    def _tree(self) -> Tree:
        return Tree.learn(self.member_labels, self.training_labels)

    def located(self, views: Views) -> Located:
        """Return samples in all representations and walks."""
        return Located.of([graph.of(views) for graph in self.graphs], self.walks)

    def _of_blocks(self, function: Callable[[Located], Any], views: Views) -> Any:
        """Return a function of all samples, computed in blocks of rows."""
        blocks = map(views.take, gen_batches(views.n_samples, _BLOCK_ROWS))
        return concatenated([function(self.located(block)) for block in blocks])

    def labels(self, views: Views) -> Labels:
        labels: Labels = self.membership(views).argmax(axis=1)
        return labels

    def labels_and_ties(self, views: Views) -> Labels:
        memberships = self.membership(views)
        tied = (memberships == memberships.max(axis=1, keepdims=True)).sum(axis=1) > 1
        return np.column_stack([memberships.argmax(axis=1), tied])

    def membership(self, views: Views) -> Array:
        """Return the membership of each sample in each cluster; rows sum to 1."""
        return np.asarray(self._of_blocks(self._membership, views))

    def _membership(self, samples: Located) -> Array:
        labels = np.column_stack([member.labels(samples) for member in self.members])
        return self.membership_of(samples.steps[-1], filled(labels, self.member_labels, samples.steps[-1]))

    def membership_of(self, steps: Matrix, member_labels: Labels) -> Array:
        """Return the membership of samples with these steps in the last walk and these labels by the members."""
        together = mean_fraction(self._fractions, member_labels)
        if self.neighbours_vote:
            together += self.votes(steps)
        memberships = np.round(together / together.sum(axis=1, keepdims=True), _DECIMALS)
        return memberships / memberships.sum(axis=1, keepdims=True)

    def votes(self, steps: Matrix) -> Array:
        """Return the fraction of the neighbours of each sample in each cluster, weighted by steps."""
        votes: Array = steps @ self._indicators
        return votes

    @cached_property
    def _indicators(self) -> Array:
        return (self.clusters[:, None] == np.arange(self.n_clusters)).astype(np.float64)

    @cached_property
    def _fractions(self) -> list[Array]:
        return label_fractions(self.clusters, self.member_labels, self.members)

    @property
    def n_components(self) -> int:
        return len(self.walks[-1].eigenvalues)

    def scores(self, views: Views) -> Array:
        """Return the coordinates of each sample in the latent space: the components of the walk on all graphs."""
        return np.asarray(self._of_blocks(self._scores, views))

    def _scores(self, samples: Located) -> Array:
        space = Multiscale.learn(len(self.walks) - 1, self.walks[-1])
        scores = np.zeros((len(samples.rows[0].present), len(space.weights)))
        scores[space.known(samples)] = space.of(samples)
        return scores

    def labels_by_view(self, views: Views) -> dict[str, Labels]:
        """Return the labels by the neighbours in each view alone; -1 for samples that lack the view."""
        found = self._of_blocks(self._votes_by_view, views)
        return {name: _first_largest(votes) for name, votes in found.items()}

    def _votes_by_view(self, samples: Located) -> dict[str, Array]:
        """Return the votes of the neighbours in each view alone; NaN for samples that lack the view."""
        found: dict[str, Array] = {}
        for name, places in self._places_of_views.items():
            similarities = sum(samples.rows[place].similarities for place in places)
            votes = similarities @ self._indicators
            votes /= np.maximum(votes.sum(axis=1, keepdims=True), np.finfo(float).tiny)
            votes[~samples.rows[places[0]].present] = np.nan
            found[name] = votes
        return found

    def contributions(self, views: Views) -> dict[str, Array]:
        """Return the part of the neighbours in each view that is in the sample's cluster, minus that in the next one.

        The next cluster is the one with the second largest membership.
        """
        found: dict[str, Array] = self._of_blocks(self._contributions, views)
        return found

    def _contributions(self, samples: Located) -> dict[str, Array]:
        order = np.argsort(-self._membership(samples), axis=1, kind="stable")
        rows = np.arange(len(order))
        second = order[:, min(1, order.shape[1] - 1)]
        return {
            name: votes[rows, order[:, 0]] - votes[rows, second] for name, votes in self._votes_by_view(samples).items()
        }

    def usualness(self, views: Views) -> dict[str, Array]:
        """Return the fraction of training samples that are farther from the others than each sample, in each view."""
        found: dict[str, Array] = self._of_blocks(self._usualness, views)
        return found

    def _usualness(self, samples: Located) -> dict[str, Array]:
        found = {}
        for name, places in self._places_of_views.items():
            similarity, rows = self.graphs[places[0]].similarity, samples.rows[places[0]]
            closeness = np.full(len(rows.present), np.nan)
            if rows.present.any():
                closeness[rows.present] = similarity.closeness(rows.table)
            found[name] = quantiles(closeness, self._reference_closeness[name], similarity.closeness_tolerance)
        return found

    def joint_usualness(self, of_views: Mapping[str, Array]) -> Array:
        """Return the same for all views of each sample together."""
        reference = {}
        for name, places in self._places_of_views.items():
            graph = self.graphs[places[0]]
            known = self._reference_closeness[name]
            reference[name] = np.full(graph.n_training, np.nan)
            rows = graph.training_rows[evenly_spaced(len(graph.training_rows), _MOST_REFERENCE)]
            reference[name][rows] = quantiles(known, known, graph.similarity.closeness_tolerance)
        some = np.flatnonzero(~np.isnan(np.column_stack(list(reference.values()))).all(axis=1))
        return joint_quantiles(of_views, {name: values[some] for name, values in reference.items()})

    @cached_property
    def _reference_closeness(self) -> dict[str, Array]:
        found = {}
        for name, places in self._places_of_views.items():
            graph = self.graphs[places[0]]
            found[name] = graph.similarity.training_closeness(evenly_spaced(len(graph.training_rows), _MOST_REFERENCE))
        return found

    @cached_property
    def _places_of_views(self) -> dict[str, list[int]]:
        """The graphs of each view alone."""
        places: dict[str, list[int]] = {}
        for place, graph in enumerate(self.graphs):
            if len(graph.views) == 1:
                places.setdefault(graph.views[0], []).append(place)
        return places


def _first_largest(votes: Array) -> Labels:
    """Return the cluster with the most votes, the first of several; -1 for samples that lack the view."""
    return np.where(np.isnan(votes[:, 0]), -1, np.nan_to_num(votes).argmax(axis=1))
