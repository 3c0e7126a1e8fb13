"""The pool: what the members of a consensus have in common for any number of clusters."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from coview.base.runtime import Workers
from coview.core.assign import Labels
from coview.data.view import Matrix
from coview.data.views import Views
from coview.evaluate.graphs import RepresentationGraph, Walk, weighted_sum
from coview.evaluate.members import Columns, Coordinates, Located, Member, Multiscale, Spectral
from coview.evaluate.representations import representations_of

_LEAST_COMPONENTS, _MORE_COMPONENTS = 20, 5  # at least, and more than clusters
_LEAST_COMPLETE = 0.5  # fraction of samples with all views, for members of all views side by side
_STARTS = 10  # of k-means


def numbers_of_members(n_clusters: int) -> tuple[int, int]:
    """Return the numbers of clusters of the members.

    Half of them have twice as many: a group that one of the others divides is then mostly divided elsewhere, too, so
    that less depends on the borders of the clusters of the first half. With a selected number above 15, the finer ones
    use the components of the search.
    """
    number = max(n_clusters, 2)
    return number, 2 * number


def n_components_for(n_clusters: int) -> int:
    """Return the number of components of the walks, without the constant one."""
    return max(n_clusters + _MORE_COMPONENTS, _LEAST_COMPONENTS) - 1


class Clusterings(NamedTuple):
    """Members with some numbers of clusters, and their labels of the training samples."""

    numbers: tuple[int, ...]
    members: tuple[Member, ...]
    own_labels: Labels  # (n_samples, n_members), -1 if a member has no label of a sample
    labels: Labels  # the same, with those of neighbours instead of -1


@dataclass(frozen=True)
class Graphs:
    """The neighbour graphs of the training samples, and the weighted sums of them that are walked on.

    Each view is represented by the directions of its rows and by its standardised columns, and so are all views side by
    side, unless most samples lack views. There is a sum of the graphs of the single views and one of that of all views,
    for both preprocessings, and a last one of all graphs.
    """

    graphs: tuple[RepresentationGraph, ...]
    adjacencies: tuple[Matrix, ...]
    weights: tuple[tuple[float, ...], ...]  # of the graphs, in each sum
    of_all_views: tuple[int, ...]  # the places of the graphs of all views

    @classmethod
    def learn(cls, views: Views, workers: Workers) -> Graphs:
        """Return the graphs of these training samples."""
        represented: list[Mapping[str, str]] = []  # the steps of each graph
        sums: list[dict[int, float]] = []
        stacked: list[int] = []

        def add(*steps: Mapping[str, str]) -> dict[int, float]:
            places = range(len(represented), len(represented) + len(steps))
            represented.extend(steps)
            sums.append(dict.fromkeys(places, 1.0))
            return sums[-1]

        joint: dict[int, float] = {}
        for steps in representations_of(views):
            joint |= add(*({name: step} for name, step in steps.items()))
            if len(steps) > 1 and views.has_all().mean() >= _LEAST_COMPLETE:
                joint |= dict.fromkeys(add(steps), float(len(steps)))  # as much as those of single views together
                stacked.append(len(represented) - 1)
            elif len(steps) == 1:
                stacked.append(len(represented) - 1)
        if len(joint) > 1:
            sums.append(joint)
        weights = (tuple(each.get(place, 0.0) for place in range(len(represented))) for each in sums)
        graphs = workers.map_large(partial(RepresentationGraph.learn, views), represented)
        return cls(tuple(graphs), tuple(graph.adjacency() for graph in graphs), tuple(weights), tuple(stacked))

    def sum(self, place: int) -> Matrix:
        """Return one of the sums of the graphs; the first is that of the single views, and the last that of all."""
        return weighted_sum(self.weights[place], self.adjacencies)


@dataclass(frozen=True)
class Pool:
    """The graphs, walks and coordinates of the training samples."""

    graphs: Graphs
    walks: tuple[Walk, ...]  # on the sums of the graphs
    samples: Located
    columns: tuple[Columns, ...]  # of the representations of all views

    @classmethod
    def learn(cls, views: Views, n_clusters: int, workers: Workers) -> Pool:
        """Return the pool of these training samples, for members with up to this number of clusters."""
        graphs, n_components = Graphs.learn(views, workers), n_components_for(n_clusters)
        learn = partial(Walk.learn, graphs.adjacencies, n_components)
        walks = workers.map_large(learn, graphs.weights)
        samples = Located.of(workers.map(lambda graph: graph.of_training(views), graphs.graphs), walks)
        columns = tuple(Columns.learn(place, samples.rows[place].table) for place in graphs.of_all_views)
        return cls(graphs, tuple(walks), samples, columns)

    def coordinates(self, n_clusters: int) -> list[Coordinates]:
        """Return the spaces of the members with this number of clusters."""
        n = n_components_for(n_clusters)
        single = range(max(len(self.walks) - 1, 1))  # on all graphs, the first components lose small groups
        return [
            *self.columns,
            *(Spectral(place, n_clusters) for place in single),
            *(Multiscale.learn(place, walk.first(n)) for place, walk in enumerate(self.walks)),
        ]

    def cluster(self, numbers: Sequence[int], seed: int, workers: Workers, n_starts: int = _STARTS) -> Clusterings:
        """Return the members with these numbers of clusters."""
        tasks = [(each, number) for number in numbers for each in self.coordinates(number)]

        def one(place: int) -> tuple[Member, Labels]:
            coordinates, number = tasks[place]
            member = Member.learn(coordinates, self.samples, number, n_starts, seed + place)
            return member, member.labels(self.samples)

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct rows than clusters, up to rounding
            members, labels = zip(*workers.map(one, range(len(tasks))), strict=True)
        own = np.column_stack(labels)
        return Clusterings(tuple(numbers), members, own, filled(own, own, self.samples.steps[-1]))


def filled(labels: Labels, training: Labels, steps: Matrix) -> Labels:
    """Return labels by several members, where a label -1 is replaced by the most frequent one among the neighbours.

    A member has no label of a sample if it uses a view that the sample lacks. The neighbours are training samples with
    labels of the member (`training`), weighted by the steps of the walk on all graphs. A sample without any such
    neighbour has the most frequent label of the member.
    """
    labels = labels.copy()
    for member in np.flatnonzero((labels < 0).any(axis=0)):
        rows, known = np.flatnonzero(labels[:, member] < 0), training[:, member] >= 0
        frequency = np.bincount(training[known, member])
        votes = steps[rows][:, known] @ (training[known, member][:, None] == np.arange(len(frequency)))
        labels[rows, member] = np.where(votes.sum(axis=1) > 0, votes.argmax(axis=1), frequency.argmax())
    return labels
