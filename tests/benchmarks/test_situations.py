"""The generated situations: their data, stored rows and tables."""

import numpy as np
import pytest

from benchmarks import situations
from benchmarks.quality import situation_tables
from benchmarks.situations import N_SAMPLES, SIZES, UNEQUAL, WITHOUT, WITHOUT_GROUPS
from tests.benchmarks.test_quality import situation

BY_NAME = {each.name: each for each in situations.situations()}


@pytest.mark.parametrize("name", [name for name, each in BY_NAME.items() if each.n <= 600])
def test_the_data_are_reproducible_and_have_two_views_of_all_samples(name):
    (views, truth), (again, _), (other, _) = (BY_NAME[name].draw(np.random.default_rng(seed)) for seed in (7, 7, 8))
    assert [len(x) for x in views] == [len(truth)] * 2
    assert abs(len(truth) - BY_NAME[name].n) <= 2  # sizes are rounded
    assert len(np.unique(truth)) == (1 if BY_NAME[name].kind == WITHOUT else truth.max() + 1)
    for x, y, z in zip(views, again, other, strict=True):
        assert np.isfinite(x).all()
        np.testing.assert_array_equal(x, y)
        assert (x != z).any()


def test_all_sizes_are_measured_for_all_numbers_of_samples():
    found = {(each.n, each.title) for each in BY_NAME.values() if each.kind == UNEQUAL}
    assert found == {(n, "/".join(map(str, sizes))) for n in N_SAMPLES for sizes in SIZES}
    assert situations.scaled((588, 12), 200) == (196, 4)
    assert situations.scaled((480, 90, 24, 6), 20_000) == (16_000, 3000, 800, 200)
    assert situations.scaled((588, 12), 20) == (20, 2)


def test_there_are_at_least_twelve_kinds_without_groups():
    assert len(WITHOUT_GROUPS) >= 12
    assert {each.title for each in BY_NAME.values() if each.kind == WITHOUT} == {*WITHOUT_GROUPS}


def test_unequal_groups_are_as_far_apart_as_stated():
    views, truth = situations.groups((300, 300, 300), 14.0, (5, 8), np.random.default_rng(0))
    for x in views:
        centres = np.array([x[truth == group].mean(axis=0) for group in range(3)])
        np.testing.assert_allclose(np.linalg.norm(centres[0] - centres[1:], axis=1), 14, atol=0.5)


def test_a_row_has_what_is_found_with_and_without_the_number():
    row = situations.measure("unequal sizes, n = 200, 540/60", 0)
    assert row["sizes"] == [180, 20]
    assert (row["known_ari"], row["smallest"], row["auto_ari"], row["auto_number"]) == (1, 1, 1, 2)
    assert row["auto_level"] == "strong"


def test_data_without_groups_have_no_score_for_a_number():
    row = situations.measure("without groups, n = 200, gradient", 0)
    assert (row["known_ari"], row["smallest"], row["sizes"]) == (None, None, [200])
    assert row["auto_ari"] == (row["auto_number"] == 1)


def test_one_number_of_samples_is_finished_before_the_next(tmp_path, monkeypatch, capsys):
    few = [each for each in BY_NAME.values() if each.title in ("588/12", "gradient")]
    monkeypatch.setattr(situations, "situations", lambda: few)

    def measure(name, seed):
        return {key: value for key, value in situation().items() if key not in ("version", "data", "seed")}

    monkeypatch.setattr(situations, "measure", measure)
    out = tmp_path / "rows.jsonl"
    arguments = ["--out", str(out), "--jobs", "1", "--seeds", "3", "4", "--n"]
    situations.main([*arguments, "600", "200"])
    shown = [line for line in capsys.readouterr().out.splitlines() if line.startswith("rows: ")]
    assert [line.split(", n = ")[1][:3] for line in shown] == ["200"] * 4 + ["600"] * 4
    assert len(situations.complete_rows(out)) == 8
    situations.main([*arguments, "200"])
    assert "rows: " not in capsys.readouterr().out
    out.write_text("".join(out.read_text().splitlines(keepends=True)[:7]))
    assert len(situations.complete_rows(out)) == 6  # without the seed that lacks a data set of 600 samples


def test_the_tables_have_the_lowest_scores_and_all_wrong_numbers():
    rows = [
        situation(seed=100, known_ari=0.5, smallest=0.25, auto_number=3, auto_ari=0.4, auto_level="moderate"),
        situation(seed=101),
        situation(seed=102, auto_number=1, auto_ari=0.0, auto_level="none"),
        situation(n=2000, sizes=(1960, 40)),
        situation("overlapping", "3 groups", sizes=(200, 200, 200)),
        *(situation(WITHOUT, "gradient", seed=seed, sizes=(600,), auto_number=1 + seed) for seed in range(2)),
    ]
    tables = situation_tables.tables(rows)
    assert tables["known"] == [
        "| data | n = 600 | n = 2,000 |",
        "| --- | --- | --- |",
        "| 588/12 | 0.50, 0.25 \\* | 1.00, 1.00 |",
        "| 3 groups | 1.00, 1.00 | – |",
    ]
    assert tables["auto"][2:] == [
        "| 588/12 | 0.00, 1 of 3 (1, 3) \\* | 1.00, 1 of 1 |",
        "| 3 groups | 1.00, 1 of 1 | – |",
    ]
    assert tables["one"] == ["| data | n = 600 |", "| --- | --- |", "| gradient | 1 of 2 (2) |"]
    assert tables["support"] == [
        "| kind | runs | none | weak | moderate | strong |",
        "| --- | --- | --- | --- | --- | --- |",
        "| unequal sizes | 4 | 1 | 0 | 1 | 2 |",
        "| overlapping | 1 | 0 | 0 | 0 | 1 |",
        "| without groups | 2 | 0 | 0 | 0 | 2 |",
    ]
    assert situation_tables.headline(rows).endswith("unequal sizes 2 of 4; overlapping 1 of 1; without groups 1 of 2.")


def test_tables_without_rows_say_so():
    assert {*map(tuple, situation_tables.tables([]).values())} == {("Not measured.",)}
    assert situation_tables.headline([]) == "Not measured."
