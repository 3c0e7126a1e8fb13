"""The benchmark of quality without labels: its split, intervals, stored rows and page."""

import json
import re
import warnings
from pathlib import Path

import numpy as np
import pytest

from benchmarks.data import list_datasets
from benchmarks.markdown import reflow
from benchmarks.quality import baselines, numbers, page, paired, run, scores
from benchmarks.quality.rows import Stage, code_hash
from coview.data.as_views import as_views

ROOT = Path(__file__).parents[2]
COMMITTED = ROOT / "docs" / "quality.md"
FOLDER = ROOT / "benchmarks" / "quality"
NAMES = sorted([*paired.FIXING, *(f"set{i:02d}" for i in range(14))])
FIXING, REPORTING = paired.halves(NAMES)


def measured(data, seed, **values):
    return {"version": "1", "data": data, "seed": seed, "commit": "abc", "samples": 100, "clusters": 3} | values


def rows_of(names=NAMES, seeds=range(2), coview=0.6, new=0.5, umap=0.4, selected=3, level="strong"):
    """Return the rows of all stages; UMAP is the best baseline. Scores may depend on the data set."""

    def of(value, name):
        return value.get(name, 0.6) if isinstance(value, dict) else value

    rows = {stage: [] for stage in ("known", "new", "auto", "baselines", "situations")}
    for name in names:
        for seed in seeds:
            rows["known"].append(measured(name, seed, ari=of(coview, name)))
            rows["new"].append(measured(name, seed, ari=0.6, new_ari=new))
            rows["auto"].append(measured(name, seed, number=selected, ari=of(coview, name) / 2, level=level))
            titles = {**dict.fromkeys(baselines.BASELINES, 0.1), baselines.UMAP_L2: of(umap, name)}
            rows["baselines"].append(measured(name, seed, scores={baselines.DEFAULT: 0.55} | titles))
    return rows


def situation(kind="unequal sizes", title="588/12", n=600, seed=100, sizes=(588, 12), **values):
    found = {"known_ari": 1.0, "smallest": 1.0, "auto_number": len(sizes), "auto_ari": 1.0, "auto_level": "strong"}
    return measured(f"{kind}, {n}, {title}", seed, kind=kind, title=title, n=n, sizes=list(sizes)) | found | values


def write(rows, path):
    page.write(rows, path)
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


def test_the_page_has_at_most_220_lines(tmp_path):
    rows = rows_of(coview=dict.fromkeys(NAMES[::3], 0.1))  # far below the best baseline, as many as 10
    rows["situations"] = [situation(title=f"data {i}", n=n) for i in range(15) for n in (200, 600)]
    rows["situations"] += [situation("without groups", f"kind {i}", sizes=(600,)) for i in range(14)]
    text = write(rows, tmp_path / "page.md")
    assert len(text.splitlines()) <= 220
    assert not re.search(r"\$\w", text)
    assert "nan" not in text
    assert "Not measured." not in text
    assert reflow(text) == text


def test_the_page_has_the_means_and_differences_of_its_rows(tmp_path):
    rows = rows_of(coview={NAMES[0]: 0.1})
    text = write(rows, tmp_path / "page.md")
    mean = (27 * 0.6 + 0.1) / 28
    assert by_line(text, page.COVIEW) == [page.COVIEW, "28", f"{mean:.3f}", "–"]
    low, high = paired.interval([-0.3, *[0.2] * 27])  # in the order of the rows
    difference = f"{mean - 0.4:+.3f} [{low:+.3f}, {high:+.3f}]"
    assert by_line(text, baselines.UMAP_L2) == [baselines.UMAP_L2, "28", "0.400", difference]
    words = " ".join(text.split())
    assert f"UMAP + k-means, L2, with 0.400. The difference of `Coview` to it is {difference}." in words
    assert "new samples have a mean ARI of 0.500, and the training samples of the same models 0.600." in words
    assert "The difference is -0.100 [-0.100, -0.100]." in words
    assert by_line(text, NAMES[0]) == [
        NAMES[0],
        "3",
        "0.100",
        "0.550",
        "0.400",
        "0.100",
        "0.100",
        "0.500",
        "3 (2×)",
        "0.050",
    ]
    assert by_line(text, "auto") == ["auto", "56", "0, 1", "abc"]


