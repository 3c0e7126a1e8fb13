"""The data sets of the benchmarks: size, origin, licence, and the call that returns each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from benchmarks.data.folder import stored_names
from benchmarks.data.shapes import PAPER_TABLE


@dataclass(frozen=True)
class Dataset:
    """One data set of the benchmarks."""

    name: str
    samples: int
    clusters: int
    origin: str
    licence: str  # as the source states it; the files are not part of coview
    available: bool  # stored in the data folder, or generated
    widths: tuple[int, ...]  # columns of each view
    call: str  # the call that returns it
    paper_name: str | None = None  # in the paper's tables
    classes: tuple[str, ...] | None = None  # names of the classes 0, 1, …

    @property
    def views(self) -> int:
        return len(self.widths)

    @property
    def is_stored(self) -> bool:
        """Whether a file of the data folder has it, if the folder is complete."""
        return self.call.startswith("load(")


def list_datasets() -> tuple[Dataset, ...]:
    """Return all data sets of the benchmarks, and whether each is available.

    Examples
    --------
    >>> [d.call for d in list_datasets() if d.name.startswith("synth2")]
    ['make_synth2()', 'make_synth2_unpaired()']
    """
    here = stored_names()
    return tuple(replace(d, available=d.available or d.name in here) for d in KNOWN.values())


def _made(
    name: str, samples: int, clusters: int, widths: tuple[int, ...], origin: str, call: str, paper: str | None = None
) -> Dataset:
    return Dataset(name, samples, clusters, origin, "free", True, widths, call, paper)


def _paper(
    name: str, origin: str, licence: str, reader: str, stored: bool = True, classes: tuple[str, ...] | None = None
) -> Dataset:
    """Return a data set of the paper, with the size in the paper's table."""
    shape = PAPER_TABLE[name]
    widths = tuple(shape.widths.values())
    call = f"load({name!r}) or {reader}(path)" if stored else f"{reader}(path)"
    return Dataset(name, shape.samples, shape.clusters, origin, licence, False, widths, call, shape.paper_name, classes)


def _stored(name: str, samples: int, clusters: int, widths: tuple[int, ...], origin: str, licence: str) -> Dataset:
    return Dataset(name, samples, clusters, origin, licence, False, widths, f"load({name!r})")


