"""Tables and lines that a command prints."""

from dataclasses import replace

import pytest

from coview.cli.output import describe_truth, print_clusters, print_support
from coview.cli.terminal import Terminal
from coview.evaluate.words import number_in_words, support_in_words
from tests.summaries import make_number, make_summary, make_support


@pytest.mark.parametrize("level", ["none", "weak", "moderate", "strong"])
def test_the_selection_and_the_support_are_printed_as_one_line_each(capsys, level):
    number, support = make_number(10), make_support(10, level)
    print_support(Terminal(), replace(make_summary(), number=number, support=support))
    assert capsys.readouterr().out.splitlines() == [number_in_words(number), " ".join(support_in_words(support))]


def test_a_number_that_is_only_the_nearest_to_the_selected_one_is_named(capsys):
    number = replace(make_number(10), chosen=8)
    print_support(Terminal(), replace(make_summary(n_clusters=8), number=number, support=None))
    out = capsys.readouterr().out
    assert out == f"{number_in_words(number)}\n"
    assert out.startswith("8 is the nearest of the requested numbers to the one found. 10 clusters found: 9 of ")


def test_what_is_not_known_is_not_printed(capsys):
    print_support(Terminal(), replace(make_summary(), number=None, support=None))
    assert capsys.readouterr().out == ""
    print_support(Terminal(), replace(make_summary(), number=None, support=make_support(10, "strong")))
    assert capsys.readouterr().out.startswith("The support for these clusters is strong: ")


def test_known_classes_have_a_baseline_and_are_not_rounded_to_perfect():
    truth = replace(make_summary(50, 3).truth, ari=0.99964, nmi=0.0002, accuracy=0.7, largest_class=0.78)
    assert describe_truth(truth) == (
        "Known classes: ARI 0.9996, NMI 0.0002 (1 is perfect), accuracy 70% (largest class alone: 78%)"
    )


def test_agreement_and_fractions_are_not_rounded_to_zero_or_one(capsys):
    summary = make_summary(400, 3)
    clusters = (replace(summary.clusters[0], fraction=0.9996), replace(summary.clusters[1], fraction=0.0004))
    views = tuple(replace(view, agreement=0.997) for view in summary.views)
    print_clusters(Terminal(), replace(summary, clusters=clusters, views=views))
    out = capsys.readouterr().out
    assert "99.96%" in out
    assert "0.04%" in out
    assert "pixels 0.997, fourier 0.997" in out


def test_long_names_of_columns_stay_distinct(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    summary = make_summary(400, 3)
    clusters = tuple(
        replace(c, features=(replace(c.features[0], name=f"ENSG1000000000000000000000{c.label:03}"),))
        for c in summary.clusters
    )
    print_clusters(Terminal(), replace(summary, clusters=clusters))
    out = capsys.readouterr().out
    assert all(f"000000{label:03}" in out for label in range(3))
    assert "ENSG1000000000000000000000" not in out


def test_ids_that_spreadsheets_run_as_formulas_are_noted(tmp_path):
    import pyarrow as pa

    from coview.io.labels import notes_on_formulas

    plain = ["a", "-1", "+2.5", "-1e-3", "s=1"]
    for ids in (None, plain, pa.array(plain)):
        assert notes_on_formulas(tmp_path / "labels.csv", ids) == []
    for hostile in ("=1+1", "@SUM(A1)", "+cmd|' /C calc'!A0", "-2+3", "\t=1"):
        for ids in ([*plain, hostile], pa.array([*plain, hostile])):
            (note,) = notes_on_formulas(tmp_path / "labels.csv", ids)
            assert repr(hostile) in note
            assert "import the column as text" in note
            assert notes_on_formulas(tmp_path / "labels.parquet", ids) == []


def test_fit_and_predict_note_formulas_and_keep_the_ids(tmp_path, capsys):
    from tests.cli.running import call

    rows = [f"=s{i},{i % 2 * 9 + i / 100},{i / 50}" for i in range(20)]
    (tmp_path / "x.csv").write_text("\n".join(["id,x,y", *rows]))
    view = ("--view", f"a={tmp_path / 'x.csv'}", "--ids", "id")
    _, _, err = call(capsys, "fit", *view, "-k2", "--method", "ksc", "--no-report", "-o", tmp_path / "run")
    assert "labels.csv has ids such as '=s0'" in err
    _, _, err = call(capsys, "predict", tmp_path / "run", *view, "-o", tmp_path / "new.csv")
    assert "new.csv has ids such as '=s0'" in err
    assert (tmp_path / "new.csv").read_text().splitlines()[1].startswith("=s0,")