def test_the_page_states_what_is_not_measured(tmp_path):
    rows = rows_of() | {"new": [], "baselines": [], "situations": []}
    text = write(rows, tmp_path / "page.md")
    for part in ("Baselines", "New samples", "Generated data"):
        assert f"- **{part}**: Not measured.\n" in text
    assert "- **Known number of clusters**: `Coview` has a mean ARI of 0.600.\n" in text
    assert by_line(text, NAMES[3]) == [NAMES[3], "3", "0.600", "–", "–", "–", "–", "–", "3 (2×)", "0.300"]
    assert by_line(text, "new") == ["new", "0", "–", "–"]
    assert "nan" not in text
    nothing = write({stage: [] for stage in rows}, tmp_path / "page.md")
    assert nothing.count("Not measured.") > 12


def test_data_sets_below_half_of_the_best_baseline_are_listed(tmp_path):
    some = {NAMES[0]: 0.15, NAMES[1]: 0.0, NAMES[2]: 0.25}
    rows = rows_of(coview=some, umap=dict.fromkeys(NAMES, 0.4) | {NAMES[1]: 0.04})
    for row in rows["baselines"]:  # baselines that find nothing on the second data set
        if row["data"] == NAMES[1]:
            row["scores"] |= dict.fromkeys(baselines.BASELINES, 0.04)
    assert page.below_half(page.mean_scores(rows["known"], rows["baselines"])) == [NAMES[0]]
    text = write(rows, tmp_path / "page.md")
    assert f"Below half of the best baseline of the data set: {NAMES[0]}." in " ".join(text.split())
    listed = [line for line in text.splitlines() if line.endswith(f"| {baselines.UMAP_L2} |")]
    assert listed == [
        f"| {NAMES[0]} | 0.150 | 0.400 | {baselines.UMAP_L2} |",
        f"| {NAMES[2]} | 0.250 | 0.400 | {baselines.UMAP_L2} |",
    ]


def test_selected_numbers_are_compared_with_the_true_ones():
    rows = [measured("a", seed, number=number, ari=0.4) for seed, number in enumerate((1, 3, 4, 8))]
    rows += [measured("b", 0, number=3, ari=0.005), measured("c", 0, number=3, ari=0.9)]
    known = [measured("a", seed, ari=0.8) for seed in range(4)] + [measured("b", 0, ari=0.01)]
    found = numbers.selections(rows, known)
    assert [each.data for each in found] == [*"aaaab"]  # c has no score for the number of classes
    quality = numbers.Quality.of(found)
    assert quality.within_1 == pytest.approx(3 / 5)
    assert numbers.Quality.of([numbers.Selection("a", true=2, selected=1, ari=0.0, ari_at_true=0.5)]).within_1 == 0
    assert quality.exact == pytest.approx(2 / 5)
    assert quality.below == pytest.approx(1 / 5)
    assert quality.above == pytest.approx(2 / 5)
    assert quality.one == pytest.approx(1 / 5)
    assert quality.ari_kept == pytest.approx(0.5)  # without b, on which no clusters are found


def test_the_ari_kept_is_at_most_1():
    better = numbers.Selection("a", true=3, selected=4, ari=0.9, ari_at_true=0.6)
    assert numbers.Quality.of([better]).ari_kept == 1


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
    stage.resume(range(2), jobs=1)
    found = [(row["data"], row["seed"], row["value"]) for row in stage.complete_rows()]
    assert found == [("a", 0, 0), ("a", 1, 1), ("b", 0, 0), ("b", 1, 5)]
    assert "made: 3 of 3" in capsys.readouterr().out
    stage.resume(range(2), jobs=1)
    assert capsys.readouterr().out == ""


def test_a_stage_without_a_file_has_no_rows(tmp_path):
    assert Stage(tmp_path / "absent.jsonl", measure_made_up, "1", ["a"]).rows() == []


