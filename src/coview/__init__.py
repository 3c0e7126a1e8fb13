"""coview: one shared latent space and one clustering from several views of the same samples."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from coview._version import __version__ as __version__
from coview.registry import ASSIGNERS, KERNELS, METHODS, SELECTORS

if TYPE_CHECKING:
    from coview.certainty.stability import stability
    from coview.compose import Concat, FixedSize, PerView, Preprocessed
    from coview.core.assign import Codebook, Directions
    from coview.core.select import Entropy, KMeansRows, Stratified, Uniform
    from coview.data.as_views import as_views, stack_views
    from coview.data.views import Views
    from coview.errors import InputError, ModelFileError
    from coview.evaluate.coview import Coview
    from coview.io import ViewsReader, label_file, read_views
    from coview.kernels import (
        RBF,
        AutoKernel,
        Cosine,
        FuzzyGraph,
        Linear,
        NeighborGraph,
        NormalizedPolynomial,
        Polynomial,
        Precomputed,
    )
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

_HOME_OF = {
    **METHODS.homes,
    **KERNELS.homes,
    **ASSIGNERS.homes,
    **SELECTORS.homes,
    "Concat": "coview.compose",
    "FixedSize": "coview.compose",
    "InputError": "coview.errors",
    "METHODS": "coview.registry",
    "ModelFileError": "coview.errors",
    "PerView": "coview.compose",
    "Preprocessed": "coview.compose",
    "Stratified": "coview.core.select",
    "Summary": "coview.summary",
    "Views": "coview.data.views",
    "ViewsReader": "coview.io",
    "as_views": "coview.data.as_views",
    "label_file": "coview.io",
    "load": "coview.persist",
    "read_views": "coview.io",
    "save": "coview.persist",
    "stability": "coview.certainty.stability",
    "stack_views": "coview.data.as_views",
    "summarize": "coview.summary",
}

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
    "AutoKernel",
    "CoReg",
    "Codebook",
    "Concat",
    "Cosine",
    "Coview",
    "Directions",
    "Entropy",
    "FixedSize",
    "FuzzyGraph",
    "InputError",
    "KMeansRows",
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
    "Uniform",
    "Views",
    "ViewsReader",
    "as_views",
    "label_file",
    "load",
    "read_views",
    "save",
    "stability",
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
