"""The page on quality without labels: computed values, and the committed page against its template."""

import re
import tomllib
from pathlib import Path
from string import Template

import numpy as np
import pytest

from benchmarks.markdown import reflow
from benchmarks.quality import evaluations, page
from coview.views import as_views

ROOT = Path(__file__).parents[2]
COMMITTED = ROOT / "docs" / "quality.md"
FOLDER = ROOT / "benchmarks" / "quality"


def quality_row(data, seed, tuned, best, baseline, **more):
    """Return a row with two candidates, of which the first is selected."""
    titles = (*page.FOUR, page.FIFTH)
    return {
        "data": data,
        "seed": seed,
        "commit": "abc",
        "samples": 100,
        "clusters": 3,
        "default": 0.1,
        "tuned": tuned,
        "selected": {"candidate": "a", "kappa": None},
        "candidates": [{"candidate": "a", "ari": tuned}, {"candidate": "b", "ari": best}],
        "baselines": dict.fromkeys(titles, 0.0) | {page.FOUR[1]: baseline},
        **more,
    }


def evaluation_row(data, seed, clusters=3):
    """Return a row with two candidates and three numbers of clusters; the true number has the largest measures."""
    table = []
    for k in (2, 3, 4):
        for candidate in (0, 1):
            value = 0.9 - 0.4 * candidate if k == clusters else 0.2
            table.append({"candidate": candidate, "n_clusters": k} | dict.fromkeys(page.MEASURES, value))
    return {"data": data, "seed": seed, "clusters": clusters, "table": table}


@pytest.fixture
def written(tmp_path):
    rows = [
        quality_row("good", seed, tuned=0.8, best=0.8, baseline=0.5, auto=0.4, auto_clusters=3 + seed)
        for seed in (0, 1)
    ]
    rows += [quality_row("poor", seed, tuned=0.2, best=0.8, baseline=0.5) for seed in (0, 1)]
    page.write(rows, [evaluation_row(name, 0) for name in ("good", "poor", "3 even")], tmp_path / "page.md")
    return (tmp_path / "page.md").read_text()


def test_the_page_has_the_means_of_its_rows(written):
    text = " ".join(written.split())
    assert "`Tuned` has a mean ARI of 0.500. The best of its candidates by the true labels has 0.800." in text
    assert "The ratio of the two is 0.625 on average" in text
    assert "the mean ARI of `Tuned` is +0.000 over k-means (L2-normalised), the best of the first four" in text
    assert "+0.500 over spectral clustering (nearest neighbours, L2-normalised), the fifth." in text
    assert "These two baselines have mean ARIs of 0.500 and 0.000." in text
    assert "less than half of the ARI of k-means (L2-normalised): poor." in text
    assert "| good | 3 | 3, 4 | 0.400 | 0.800 | 0.500 |" in written
    assert "| poor | 0.200 | 0.800 | 0.500 | Not explained yet. |" in written
    assert "measured at commit abc." in text


def test_constants_are_selected_by_leave_one_out(written):
    text = " ".join(written.split())
    assert "With leave-one-out selection the mean ARI is 0.900." in text
    assert "a fraction of 1.000 of the runs on real data sets is within 1 of the true number" in text


def test_an_incomplete_row_is_not_read(tmp_path):
    (tmp_path / "rows.jsonl").write_text(
        '{"version": "1", "data": "b", "seed": 0}\n{"version": "0", "data": "a", "seed": 0}\n{"version": "1", "da'
    )
    assert [row["data"] for row in page.read(tmp_path / "rows.jsonl", "1")] == ["b"]
    assert page.read(tmp_path / "absent.jsonl", "1") == []


def test_the_committed_page_has_the_sentences_of_the_template():
    text = " ".join(COMMITTED.read_text().split())
    position = 0
    for literal in re.split(r"\$\w+", (FOLDER / "template.md").read_text()):
        words = " ".join(literal.split())
        assert text.find(words, position) >= 0, words
        position = text.find(words, position)


def test_the_committed_page_quotes_the_reasons():
    text, reasons = COMMITTED.read_text(), tomllib.loads((FOLDER / "reasons.toml").read_text())
    for name, reason in reasons["data"].items():
        assert re.search(rf"^\| {name} \| .* \| {re.escape(reason)} \|$", text, re.MULTILINE), name
    assert "Not explained yet" not in text


def test_the_prose_of_the_committed_page_is_filled():
    assert reflow(COMMITTED.read_text()) == COMMITTED.read_text()


def test_the_template_has_the_values_of_the_page(written):
    assert not re.search(r"\$\w", written)
    assert {"known", "unknown", "weights", "numbers", "errors"} <= set(
        Template((FOLDER / "template.md").read_text()).get_identifiers()
    )


def test_every_file_behind_the_rows_exists():
    assert len(evaluations.version()) == 12
    from benchmarks.quality import run

    assert len(run.version()) == 12
    assert run.version() != evaluations.version()


def test_candidates_are_measured_for_every_number_of_clusters(monkeypatch):
    rng = np.random.default_rng(0)
    truth = np.arange(60) % 3
    views = as_views([4 * rng.normal(size=(3, 4))[truth] + rng.normal(size=(60, 4)) for _ in range(2)])
    monkeypatch.setattr(evaluations, "_draw", lambda name, seed: (views, truth))
    row = evaluations.measure("made", 0)
    assert (row["data"], row["clusters"]) == ("made", 3)
    numbers, *measures = page._measures(row)
    assert numbers.tolist() == list(evaluations.NUMBERS)
    assert all(measure.shape[0] == len(numbers) for measure in measures)
    assert measures[-1][1].max() == 1  # ARI at three clusters
