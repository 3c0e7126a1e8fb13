"""The benchmark of quality without labels: its split, intervals, stored rows and page."""

import json
import re
import tomllib
import warnings
from pathlib import Path

import numpy as np
import pytest

from benchmarks.data import list_datasets
from benchmarks.markdown import reflow
from benchmarks.quality import evaluations, numbers, page, paired, run, scores
from benchmarks.quality.rows import Stage, code_hash
from coview.core.agreement import size_entropy
from coview.tune.criterion import USED, Constants
from coview.tune.record import evaluated_numbers
from coview.tune.search import Search
from coview.views import as_views

ROOT = Path(__file__).parents[2]
COMMITTED = ROOT / "docs" / "quality.md"
FOLDER = ROOT / "benchmarks" / "quality"
NAMES = sorted([*paired.FIXING, *(f"set{i:02d}" for i in range(14))])
FIXING, REPORTING = paired.halves(NAMES)


def quality_row(data, seed, tuned=0.6, baseline=0.4, selected=3, models=5):
    """Return a row in which UMAP is the best baseline, and the best model is 0.1 above `Tuned`."""
    values = [tuned + 0.1, *[tuned] * (models - 1)]
    return {
        "version": "1",
        "data": data,
        "seed": seed,
        "commit": "abc",
        "samples": 100,
        "clusters": 3,
        "scores": {
            scores.TUNED: tuned,
            scores.BEST_MODEL: max(values),
            **{f"{scores.MODEL}{i}": value for i, value in enumerate(values)},
            scores.DEFAULT: tuned - 0.05,
            scores.PUBLISHED: 0.2,
            **dict.fromkeys(scores.BASELINES, 0.1),
            scores.UMAP_L2: baseline,
        },
        "auto": {"n_clusters": selected, "ari": tuned / 2},
    }


def evaluation_row(data, seed, clusters=3):
    """Return a row whose measures are largest at the true number."""
    at_true = [0.9 if k == clusters else 0.2 for k in evaluations.NUMBERS]
    return {
        "version": "1",
        "data": data,
        "seed": seed,
        "clusters": clusters,
        "measures": dict.fromkeys(evaluations.MEASURES, at_true),
        "ari": at_true,
    }


def write(rows, path):
    found = [evaluation_row(name, 0) for name in (*NAMES, *evaluations.GENERATED)]
    page.write(rows, found, (FIXING, REPORTING), path)
    return path.read_text()


def by_line(text, start):
    """Return the cells of the line of a table that starts with this cell."""
    line = next(line for line in text.splitlines() if line.startswith(f"| {start} |"))
    return [cell.strip() for cell in line.strip("|").split(" | ")]


def test_the_split_is_the_same_for_any_order_of_the_names():
    assert paired.halves(reversed(NAMES)) == (FIXING, REPORTING)
    assert len(FIXING) == len(REPORTING) == 14
    assert {*FIXING} == paired.FIXING
    assert {*FIXING} | {*REPORTING} == {*NAMES}


def test_a_further_data_set_does_not_change_the_halves():
    assert paired.halves([*NAMES[1:], "aaa", "zzz"]) == (
        [name for name in FIXING if name != NAMES[0]],
        sorted([*(name for name in REPORTING if name != NAMES[0]), "aaa", "zzz"]),
    )


def test_the_split_of_the_28_data_sets_does_not_change():
    stored = sorted(each.name for each in list_datasets() if each.call.startswith("load("))
    assert len(stored) == 28
    assert paired.halves(stored)[0] == paired.random_half(stored)


def test_the_interval_is_that_of_resampled_means_one_by_one():
    differences = [0.3, -0.1, 0.05, 0.2, 0.0, 0.11]
    rng = np.random.default_rng(paired.BOOTSTRAP_SEED)
    means = sorted(
        sum(differences[rng.integers(len(differences))] for _ in differences) / len(differences)
        for _ in range(paired.RESAMPLES)
    )
    low, high = paired.interval(differences)
    # A percentile is interpolated between the two means around its position.
    for value, fraction in ((low, 0.025), (high, 0.975)):
        position = fraction * (len(means) - 1)
        below, above = means[int(position)], means[int(position) + 1]
        assert value == pytest.approx(below + (position - int(position)) * (above - below), abs=1e-12)
    assert low < np.mean(differences) < high


def test_equal_differences_have_an_interval_of_one_value():
    assert paired.interval([0.25] * 4) == (0.25, 0.25)


def test_the_page_has_at_most_150_lines(tmp_path):
    low = NAMES[::3]  # far below the best baseline, as many as 10
    rows = [quality_row(name, s, tuned=0.1 if name in low else 0.6, models=4) for name in NAMES for s in range(5)]
    text = write(rows, tmp_path / "page.md")
    assert len(text.splitlines()) <= 150
    assert not re.search(r"\$\w", text)
    assert "nan" not in text
    assert reflow(text) == text


