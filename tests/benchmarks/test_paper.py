"""The runner behind the paper's tables: that it goes on after being killed, and what it says of a published number."""

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

from benchmarks.data import Labelled
from benchmarks.sweep import KEY, read_rows
from coview.views import as_views

PAPER = Path(__file__).parents[2] / "benchmarks" / "paper"
NOT_THE_SAME_TWICE = ("seconds", "gram_seconds", "memory")
# The quick form of `make paper`, with fewer samples still.
SCRIPT = """
import sys
from benchmarks.paper import run
run.plan.LIMITS["quick"] = 120
sys.argv = ["run.py", "--quick", "--jobs", "1", "--sets", "synth1_appendix", "--out", {out!r}, "--rows", {rows!r}]
run.main()
"""


@pytest.fixture
def paper(monkeypatch):
    """The modules of the runner, which are scripts and no package."""
    from benchmarks.paper import plan, tables

    return plan, tables


def started(folder: Path) -> subprocess.Popen[bytes]:
    script = SCRIPT.format(out=str(folder / "pages"), rows=str(folder / "rows"))
    # Standard output would show times only.
    return subprocess.Popen(
        [sys.executable, "-c", script], cwd=PAPER.parents[1], env=os.environ.copy(), stdout=subprocess.DEVNULL
    )


def rows_of(folder: Path) -> list[dict]:
    """All rows without what differs between two runs of the same, in one order."""
    rows = [row | {"file": path.name} for path in folder.glob("rows/*.jsonl") for row in read_rows(path)]
    kept = [{name: value for name, value in row.items() if name not in NOT_THE_SAME_TWICE} for row in rows]
    return sorted(kept, key=lambda row: [str(row[name]) for name in ("file", *KEY)])


def n_lines(folder: Path) -> int:
    return sum(path.read_bytes().count(b"\n") for path in folder.glob("rows/*.jsonl"))


def test_a_run_that_was_killed_goes_on_to_the_same_tables(tmp_path):
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
    assert cell.reason.startswith("1 of our 2 settings are within 0.03")
    assert cell_of(tables, [row(published + 0.2)]).reason.startswith(
        f"The nearest of our 1 settings has {published + 0.2:.3f}"
    )


def test_what_nobody_explained_is_named(paper, monkeypatch):
    _, tables = paper
    published = tables.published("ari", "3Sources", "OPMC")
    monkeypatch.setattr(tables, "REASONS", {})
    rows = [row(published - 0.2), row(1.0, kind="order"), row(1.0, kind="times")]
    assert cell_of(tables, rows).reason == tables.UNEXPLAINED
    assert tables.unexplained(rows) == ["3Sources, OPMC"]
    monkeypatch.setattr(tables, "REASONS", {"cells": {"3Sources": {"OPMC": "Because."}}})
    assert tables.unexplained(rows) == []


def test_the_known_setting_stands_beside_the_best(paper):
    _, tables = paper
    cell = cell_of(tables, [row(0.5), row(0.2, kind="authors"), row(0.3, kind="authors", settings='{"n_init": 1}')])
    assert cell.at_authors["ari"] == 0.3
    assert cell.best["ari"] == 0.5
    text = "\n".join(tables._within([cell]))
    assert "known of the setting in 1 (" in text


def test_comic_counts_only_with_few_clusters(paper):
    _, tables = paper
    rows = [row(0.9, "COMIC", n_found=17), row(0.1, "COMIC", n_found=16, settings='{"threshold": 0.5}')]
    assert cell_of(tables, rows, "COMIC").best["ari"] == 0.1  # 169 samples


def test_comic_is_tried_where_its_clusters_become_few_enough(paper):
    plan, _ = paper
    data = replace(plan.data_set("synth1_appendix").first(100), name="synth1")
    tried = {0.2: 80, 0.4: 30, 0.6: 4, 1.0: 1}  # clusters by threshold
    rows = [
        row(0.0, "COMIC", settings=f'{{"distance_test": "paper", "threshold": {t}}}', n_found=n)
        for t, n in tried.items()
    ]
    trials = [t for t in plan.edge_trials(data, rows, "full") if t.estimator.distance_test == "paper"]
    assert len(trials) == plan.SETTINGS["methods"]["COMIC"]["edge"]["full"]
    assert all(0.4 < trial.estimator.threshold < 0.6 for trial in trials)
    assert not plan.edge_trials(data, [row(0.0, "COMIC", n_found=90)], "full")
    assert not plan.edge_trials(replace(data, name="synth1_appendix"), rows, "full")  # answers no published number