_UNSTATED = "none stated"
_ENTRIES = (
    _made("digits", 1797, 10, (64, 40, 32), "views of scikit-learn's handwritten digits", "digits_views()"),
    _made("synth1_appendix", 1000, 2, (2, 2, 2), "the paper's appendix", "make_synth1()", "Synth 1"),
    _made("synth2_appendix", 1000, 2, (2, 2), "the paper's appendix", "make_synth2()", "Synth 2"),
    _made("synth2_unpaired", 1000, 2, (2, 2), "the authors' program", "make_synth2_unpaired()", "Synth 2"),
    _paper(
        "synth1", "github.com/areslp/matlab, code_coregspectral/synth3views_2clusters.mat", _UNSTATED, "read_synth1"
    ),
    _paper("3sources", "github.com/ChuanbinZhang/Multi-view-datasets, 3Sources.mat", _UNSTATED, "read_3sources"),
    _paper("reuters600", "github.com/bingly/TSSR, data/reutersMulSubset.mat", _UNSTATED, "read_reuters600"),
    _paper(
        "ads",
        "github.com/1kzpro/comp-5630-project, data/ad/ad-dataset.zip (UCI Internet Advertisements)",
        "MIT (repository); UCI terms not stated",
        "read_ads",
        classes=("nonad", "ad"),
    ),
    _paper("imgc", "github.com/ishtiaqhucane/Multi-view-Datasets, Kolenda_split1.mat", _UNSTATED, "read_imgc"),
    _paper("youtube_games", "UCI YouTube Multiview Video Games", "not checked", "read_youtube_games", stored=False),
    _paper("nus_wide", "a part of NUS-WIDE", "not checked", "read_nus_wide", stored=False),
    _paper("reuters_large", "UCI Reuters RCV1 RCV2 Multilingual", "not checked", "read_reuters_large", stored=False),
    _stored(
        "100leaves", 1600, 100, (64, 64, 64), "github.com/ChuanbinZhang/Multi-view-datasets, 100Leaves.mat", _UNSTATED
    ),
    _stored(
        "bdgp2500", 2500, 5, (1000, 500), "github.com/xiyu1007/Multi-view-datasets, Datasets/BDGP/BDGP.mat", _UNSTATED
    ),
    _stored("ccv6773", 6773, 20, (20, 20, 20), "github.com/UeharaSetsuYu/Multi-view-Datasets, CCV.mat", _UNSTATED),
    _stored(
        "citeseq_pbmc10x",
        6661,
        7,
        (1000, 14),
        "github.com/xianglin226/scMDC, datasets/10XPBMC_filtered_1000G.H5 (deleted later)",
        "Apache-2.0 (repository LICENSE.md)",
    ),
    _stored(
        "cora",
        2708,
        7,
        (2708, 1433),
        "github.com/ChuanbinZhang/Multi-view-datasets, Cora.mat (first two of four views)",
        _UNSTATED,
    ),
    _stored("eyaleb10", 640, 10, (1024, 1239, 256), "github.com/bingly/TSSR, data/EYaleB10.mat", _UNSTATED),
    _stored(
        "fashion3v_20000_pool",
        20000,
        10,
        (196, 196, 196),
        "Debian dataset-fashion-mnist, train-images-idx3-ubyte.gz",
        "MIT (Debian copyright file)",
    ),
    _stored(
        "hdigit10000", 10000, 10, (784, 256), "github.com/Machinelearning20/Incomplete-MVC, data/Hdigit.mat", _UNSTATED
    ),
    _stored(
        "mfeat",
        2000,
        10,
        (76, 216, 64, 240, 47, 6),
        "github.com/UeharaSetsuYu/Multi-view-Datasets, Mfeat.mat",
        _UNSTATED,
    ),
    _stored(
        "msrcv1",
        210,
        7,
        (24, 576, 512, 256, 254),
        "github.com/ChuanbinZhang/Multi-view-datasets, MSRC-v5.mat",
        _UNSTATED,
    ),
    _stored("ngs", 500, 5, (2000, 2000, 2000), "github.com/UeharaSetsuYu/Multi-view-Datasets, NGs.mat", _UNSTATED),
    _stored(
        "nutrimouse_diet",
        40,
        5,
        (120, 21),
        "github.com/mixOmicsTeam/mixOmics, data/nutrimouse.rda",
        "GPL (>=2) (package)",
    ),
    _stored(
        "prokaryotic", 551, 4, (393, 3, 438), "github.com/ChuanbinZhang/Multi-view-datasets, Prokaryotic.mat", _UNSTATED
    ),
    _stored(
        "proteinfold", 694, 27, (27,) * 12, "github.com/ChuanbinZhang/Multi-view-datasets, ProteinFold.mat", _UNSTATED
    ),
    _stored(
        "reuters1200",
        1200,
        6,
        (2000,) * 5,
        "github.com/youweiliang/Multi-view_Graph_Learning, data/Reuters.mat",
        "MIT (repository)",
    ),
    _stored(
        "reuters600_5v",
        600,
        6,
        (21531, 24892, 34251, 15506, 11547),
        "github.com/YilinZhang107/Multi-view-Datasets, reuters.mat",
        _UNSTATED,
    ),
    _stored("scene15", 4485, 15, (20, 59, 40), "github.com/UeharaSetsuYu/Multi-view-Datasets, Scene_15.mat", _UNSTATED),
    _stored("scicar_a549", 2641, 3, (1185, 52761), "github.com/sqjin/scAI, data/data_A549.rda", "GPL-3 (repository)"),
    _stored("snareseq", 1047, 4, (10, 19), "github.com/rsinghlab/SCOT, data/SNARE/*", "MIT (repository)"),
    _stored(
        "tara_ocean", 139, 8, (22, 356, 638), "github.com/cran/mixKernel, data/TARAoceans.rda", "GPL (>=2) (package)"
    ),
    _stored(
        "tcga_brca150",
        150,
        3,
        (184, 200, 142),
        "github.com/mixOmicsTeam/mixOmics, data/breast.TCGA.rda (training part)",
        "GPL (>=2) (package)",
    ),
    _stored("webkb203", 203, 4, (1703, 230, 230), "github.com/cshaowang/gmc, Dataset/WebKB.mat", _UNSTATED),
    _stored(
        "wikipedia2866", 2866, 10, (128, 10), "github.com/ChuanbinZhang/Multi-view-datasets, Wikipedia.mat", _UNSTATED
    ),
)
KNOWN: Mapping[str, Dataset] = {entry.name: entry for entry in _ENTRIES}
