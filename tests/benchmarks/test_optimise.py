"""Settings optimised by the labels: the same search from any interruption, and its table."""

import numpy as np
import pytest

from benchmarks.sweep import Data, read_rows


@pytest.fixture
def optimise(monkeypatch):
    """The search with few evaluations; its import sets the number of threads."""
    from benchmarks.paper import optimise

    for name, value in {"random": 6, "recombined": 3, "batch": 3, "parents": 2}.items():
        monkeypatch.setitem(optimise.SEARCH, name, value)
    return optimise


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    truth = np.arange(45) % 3
    views = {v: rng.normal(size=(3, d))[truth] * 2 + rng.normal(size=(45, d)) for v, d in (("text", 4), ("image", 6))}
    return Data.of("imgc", views, truth)


def best(rows):
    return max(row["ari"] for row in rows if row["error"] is None)


@pytest.mark.parametrize("method", ["KSC (best)", "KSC (concat)", "Co-Reg", "MvKSC", "TMvKSCR"])
def test_an_interrupted_search_resumes_to_the_same_settings(method, optimise, data, tmp_path):
    whole = optimise.Search(data, method, tmp_path / "whole.jsonl")
    whole.run(12)
    for evaluations in (4, 12):  # 4 are an incomplete batch
        resumed = optimise.Search(data, method, tmp_path / "resumed.jsonl")
        resumed.run(evaluations)
    assert [(row["settings"], row["ari"]) for row in resumed.rows] == [
        (row["settings"], row["ari"]) for row in whole.rows
    ]
    assert best(whole.rows) >= best(whole.rows[: len(whole.rows) // 2])
    assert {row["settings"] for row in read_rows(whole.path)} == set(whole.points)


def test_later_settings_are_near_the_best(optimise, data):
    places = optimise.space("TMvKSCR", data)
    parents = [optimise.propose(0, places, [], np.random.default_rng(seed)) for seed in (0, 1)]
    assert sum(parents[0][name] != parents[1][name] for name in places) > 6  # of 9
    for seed in range(20):
        point = optimise.propose(6, places, parents, np.random.default_rng(seed))
        changed = [name for name in places if all(point[name] != parent[name] for parent in parents)]
        assert len(changed) <= 5
        assert 0 <= point["rho"] <= 1


def test_some_random_settings_are_the_same_for_all_views(optimise, data):
    places = optimise.space("TMvKSCR", data)
    same = []
    for seed in range(200):
        point = optimise.propose(0, places, [], np.random.default_rng(seed))
        names = {name.partition(" of ")[0] for name in places if " of " in name}
        same.append(all(point[f"{name} of text"] == point[f"{name} of image"] for name in names))
    assert 70 < sum(same) < 130  # half of them


def test_the_last_settings_change_numbers_a_little(optimise, data):
    places = optimise.space("TMvKSCR", data)
    parent = optimise.propose(0, places, [], np.random.default_rng(0)) | {"rho": 0.5}
    for seed in range(20):
        point = optimise.propose(9, places, [parent], np.random.default_rng(seed))
        assert all(point[name] == parent[name] for name in places if isinstance(places[name], optimise.Choice))
        assert abs(point["rho"] - 0.5) < 0.15  # five standard deviations of the largest step


def test_parameters_of_a_view_come_from_one_setting(optimise, data, monkeypatch):
    monkeypatch.setitem(optimise.SEARCH, "changes", 0)  # one parameter is changed
    places = optimise.space("TMvKSCR", data)
    parents = [dict.fromkeys(places, value) for value in (0.25, 0.75)]
    for seed in range(20):
        point = optimise.propose(6, places, parents, np.random.default_rng(seed))
        mixed = [v for v in data.views if len({point[n] for n in places if n.endswith(f" of {v}")}) > 1]
        assert len(mixed) <= 1


def test_bandwidths_are_in_units_of_the_median(optimise, data):
    places = optimise.space("KSC (best)", data)
    point = optimise.propose(0, places, [], np.random.default_rng(0)) | {"view": "text", "kernel": "rbf", "scale": 0.0}
    kernels = {}
    for scaling in ("none", "standard"):
        one = optimise.experiment("KSC (best)", optimise.Distances(data), point | {"scaling": scaling})
        kernels[scaling] = one.estimator.kernel.sigma2
    x = data.views["text"]
    distances = ((x[:, None] - x[None]) ** 2).sum(axis=2)[np.triu_indices(len(x), 1)]
    assert kernels["none"] == pytest.approx(np.median(distances), rel=1e-4)  # rounded to five digits
    assert kernels["standard"] < kernels["none"]


def test_the_table_has_the_evaluations_of_each_search(optimise, data, tmp_path):
    from benchmarks.paper import tables

    search = optimise.Search(data, "TMvKSCR", tmp_path / "rows.jsonl")
    search.run(6)
    page = "before\n\n<!-- optimised: begin -->\n\nold\n\n<!-- optimised: end -->\n\nafter\n"
    again = tables.with_optimised(page, search.rows)
    assert again.startswith("before\n")
    assert again.endswith("after\n")
    assert "old" not in again
    [line] = [line for line in again.splitlines() if line.startswith("| ImgC | TMvKSCR |")]
    cells = [cell.strip() for cell in line.split("|")]
    assert cells[3] == "0.884"
    assert float(cells[5]) == pytest.approx(best(search.rows), abs=5e-4)  # three decimals
    assert float(cells[4]) <= float(cells[5])
    assert cells[6] == "6"
    assert "| ImgC | MvKSC | 0.794 | not run | not run | 0 |" in again


def test_a_page_with_rows_of_other_searches_is_kept(optimise, monkeypatch, tmp_path):
    page = tmp_path / "ari.md"
    page.write_text("measured before")
    monkeypatch.setattr(optimise, "stored", lambda rows, name, method: [])
    monkeypatch.setattr("sys.argv", ["optimise", "--sets", "--rows", str(tmp_path), "--page", str(page)])
    with pytest.raises(SystemExit, match=r"ari\.md is not written: no rows of .* more"):
        optimise.main()
    assert page.read_text() == "measured before"