def test_the_table_in_a_page_is_replaced_and_nothing_else(paper):
    _, tables = paper
    page = "before\n<!-- row order: begin -->\n\nold\n\n<!-- row order: end -->\nafter\n"
    again = tables._with_block(page, "row order", ["new"])
    assert again == page.replace("old", "new")
    assert tables._with_block(again, "row order", ["new"]) == again
    assert tables._with_block("no marks\n", "row order", ["new"]) == "no marks\n"


def test_every_order_of_rows_has_a_column(paper):
    plan, tables = paper
    rows = [
        row(0.1 * i, "tSVD-MSC", dataset=plan.ordered_name("3sources", order))
        for i, order in enumerate((plan.SHUFFLED, plan.STORED, plan.SORTED), start=1)
    ]
    table = "\n".join(tables._row_order(rows))
    assert "| `3sources` | 0.100 | 0.200 | 0.300 | 0.690 |" in table
    assert "| `mfeat`, 50 of each class | not run | not run | not run |  |" in table


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
    trials = plan.authors_trials(data, "full")
    assert {trial.method for trial in trials} == set(plan.COMPARED)
    assert {str(k) for t in trials if t.method == "TMvKSCR" for k in t.estimator.kernel} == {"RBF(sigma2=3.0)"}
    assert plan.authors_trials(data, "quick") == []


def test_the_fixed_protocol_has_one_setting_for_all_data_sets(paper):
    plan, _ = paper
    baselines = {f"{n}, {how}" for n in ("k-means", "spectral") for how in ("standardised", "rows of length 1")}
    for name in ("synth1_appendix", "digits"):
        data = plan.data_set(name).first(200)
        trials = plan.fixed_trials(data, "full")
        assert {trial.method for trial in trials} == set(plan.COMPARED) - {"KSC (best)"} | baselines
        for method in {trial.method for trial in trials} - baselines:
            [settings] = {trial.settings for trial in trials if trial.method == method}
            chosen = json.loads(settings)
            assert chosen.pop("scale") == ["standard"] * len(data.views)  # all are dense
            chosen.pop("layout", None)
            assert set(chosen) == {"estimator"}  # everything else is at its default


def test_two_settings_cannot_pass_as_fixed(paper):
    _, tables = paper
    rows = [row(a, protocol="fixed", settings=s) for a, s in ((0.1, "{}"), (0.9, '{"n_init": 1}'))]
    with pytest.raises(ValueError, match="OPMC has 2 settings under the fixed protocol on 3sources"):
        tables.wide_cells(rows, "3sources", "fixed")


def test_comic_with_many_clusters_counts_where_nothing_is_chosen(paper):
    _, tables = paper
    rows = [row(0.5, "COMIC", n_found=100, protocol=protocol) for protocol in ("fixed", "oracle")]
    assert tables.wide_cells(rows, "3sources", "fixed")["COMIC"]["ari"] == 0.5
    assert tables.wide_cells(rows, "3sources", "oracle") == {}


def test_where_tmvkscr_loses_has_a_reason_for_each_protocol(paper, monkeypatch):
    _, tables = paper
    rows = [row(0.5, protocol=protocol) for protocol in ("fixed", "oracle")]
    rows += [row(0.3, "TMvKSCR", protocol=protocol) for protocol in ("fixed", "oracle")]
    monkeypatch.setattr(tables, "REASONS", {"loses": {"fixed": {"3sources": "Because."}}})
    assert "3sources, oracle" in tables.unexplained(rows)
    assert "3sources, fixed" not in tables.unexplained(rows)
    page = tables._wider_page(rows)
    assert "most of all OPMC (0.500). Because." in page
    assert f"most of all OPMC (0.500). {tables.UNEXPLAINED}" in page


def test_failures_are_named_on_every_page(paper):
    _, tables = paper
    failed = row(None, error="no way", n_found=None) | {"nmi": None}
    rows = [failed, row(0.5, "TMvKSCR")]
    assert "- OPMC failed for some settings on `3sources`: no way" in tables._wider_page(rows)
    assert "- OPMC failed for some settings on `3sources`: no way" in tables._time_page([failed | {"memory": None}])


def test_methods_are_all_timed_on_the_sets_of_the_paper(paper):
    plan, _ = paper
    data = replace(plan.data_set("synth1_appendix"), name="synth1")
    assert {t.method for t in plan.timing_trials(data, "full")} >= set(plan.COMPARED)
