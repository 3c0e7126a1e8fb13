"""The colours and marker shapes of clusters, the same in plots, reports and notebooks."""

from __future__ import annotations

# Ten colours that colour-blind readers can distinguish on white and on black. Eight are by Petroff (arXiv 2107.02270).
# Pink and blue replace his two greys, which look like missing clusters. The smallest distance between two colours, over
# normal vision and three kinds of colour blindness, is larger than with the greys.
PALETTE = ("#3f90da", "#ffa90e", "#bd1f01", "#d878a0", "#832db6", "#a96b59", "#e76300", "#b9ac70", "#4048e8", "#92dadd")
MARKERS = ("o", "s", "D", "^", "P", "X", "v", "p", "h", "*")


def cluster_style(label: int) -> tuple[str, str]:
    """Return the colour and the marker of a cluster.

    Parameters
    ----------
    label : int
        Labels that differ by a multiple of 100 have the same style.

    Returns
    -------
    tuple of str
        The colour as #rrggbb and the marker in matplotlib's notation.

    Examples
    --------
    >>> cluster_style(0), cluster_style(10)
    (('#3f90da', 'o'), ('#3f90da', 's'))
    """
    return PALETTE[label % len(PALETTE)], MARKERS[label // len(PALETTE) % len(MARKERS)]
