"""Parts of a summary in words, for the report and the terminal."""

from __future__ import annotations

from collections import Counter

from coview.certainty.stability import hennig_reading
from coview.formats import listed, percent, plural
from coview.summary.values import Summary


def refits_in_words(summary: Summary) -> list[str]:
    """Return how many clusters and samples models of half of the samples find again; nothing if it is not measured."""
    refits, stays = summary.refits, [each for each in summary.samples.stability or () if each is not None]
    if refits is None or not stays:
        return []
    known = [cluster.stability for cluster in summary.clusters if cluster.stability is not None]
    readings = Counter(map(hennig_reading, known))
    by_reading = listed([f"{count} of {len(known)} {name}" for name, count in readings.items()])
    labelled = "" if refits.predicts else " that label it"
    return [
        f"{plural(refits.n_repeats, 'model')} with the same settings, each of {plural(refits.n_drawn, 'sample')}, find "
        f"these clusters again as follows: {by_reading}. On average, a sample stays in its cluster in "
        f"{percent(sum(stays) / len(stays))} of the models{labelled}."
    ]
