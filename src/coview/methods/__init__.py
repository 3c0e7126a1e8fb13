"""One published method, one file; METHODS is the table that the command, the tests and the benchmarks read."""

from collections.abc import Mapping

from coview.methods.base import MultiViewClusterer
from coview.methods.comic import COMIC
from coview.methods.coreg import CoReg
from coview.methods.kpca import KPCA
from coview.methods.ksc import KSC
from coview.methods.mvksc import MvKSC
from coview.methods.mvscbp import MVSCBP
from coview.methods.op_lfmvc import OPLFMVC
from coview.methods.opmc import OPMC
from coview.methods.sfmc import SFMC
from coview.methods.tmvkscr import TMvKSCR
from coview.methods.tsvd_msc import TSVDMSC

METHODS: Mapping[str, type[MultiViewClusterer]] = {
    "tmvkscr": TMvKSCR,
    "ksc": KSC,
    "kpca": KPCA,
    "mvksc": MvKSC,
    "coreg": CoReg,
    "tsvdmsc": TSVDMSC,
    "comic": COMIC,
    "oplfmvc": OPLFMVC,
    "opmc": OPMC,
    "sfmc": SFMC,
    "mvscbp": MVSCBP,
}