def test_the_version_changes_with_the_measured_code(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("first")
    before = code_hash(script, ["registry.py"])
    assert code_hash(script, ["registry.py"]) == before
    assert len({before, code_hash(script, ["errors.py"]), code_hash(script, ["registry.py"], more="x")}) == 3
    script.write_text("second")
    assert code_hash(script, ["registry.py"]) != before


def test_files_without_an_effect_on_the_rows_do_not_change_the_version(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("first")
    assert code_hash(script, ["registry.py", "errors.py"], without=["errors.py"]) == code_hash(script, ["registry.py"])
    assert code_hash(script, ["evaluate"], without=["evaluate/words.py"]) != code_hash(script, ["evaluate"])


def test_rows_have_the_order_of_the_names(tmp_path):
    path = tmp_path / "made.jsonl"
    path.write_text("".join(json.dumps({"version": "1", "data": name, "seed": 0}) + "\n" for name in "abc"))
    found = Stage(path, measure_made_up, "1", ["c", "a"]).rows()
    assert [row["data"] for row in found] == ["c", "a"]


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
    with pytest.raises(SystemExit, match=r"needs umap-learn: pip install -c constraints\.txt"):
        run.main([])


def test_an_unknown_stage_is_reported(capsys):
    with pytest.raises(SystemExit):
        run.main(["--only", "known,other"])
    assert "'other': expected names among known, new, auto, baselines, situations, page" in capsys.readouterr().err


def clear_clusters():
    rng = np.random.default_rng(0)
    truth = rng.permutation(np.arange(60) % 3)
    return as_views([10 * np.eye(3, 4)[truth] + rng.normal(size=(60, 4)) for _ in range(2)]), truth


@pytest.fixture
def made(monkeypatch):
    """A stored data set of three clear clusters."""
    for module in (scores, baselines):
        monkeypatch.setattr(module, "sampled", lambda name, seed: clear_clusters())
    for module in (scores, run):
        monkeypatch.setattr(module, "stored_names", lambda: ("ngs",))


def test_some_stages_are_measured_and_resumed(made, tmp_path, capsys):
    arguments = ["--only", "known,auto", "--seeds", "1", "--jobs", "1", "--rows", str(tmp_path)]
    run.main([*arguments, "--out", str(tmp_path / "page.md")])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["auto.jsonl", "known.jsonl", "page.md"]
    text = (tmp_path / "page.md").read_text()
    assert by_line(text, "ngs") == ["ngs", "3", "1.000", "–", "–", "–", "–", "–", "3", "1.000"]
    assert "- **Baselines**: Not measured." in text
    assert "known: 1 of 1, ngs with seed 0" in capsys.readouterr().out
    run.main([*arguments, "--out", str(tmp_path / "page.md")])
    assert capsys.readouterr().out == ""


def test_new_samples_are_scored_apart_from_the_training_samples(made, monkeypatch):
    row = scores.measure_new("ngs", 0)
    assert (row["ari"], row["new_ari"]) == (1, 1)
    views, truth = clear_clusters()
    wrong = np.where(np.arange(60) < 42, truth, 0)  # 70 % of the samples are for training
    monkeypatch.setattr(scores, "sampled", lambda name, seed: (views, wrong))
    row = scores.measure_new("ngs", 0)
    assert (row["ari"], row["new_ari"]) == (1, 0)


def test_only_data_sets_with_few_classes_are_measured_without_their_number(monkeypatch):
    names = ("100leaves", "ngs", "scene15", "synth1")
    monkeypatch.setattr(scores, "stored_names", lambda: names)
    assert scores.names_for_auto() == ["ngs", "synth1"]


def test_scores_have_all_baselines(made, monkeypatch):
    monkeypatch.setattr(baselines, "umap", lambda table, seed: np.asarray(table))
    with warnings.catch_warnings(action="ignore"):  # graphs that are not connected; Stage ignores warnings, too
        row = baselines.measure("ngs", 0)
    assert (row["clusters"], row["samples"]) == (3, 60)
    assert {*row["scores"]} == {*baselines.BASELINES, baselines.DEFAULT, baselines.PUBLISHED}
    assert row["scores"][baselines.KM_L2] == 1


def test_the_committed_page_has_the_sentences_of_the_template():
    text = " ".join(COMMITTED.read_text().split())
    position = 0
    for literal in re.split(r"\$\w+", (FOLDER / "template.md").read_text()):
        words = " ".join(literal.replace("$$", "$").split())
        assert text.find(words, position) >= 0, words
        position = text.find(words, position)
