"""One published method, one file; METHODS is the table that the command, the tests and the benchmarks read."""

from collections.abc import Mapping

from coview.methods.base import MultiViewClusterer
from coview.methods.kpca import KPCA
from coview.methods.ksc import KSC
from coview.methods.mvksc import MvKSC
from coview.methods.tmvkscr import TMvKSCR

METHODS: Mapping[str, type[MultiViewClusterer]] = {
    "tmvkscr": TMvKSCR,
    "ksc": KSC,
    "kpca": KPCA,
    "mvksc": MvKSC,
}