def test_the_page_has_the_means_and_differences_of_its_rows(tmp_path):
    rows = [quality_row(name, seed) for name in NAMES[1:] for seed in range(2)]
    rows += [quality_row(NAMES[0], seed, tuned=0.1, models=3) for seed in range(2)]
    text = write(rows, tmp_path / "page.md")
    tuned, umap, best, last = (
        by_line(text, title) for title in (scores.TUNED, scores.UMAP_L2, scores.BEST_MODEL, f"{scores.MODEL}4")
    )
    mean = (27 * 0.6 + 0.1) / 28
    fixing, reporting = ((13 * 0.6 + 0.1) / 14 if NAMES[0] in half else 0.6 for half in (FIXING, REPORTING))
    assert tuned == [scores.TUNED, "28", f"{fixing:.3f}", f"{reporting:.3f}", f"{mean:.3f}", "–", "–"]
    low, high = paired.interval([*[0.2] * 27, -0.3])  # in the order of the rows
    assert umap[-1] == f"{mean - 0.4:+.3f} [{low:+.3f}, {high:+.3f}]"
    assert best[-1] == "-0.100 [-0.100, -0.100]"
    assert last[1] == "27"
    assert by_line(text, f"{NAMES[0]} \\*" if NAMES[0] in FIXING else NAMES[0])[-1] == "3 (2×)"


def test_data_sets_below_half_of_the_best_baseline_are_listed(tmp_path, monkeypatch):
    rows = [quality_row(name, 0) for name in NAMES[2:]]
    rows += [quality_row(NAMES[0], 0, tuned=0.15), quality_row(NAMES[1], 0, tuned=0.0, baseline=0.04)]
    for row in rows:  # baselines that find nothing on the second data set
        if row["data"] == NAMES[1]:
            row["scores"] |= dict.fromkeys(scores.BASELINES, 0.04)
    assert page.below_half(page.mean_scores(rows)) == [NAMES[0]]
    (tmp_path / "reasons.toml").write_text(f'[data]\n{NAMES[0]} = "One view has noise only."\n')
    (tmp_path / "template.md").write_text((FOLDER / "template.md").read_text())
    monkeypatch.setattr(page, "HERE", tmp_path)
    text = write(rows, tmp_path / "page.md")
    assert f"if this is at least 0.05: {NAMES[0]}." in text
    line = next(line for line in text.splitlines() if "One view has noise only." in line)
    assert line == f"| {NAMES[0]} | 0.150 | 0.250 | 0.400 | {scores.UMAP_L2} | One view has noise only. |"


def test_selected_numbers_are_compared_with_the_true_ones():
    rows = [quality_row("a", seed, tuned=0.8, selected=selected) for seed, selected in enumerate((1, 3, 4, 8))]
    rows.append(quality_row("b", 0, tuned=0.01))
    quality = numbers.Quality.of(numbers.selected_by_tuned(rows))
    assert quality.within_1 == pytest.approx(3 / 5)
    assert numbers.Quality.of([numbers.Selection("a", true=2, selected=1, ari=0.0, ari_at_true=0.5)]).within_1 == 0
    assert quality.exact == pytest.approx(2 / 5)
    assert quality.below == pytest.approx(1 / 5)
    assert quality.above == pytest.approx(2 / 5)
    assert quality.ari_kept == pytest.approx(0.5)  # without b, on which no clusters are found


def test_the_ari_kept_is_at_most_1():
    better = numbers.Selection("a", true=3, selected=4, ari=0.9, ari_at_true=0.6)
    assert numbers.Quality.of([better]).ari_kept == 1


def test_constants_are_ranked_on_the_fixing_half_only():
    same = dict.fromkeys(evaluations.MEASURES, [0.5] * len(evaluations.NUMBERS))
    # 12 is selected only if the criterion is raised by the number of clusters, and 2 only if it is not.
    many = evaluation_row("a", 0) | {"measures": same, "ari": [0.1] * 10 + [0.8], "clusters": 12}
    few = [evaluation_row("b", seed) | {"measures": same, "ari": [0.8] + [0.1] * 10, "clusters": 2} for seed in (0, 1)]
    best, qualities = numbers.ranked_constants({"fixing": [many], "other": few}, "fixing")[0]
    assert best.per_log_cluster > 0
    assert (qualities["fixing"].exact, qualities["other"].exact) == (1, 0)


def test_the_grid_has_the_constants_that_are_used():
    assert USED in numbers.GRID
    assert Constants(0.0, 0.0, 0.0) in numbers.GRID


