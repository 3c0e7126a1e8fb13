"""How many files a call enters, and how often it validates its input: the bounds may only be lowered."""

import pytest

from coview import KSC, Concat, Coview, FixedSize, PerView, Preprocessed, TMvKSCR
from tests.conftest import make_blobs
from tests.nets.walk import walk

K = {"n_clusters": 3, "random_state": 0}
VIEWS = make_blobs(120, widths=(4, 6))[0]
NEW = {name: x[:5] for name, x in VIEWS.items()}


@pytest.mark.parametrize(
    ("model", "fit", "predict"),
    [(TMvKSCR(**K, n_jobs=1), 35, 15), (Coview(3, n_jobs=1, random_state=0), 38, 18)],
    ids=["TMvKSCR", "Coview"],
)
def test_a_call_enters_few_files(model, fit, predict):
    model.fit(VIEWS)  # imports what is imported on first use
    model.predict(NEW)
    assert len(walk(lambda: model.fit(VIEWS)).files) <= fit
    assert len(walk(lambda: model.predict(NEW)).files) <= predict


WRAPPED = [
    TMvKSCR(**K),
    Coview(3, random_state=0),
    Concat(KSC(**K)),
    PerView(KSC(**K)),
    Preprocessed(TMvKSCR(**K)),
    FixedSize(Preprocessed(Concat(KSC(**K))), n_train=60),
]


@pytest.mark.parametrize("model", WRAPPED, ids=lambda model: " ".join(repr(model).split())[:50])
def test_each_call_validates_its_input_once(model):
    counts = {"fit": walk(lambda: model.fit(VIEWS)).n_validations}
    for name in ("predict", "transform", "predict_proba", "score_samples", "view_contributions"):
        if hasattr(model, name):
            counts[name] = walk(lambda name=name: getattr(model, name)(NEW)).n_validations
    assert set(counts.values()) == {1}, counts
