"""Views as Dask collections, in blocks of rows, on one machine or many; the only package that imports dask.

Install Dask with `pip install "coview[dask]"`.
"""

from coview.distributed.fits import fit as fit
from coview.distributed.fits import gather as gather
from coview.distributed.fits import select_rows as select_rows
from coview.distributed.labels import predict as predict
from coview.distributed.labels import predict_proba as predict_proba
from coview.distributed.labels import score_samples as score_samples
from coview.distributed.labels import transform as transform
from coview.distributed.views import DaskViews as DaskViews

__all__ = ["DaskViews", "fit", "gather", "predict", "predict_proba", "score_samples", "transform"]