def measure_made_up(name, seed):
    assert (name, seed) != ("b", 1), "is stored already"
    return {"value": seed}


def test_a_stage_resumes(tmp_path, capsys):
    path = tmp_path / "made.jsonl"
    stored = [{"version": "1", "data": "b", "seed": 1, "value": 5}, {"version": "0", "data": "a", "seed": 0}]
    path.write_text("".join(json.dumps(row) + "\n" for row in stored) + '{"version": "1", "data": "a", "se')
    stage = Stage(path, measure_made_up, "1", ["a", "b"])
    assert stage.rows() == stored[:1]
    assert stage.complete_rows() == []
    stage.resume(seeds=2, jobs=1)
    found = [(row["data"], row["seed"], row["value"]) for row in stage.complete_rows()]
    assert found == [("a", 0, 0), ("a", 1, 1), ("b", 0, 0), ("b", 1, 5)]
    assert "made: 3 of 3" in capsys.readouterr().out
    stage.resume(seeds=2, jobs=1)
    assert capsys.readouterr().out == ""


def test_a_stage_without_a_file_has_no_rows(tmp_path):
    assert Stage(tmp_path / "absent.jsonl", measure_made_up, "1", ["a"]).rows() == []


def test_the_version_changes_with_the_measured_code(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("first")
    before = code_hash(script, ["rows.py"])
    assert code_hash(script, ["rows.py"]) == before
    assert len({before, code_hash(script, ["views.py"]), code_hash(script, ["rows.py"], more="x")}) == 3
    script.write_text("second")
    assert code_hash(script, ["rows.py"]) != before


def test_a_run_of_some_data_sets_does_not_write_the_page_of_all(monkeypatch):
    monkeypatch.setattr(run, "stored_names", lambda: ("a", "b"))
    monkeypatch.setattr("sys.argv", ["run", "--data", "a"])
    with pytest.raises(SystemExit, match="--data needs --out"):
        run.main()
    monkeypatch.setattr("sys.argv", ["run", "--data", "c", "--out", "page.md"])
    with pytest.raises(SystemExit, match="--data c: expected names among"):
        run.main()


def test_a_missing_umap_is_reported_before_the_run(monkeypatch):
    monkeypatch.setattr(run, "stored_names", lambda: ("a",))
    monkeypatch.setattr(run, "find_spec", lambda name: None)
    monkeypatch.setattr("sys.argv", ["run"])
    with pytest.raises(SystemExit, match=r"needs umap-learn: pip install -c constraints\.txt"):
        run.main()


def clear_clusters():
    rng = np.random.default_rng(0)
    truth = np.arange(60) % 3
    return as_views([4 * rng.normal(size=(3, 4))[truth] + rng.normal(size=(60, 4)) for _ in range(2)]), truth


def test_evaluations_have_the_scores_of_each_number(monkeypatch):
    monkeypatch.setattr(evaluations, "load", lambda name: (*clear_clusters(), None))
    row = evaluations.measure("made", 0)
    assert row["clusters"] == 3
    assert {len(row["measures"][title]) for title in evaluations.MEASURES} == {len(evaluations.NUMBERS)}
    assert row["ari"][evaluations.NUMBERS.index(3)] == 1
    (selection,) = numbers.selected_by_criterion([{"data": "made", **row}], USED)
    assert (selection.selected, selection.ari) == (3, 1)


def test_labels_of_the_search_are_those_that_are_measured():
    views, _ = clear_clusters()
    search = Search.run(views, [2, 3, 4], 0, 1, lambda *_: None)
    found = search.evaluate([2, 3, 4]).evaluations
    for each in evaluated_numbers(found):
        labels = search.labels(found, each.n_clusters)
        assert size_entropy(labels, each.n_clusters) == each.size_entropy


def test_scores_have_the_models_and_all_baselines(monkeypatch):
    monkeypatch.setattr(scores, "load", lambda name: (*clear_clusters(), None))
    monkeypatch.setattr(scores, "umap", lambda table, seed: np.asarray(table))
    with warnings.catch_warnings(action="ignore"):  # graphs that are not connected; Stage ignores warnings, too
        row = scores.measure("made", 0)
    found = row["scores"]
    models = [value for title, value in found.items() if title.startswith(scores.MODEL)]
    assert (row["clusters"], row["samples"]) == (3, 60)
    assert found[scores.TUNED] == 1
    assert found[scores.BEST_MODEL] == max(models)
    assert {*scores.BASELINES, scores.DEFAULT, scores.PUBLISHED} < {*found}
    assert row["auto"] == {"n_clusters": 3, "ari": 1}


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
