"""The reproduction of the paper: resuming after a kill, and the comparison with published numbers."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.data import Labelled, list_datasets
from benchmarks.markdown import reflow
from benchmarks.sweep import KEY, read_rows
from coview.data.as_views import as_views

PAPER = Path(__file__).parents[2] / "benchmarks" / "paper"
PAGES = Path(__file__).parents[2] / "docs" / "paper"
NOT_REPRODUCIBLE = ("seconds", "gram_seconds", "memory")
# The quick form of `make paper`, with even fewer samples.
SCRIPT = """
import sys
from benchmarks.paper import run
run.plan.LIMITS["quick"] = 120
sys.argv = ["run.py", "--quick", "--jobs", "1", "--sets", "synth1_appendix", "--out", {out!r}, "--rows", {rows!r}]
run.main()
"""


@pytest.fixture
def paper():
    """The modules of the reproduction, whose import sets the number of threads."""
    from benchmarks.paper import plan, tables

    return plan, tables


def started(folder: Path) -> subprocess.Popen[bytes]:
    script = SCRIPT.format(out=str(folder / "pages"), rows=str(folder / "rows"))
    # Standard output has only times.
    return subprocess.Popen(
        [sys.executable, "-c", script], cwd=PAPER.parents[1], env=os.environ.copy(), stdout=subprocess.DEVNULL
    )


def rows_of(folder: Path) -> list[dict]:
    """Return all rows in a fixed order, without the values that differ between identical runs."""
    rows = [row | {"file": path.name} for path in folder.glob("rows/*.jsonl") for row in read_rows(path)]
    kept = [{name: value for name, value in row.items() if name not in NOT_REPRODUCIBLE} for row in rows]
    return sorted(kept, key=lambda row: [str(row[name]) for name in ("file", *KEY)])


def n_lines(folder: Path) -> int:
    return sum(path.read_bytes().count(b"\n") for path in folder.glob("rows/*.jsonl"))


def test_a_killed_run_resumes_to_the_same_tables(tmp_path):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    assert started(whole).wait() == 0
    moment = random.Random(os.urandom(8)).randrange(1, len(rows_of(whole)))
    process = started(killed)
    try:
        while n_lines(killed) < moment and process.poll() is None:
            time.sleep(0.005)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    before = n_lines(killed)
    assert moment <= before <= len(rows_of(whole))
    assert started(killed).wait() == 0
    assert rows_of(killed) == rows_of(whole), f"killed after {before} rows"
    for page in ("ari.md", "nmi.md", "wider.md"):  # the other pages have times and dates
        assert (killed / "pages" / page).read_text() == (whole / "pages" / page).read_text(), f"killed after {before}"


def row(ari, method="OPMC", kind="", settings="{}", dataset="3sources", n_found=6, protocol="oracle", **more):
    return {
        "dataset": dataset,
        "protocol": protocol,
        "method": method,
        "settings": settings,
        "assigner": None,
        "labels": "all views",
        "seed": 0,
        "ari": ari,
        "nmi": ari,
        "accuracy": ari,
        "purity": ari,
        "n_found": n_found,
        "seconds": 1.0,
        "error": None,
        "kind": kind,
        **more,
    }


def cell_of(tables, rows, method="OPMC", title="3Sources"):
    [cell] = [c for c in tables.compared_cells(rows, "ari") if (c.title, c.method) == (title, method)]
    return cell


def test_a_cell_is_near_reached_or_below(paper):
    _, tables = paper
    published = tables.published("ari", "3Sources", "OPMC")
    near, above, below = (cell_of(tables, [row(published + d)]) for d in (0.02, 0.2, -0.2))
    assert (near.near, near.reached) == (True, True)
    assert (above.near, above.reached, above.n_matching) == (False, True, 0)
    assert (below.near, below.reached) == (False, False)
    assert cell_of(tables, [row(published, protocol="fixed")]).best is None


def test_a_higher_best_is_explained_by_settings_that_match(paper):
    _, tables = paper
    published = tables.published("ari", "3Sources", "OPMC")
    cell = cell_of(tables, [row(published + 0.2), row(published + 0.01, settings='{"n_init": 1}')])
    assert cell.reason.startswith("1 of 2 settings is within 0.03")
    assert cell_of(tables, [row(published + 0.2)]).reason.startswith(
        f"The nearest of 1 settings has {published + 0.2:.3f}"
    )


def test_cells_without_a_reason_are_listed(paper, monkeypatch):
    _, tables = paper
    published = tables.published("ari", "3Sources", "OPMC")
    monkeypatch.setattr(tables, "REASONS", {})
    rows = [row(published - 0.2), row(1.0, kind="order"), row(1.0, kind="times")]
    assert cell_of(tables, rows).reason == tables.UNEXPLAINED
    assert tables.unexplained(rows) == ["3Sources, OPMC"]
    monkeypatch.setattr(tables, "REASONS", {"cells": {"3Sources": {"OPMC": "Because."}}})
    assert tables.unexplained(rows) == []


def test_the_known_setting_is_kept_next_to_the_best(paper):
    _, tables = paper
    cell = cell_of(tables, [row(0.5), row(0.2, kind="authors"), row(0.3, kind="authors", settings='{"n_init": 1}')])
    assert cell.at_authors["ari"] == 0.3
    assert cell.best["ari"] == 0.5
    text = "\n".join(tables._within([cell]))
    assert "in 1, part of the authors' setting is known" in text


def test_comic_is_compared_only_with_few_clusters(paper):
    _, tables = paper
    rows = [row(0.9, "COMIC", n_found=17), row(0.1, "COMIC", n_found=16, settings='{"threshold": 0.5}')]
    assert cell_of(tables, rows, "COMIC").best["ari"] == 0.1  # 169 samples


def test_comic_is_refined_at_the_largest_allowed_number_of_clusters(paper):
    plan, _ = paper
    data = replace(plan.data_set("synth1_appendix").first(100), name="synth1")
    n_clusters = {0.2: 80, 0.4: 30, 0.6: 4, 1.0: 1}  # by threshold
    rows = [
        row(0.0, "COMIC", settings=f'{{"distance_test": "paper", "threshold": {t}}}', n_found=n)
        for t, n in n_clusters.items()
    ]
    experiments = [t for t in plan.edge_experiments(data, rows, "full") if t.estimator.distance_test == "paper"]
    assert len(experiments) == plan.SETTINGS["methods"]["COMIC"]["edge"]["full"]
    assert all(0.4 < experiment.estimator.threshold < 0.6 for experiment in experiments)
    assert not plan.edge_experiments(data, [row(0.0, "COMIC", n_found=90)], "full")
    assert not plan.edge_experiments(replace(data, name="synth1_appendix"), rows, "full")  # no published number


def test_the_table_in_a_page_is_replaced_and_nothing_else(paper):
    _, tables = paper
    page = "before\n<!-- row order: begin -->\n\nold\n\n<!-- row order: end -->\nafter\n"
    again = tables.with_row_order(page, ["new"])
    assert again == page.replace("old", "new")
    assert tables.with_row_order(again, ["new"]) == again
    assert tables.with_row_order("no markers\n", ["new"]) == "no markers\n"


def test_every_order_of_rows_has_a_column(paper):
    plan, tables = paper
    rows = [
        row(0.1 * i, "tSVD-MSC", dataset=plan.ordered_name("3sources", order))
        for i, order in enumerate((plan.SHUFFLED, plan.STORED, plan.SORTED), start=1)
    ]
    table = "\n".join(tables._row_order(rows))
    assert "| `3sources` | 0.100 | 0.200 | 0.300 | 0.690 |" in table
    assert "| `mfeat`, 50 per class | not run | not run | not run |  |" in table


def test_three_orders_of_the_same_samples(paper, monkeypatch):
    plan, _ = paper
    truth = np.arange(40) % 4
    views = {"a": np.arange(80.0).reshape(40, 2)}
    monkeypatch.setattr(plan, "load", lambda name: Labelled(as_views(views), truth, None))
    monkeypatch.setitem(plan.SETTINGS["row_order"]["datasets"], "made", 3)
    shuffled, stored, by_class = (plan.in_order("made", o) for o in (plan.SHUFFLED, plan.STORED, plan.SORTED))
    assert stored.truth.tolist() == [0, 1, 2, 3] * 3
    assert by_class.truth.tolist() == [0] * 3 + [1] * 3 + [2] * 3 + [3] * 3
    assert shuffled.truth.tolist() != stored.truth.tolist()
    for data in (shuffled, by_class):
        np.testing.assert_array_equal(np.sort(data.views["a"][:, 0]), stored.views["a"][:, 0])
        np.testing.assert_array_equal(truth[(data.views["a"][:, 0] // 2).astype(int)], data.truth)
    assert len({data.name for data in (shuffled, stored, by_class)}) == 3


def test_reasons_are_of_cells_that_exist(paper):
    plan, tables = paper
    for title, methods in tables.REASONS["cells"].items():
        assert title in plan.paper_sets()
        assert set(methods) <= set(plan.COMPARED)


def test_authors_settings_have_their_kernels(paper):
    plan, _ = paper
    data = replace(plan.data_set("synth1_appendix"), name="synth1")
    experiments = plan.authors_experiments(data, "full")
    assert {experiment.method for experiment in experiments} == set(plan.COMPARED)
    assert {str(k) for t in experiments if t.method == "TMvKSCR" for k in t.estimator.kernel} == {"RBF(sigma2=3.0)"}
    assert plan.authors_experiments(data, "quick") == []


def test_the_fixed_protocol_has_one_setting_for_all_data_sets(paper):
    plan, _ = paper
    baselines = {f"{n}, {steps}" for n in ("k-means", "spectral") for steps in ("standardised", "L2-normalised")}
    for name in ("synth1_appendix", "digits"):
        data = plan.data_set(name).first(200)
        experiments = plan.fixed_experiments(data, "full")
        assert {experiment.method for experiment in experiments} == set(plan.COMPARED) - {"KSC (best)"} | baselines
        for method in {experiment.method for experiment in experiments} - baselines:
            [settings] = {experiment.settings for experiment in experiments if experiment.method == method}
            chosen = json.loads(settings)
            assert chosen.pop("preprocess") == ["standard"] * len(data.views)  # all are dense
            chosen.pop("layout", None)
            if chosen["estimator"] == "TMvKSCR":  # as in the paper
                published = {name: chosen.pop(name) for name in ("kernel", "regularization", "rho")}
                assert published == {"kernel": "RBF(sigma2=None)", "regularization": 0, "rho": 0.5}
            assert set(chosen) == {"estimator"}  # everything else is at its default


def test_two_settings_are_refused_under_the_fixed_protocol(paper):
    _, tables = paper
    rows = [row(a, protocol="fixed", settings=s) for a, s in ((0.1, "{}"), (0.9, '{"n_init": 1}'))]
    with pytest.raises(ValueError, match="OPMC has 2 settings under the fixed protocol on 3sources"):
        tables.wide_cells(rows, "3sources", "fixed")


def test_comic_with_many_clusters_is_kept_under_the_fixed_protocol(paper):
    _, tables = paper
    rows = [row(0.5, "COMIC", n_found=100, protocol=protocol) for protocol in ("fixed", "oracle")]
    assert tables.wide_cells(rows, "3sources", "fixed")["COMIC"]["ari"] == 0.5
    assert tables.wide_cells(rows, "3sources", "oracle") == {}


def test_data_sets_on_which_tmvkscr_is_behind_have_a_reason_per_protocol(paper, monkeypatch):
    _, tables = paper
    rows = [row(0.5, protocol=protocol) for protocol in ("fixed", "oracle")]
    rows += [row(0.3, "TMvKSCR", protocol=protocol) for protocol in ("fixed", "oracle")]
    monkeypatch.setattr(tables, "REASONS", {"behind": {"fixed": {"3sources": "Because."}}})
    assert "3sources, oracle" in tables.unexplained(rows)
    assert "3sources, fixed" not in tables.unexplained(rows)
    page = tables._wider_page(rows)
    assert "1 of 1 methods is better; the best is OPMC (0.500). Because." in page
    assert f"the best is OPMC (0.500). {tables.UNEXPLAINED}" in page


def test_failures_are_listed_on_every_page(paper):
    _, tables = paper
    failed = row(None, error="no solution", n_found=None) | {"nmi": None}
    rows = [failed, row(0.5, "TMvKSCR")]
    assert "- OPMC failed for some settings on `3sources`: no solution" in tables._wider_page(rows)
    assert "- OPMC failed for some settings on `3sources`: no solution" in tables._time_page(
        [failed | {"memory": None}]
    )


def test_methods_are_all_timed_on_the_sets_of_the_paper(paper):
    plan, _ = paper
    data = replace(plan.data_set("synth1_appendix"), name="synth1")
    assert {t.method for t in plan.timing_experiments(data, "full")} >= set(plan.COMPARED)


def committed(name):
    """Return a page of docs/paper in one line."""
    return " ".join((PAGES / name).read_text().split())


def test_the_committed_pages_have_the_sentences_of_the_generator(paper, tmp_path):
    _, tables = paper
    tables.note_start(tmp_path)
    tables.write(tmp_path, [], tmp_path, "full")
    # Without rows, these lines have other numbers than the committed pages.
    counted = (
        "|",
        "- **",
        "Written by",
        "Of 0 cells",
        "None.",
        "Not run",
        "not run",
        "TMvKSCR is best",
        "The published ARI",
        "With optimised settings",
    )
    for name in tables.PAGES:
        page = (tmp_path / name).read_text()
        for paragraph in filter(None, map(str.strip, page.split("\n\n"))):
            if not paragraph.startswith((*counted, "**Incomplete**", "Data sets of the paper with results")):
                sentences = " ".join(paragraph.split()).split(" With the mean score:")[0]
                assert sentences in committed(name), name


def test_the_committed_pages_quote_the_reasons(paper):
    _, tables = paper
    ari, wider = committed("ari.md"), committed("wider.md")
    for title, cells in tables.REASONS["cells"].items():
        for method, reason in cells.items():
            assert f"- {title}, {method}: " not in ari or reason in ari
    for protocol, part in zip(("fixed", "oracle"), wider.split("### Data sets on which")[1:], strict=True):
        behind = {d.name for d in list_datasets() if f" - {d.name}: " in part}
        assert behind == set(tables.REASONS["behind"][protocol])
        assert all(reason in part for reason in tables.REASONS["behind"][protocol].values())
    assert all(reason in committed("time.md") for reason in tables.REASONS["time"].values())


def test_the_prose_of_the_committed_pages_is_wrapped():
    for path in PAGES.glob("*.md"):
        assert reflow(path.read_text()) == path.read_text(), path.name
