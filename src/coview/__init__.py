"""coview: one shared latent space and one clustering from several views of the same samples."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from coview._version import __version__ as __version__

if TYPE_CHECKING:
    from coview.compose import Concat, FixedSize, PerView, Preprocessed
    from coview.core.assign import Codebook, Directions
    from coview.core.select import Anchors, Entropy, Stratified, Uniform
    from coview.errors import InputError, ModelFileError
    from coview.io import ViewsReader, label_file, read_views
    from coview.kernels import RBF, Cosine, Linear, NeighborGraph, NormalizedPolynomial, Polynomial, Precomputed
    from coview.methods import METHODS
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
    from coview.persist import load, save
    from coview.summary import Summary, summarize
    from coview.tune import Tuned
    from coview.views import Views, as_views, stack_views

_HOMES = {
    "coview.compose": ["Concat", "FixedSize", "PerView", "Preprocessed"],
    "coview.core.assign": ["Codebook", "Directions"],
    "coview.core.select": ["Anchors", "Entropy", "Stratified", "Uniform"],
    "coview.errors": ["InputError", "ModelFileError"],
    "coview.io": ["ViewsReader", "label_file", "read_views"],
    "coview.kernels": ["RBF", "Cosine", "Linear", "NeighborGraph", "NormalizedPolynomial", "Polynomial", "Precomputed"],
    "coview.methods": ["METHODS"],
    "coview.methods.comic": ["COMIC"],
    "coview.methods.coreg": ["CoReg"],
    "coview.methods.kpca": ["KPCA"],
    "coview.methods.ksc": ["KSC"],
    "coview.methods.mvksc": ["MvKSC"],
    "coview.methods.mvscbp": ["MVSCBP"],
    "coview.methods.op_lfmvc": ["OPLFMVC"],
    "coview.methods.opmc": ["OPMC"],
    "coview.methods.sfmc": ["SFMC"],
    "coview.methods.tmvkscr": ["TMvKSCR"],
    "coview.methods.tsvd_msc": ["TSVDMSC"],
    "coview.persist": ["load", "save"],
    "coview.summary": ["Summary", "summarize"],
    "coview.tune": ["Tuned"],
    "coview.views": ["Views", "as_views", "stack_views"],
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "COMIC",
    "KPCA",
    "KSC",
    "METHODS",
    "MVSCBP",
    "OPLFMVC",
    "OPMC",
    "RBF",
    "SFMC",
    "TSVDMSC",
    "Anchors",
    "CoReg",
    "Codebook",
    "Concat",
    "Cosine",
    "Directions",
    "Entropy",
    "FixedSize",
    "InputError",
    "Linear",
    "ModelFileError",
    "MvKSC",
    "NeighborGraph",
    "NormalizedPolynomial",
    "PerView",
    "Polynomial",
    "Precomputed",
    "Preprocessed",
    "Stratified",
    "Summary",
    "TMvKSCR",
    "Tuned",
    "Uniform",
    "Views",
    "ViewsReader",
    "as_views",
    "label_file",
    "load",
    "read_views",
    "save",
    "stack_views",
    "summarize",
]


def __getattr__(name: str) -> Any:
    """Load public names on first use: the command's --help needs none of them."""
    if name not in _HOME_OF:
        raise AttributeError(f"module 'coview' has no attribute {name!r}")
    value = getattr(import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
