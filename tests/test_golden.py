"""Stored results of the authors' programs (or their specification) on identical input."""

import json

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from coview import KSC, RBF, NormalizedPolynomial, TMvKSCR
from tests.golden import as_kernel, assert_equal_up_to_sign, golden, inputs, is_free_of_ties, load, needs_golden

pytestmark = needs_golden


def mean_scores(answer):
    return answer["E"].mean(axis=0) if answer["E"].ndim == 3 else answer["E"]


def fitted(answer):
    """Our model in the setting of the answer, with the paper's codebook."""
    views, k = inputs(answer), int(answer["k"])
    kernel = json.loads(str(answer["kernel"]))
    if "view" in answer:
        return KSC(k, kernel=as_kernel(kernel), assigner="codebook").fit(views[int(answer["view"])])
    settings = {"rho": float(answer["rho"]), "kappa": float(answer["kappa"])}
    return TMvKSCR.as_published(k, kernel=[as_kernel(spec) for spec in kernel], **settings).fit(views)


TMVKSCR = [stem for stem in golden("tmvkscr_*") if "_oos_" not in stem]
KSC_STEMS = golden("ksc_*")
TIE_FREE = [stem for stem in TMVKSCR + KSC_STEMS if is_free_of_ties(mean_scores(load(stem)), int(load(stem)["k"]))]


@pytest.mark.parametrize("stem", TMVKSCR)
def test_tmvkscr_agrees_with_the_authors_program(stem):
    answer = load(stem)
    model = fitted(answer)
    np.testing.assert_allclose(model.eigenvalues_, answer["eigenvalues"], rtol=1e-8)
    assert_equal_up_to_sign(model.latent_, answer["H"], 1e-8)
    scores = model.transform(inputs(answer), per_view=True)
    for ours, theirs in zip(scores.values(), answer["E"], strict=True):
        assert_equal_up_to_sign(ours, theirs, 1e-8)


@pytest.mark.parametrize("stem", KSC_STEMS)
def test_ksc_agrees_with_the_authors_program(stem):
    answer = load(stem)
    model = fitted(answer)
    np.testing.assert_allclose(model.eigenvalues_, answer["eigenvalues"], rtol=1e-8)
    assert_equal_up_to_sign(model.latent_, answer["alpha"], 1e-8)
    assert_equal_up_to_sign(model.scores_, answer["E"], 1e-8)


@pytest.mark.parametrize("stem", TIE_FREE)
def test_labels_are_those_of_the_authors_program_if_its_rule_has_no_ties(stem):
    answer = load(stem)
    assert adjusted_rand_score(answer["labels_authors"], fitted(answer).labels_) == 1


@pytest.mark.parametrize("stem", golden("tmvkscr_oos_*"))
def test_tmvkscr_scores_new_samples_as_specified(stem):
    answer = load(stem)
    kernel = RBF(float(str(answer["kernel"]).split("=")[1])) if "rbf" in str(answer["kernel"]) else None
    kernel = kernel or NormalizedPolynomial(degree=2, offset=2.0)
    views = inputs(answer)
    train = [x[answer["train_idx"]] for x in views]
    test = [x[answer["test_idx"]] for x in views]
    model = TMvKSCR.as_published(int(answer["k"]), kernel=kernel, rho=float(answer["rho"])).fit(train)
    np.testing.assert_allclose(model.eigenvalues_, answer["eigenvalues"], rtol=1e-8)
    signs = np.sign((model.latent_ * answer["H"]).sum(axis=0))
    scores = model.transform(test, per_view=True)
    for ours, theirs in zip(scores.values(), answer["E_test"], strict=True):
        np.testing.assert_allclose(ours * signs, theirs, rtol=1e-8, atol=1e-8 * np.abs(theirs).max())
