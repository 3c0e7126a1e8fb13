"""The support of clusters and the selection of their number in words, for messages, the terminal and the report."""

from __future__ import annotations

from coview.base.text import decimals, listed, plural
from coview.evaluate.number import ClusterNumber
from coview.evaluate.structure import LEAST_DIMENSION, Structure
from coview.evaluate.support import ClusterGroup, Support
from coview.evaluate.valleys import CUT_GAUSSIAN, DEEP

NO_STRUCTURE = "No cluster structure found"
_MOST_LISTED = 6  # clusters or parts; more are counted
_VALLEY = f"a ratio of at most {DEEP:.2f} is a valley, and a Gaussian that is cut in two has {CUT_GAUSSIAN:.2f} or more"


def support_in_words(support: Support) -> list[str]:
    """Return the level of the support and what it is based on, one sentence each."""
    level, groups = support.level, support.groups
    several = [group for group in groups if len(group.clusters) > 1]
    if level == "strong":
        largest = max((ratio for ratio in support.valleys if ratio is not None), default=0.0)
        return [
            "The support for these clusters is strong: the neighbour graph of all views has a valley between each two "
            f"of them. The largest valley ratio is {decimals(largest)}; {_VALLEY}."
        ]
    if level == "moderate":
        return [
            f"The support for these clusters is moderate: valleys of the neighbour graph separate "
            f"{len(groups)} groups of clusters, "
            f"and {plural(len(several), 'group')} of these {'has' if len(several) == 1 else 'have'} several clusters "
            f"without a known valley between them ({_VALLEY}).",
            *(_group_in_words(group) for group in several[:_MOST_LISTED]),
        ]
    if level == "weak":
        return [
            "The support for these clusters is weak: there is no valley between them "
            f"({_VALLEY}), but {_structure_in_words(groups[0].structure)}."
        ]
    if len(support.clusters) == 1:
        return [f"{NO_STRUCTURE}: the neighbour graph of all views has no valley, and {_absence(groups[0].structure)}."]
    return [
        f"There is no support for these clusters: no valley separates them, and {_absence(groups[0].structure)}.",
    ]


def number_in_words(number: ClusterNumber) -> str:
    """Return how the number of clusters was selected, with the next numbers, in a few sentences."""
    restricted = number.chosen != number.n_clusters
    nearest = f"{number.chosen} is the nearest of the requested numbers to the one found. " if restricted else ""
    selected = f"{nearest}{plural(number.n_clusters, 'cluster')} {'found' if nearest else 'selected'}"
    if number.n_clusters == 1:
        return f"{selected} from 1 to {number.largest}: {NO_STRUCTURE.lower()}."
    n_parts, total = len(number.parts), sum(count for _, count in number.votes)
    most_votes = next(votes for parts, votes in number.votes if parts == n_parts)
    most = f"{most_votes} of {plural(total, 'partition')} have {plural(n_parts, 'part')}"
    sentences = [
        f"{selected}: {most} after clusters without a valley between them are merged (partitions of up to "
        f"{plural(number.largest, 'cluster')})."
    ]
    divided = [part for part in number.parts if part.n_clusters > 1]
    if n_parts == 1:
        sentences.append(f"It is divided because {_structure_in_words(number.parts[0].structure)}.")
    elif divided:
        sentences.append(
            f"{plural(len(divided), 'part')} {'is' if len(divided) == 1 else 'are'} divided further because of "
            "structure without a valley."
        )
    others = [str(each) for each, _ in number.votes if each != n_parts][:2]
    if others:
        sentences.append(f"Other partitions have {listed(others)} {'part' if others == ['1'] else 'parts'}.")
    if number.at_limit:
        sentences.append(
            f"There may be more, because partitions of more than {plural(number.largest, 'cluster')} are not compared; "
            "give a number of clusters."
        )
    return " ".join(sentences)


def _group_in_words(group: ClusterGroup) -> str:
    names, n_more = [str(label) for label in group.clusters[:_MOST_LISTED]], len(group.clusters) - _MOST_LISTED
    named = listed(names if n_more <= 0 else [*names, f"{n_more} more"])
    found = group.structure is not None and group.structure.is_found
    words = _structure_in_words(group.structure) if found else _absence(group.structure)
    return f"Clusters {named}: {words}."


def _structure_in_words(structure: Structure | None) -> str:
    return f"the samples have more structure than data of the same covariance without groups{_excess(structure)}"


def _excess(structure: Structure | None) -> str:
    if structure is None or structure.excess is None or structure.needed is None:
        return ""
    return f" ({excess_in_words(structure.excess, structure.needed)})"


def excess_in_words(excess: float, needed: float) -> str:
    """Return the excess modularity and the least one that is structure, with the digits that tell them apart."""
    shown = decimals(excess, bounds=(needed,)), decimals(needed, bounds=(excess,))
    return f"excess modularity {shown[0]}, at least {shown[1]} is needed"


def _absence(structure: Structure | None) -> str:
    """Return why no structure is found, as a clause."""
    if structure is None or structure.dimension is None:
        return "there are too few samples to look for structure without a valley"
    if structure.excess is None:
        return (
            f"the samples have {decimals(structure.dimension, 1, bounds=(LEAST_DIMENSION,))} dimensions, as those of a "
            "curve or a surface, which can be divided anywhere"
        )
    return f"the samples have no more structure than data of the same covariance without groups{_excess(structure)}"
