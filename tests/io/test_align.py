"""Samples of files with ids: aligned as a reference implementation does, or refused in one sentence."""

import re
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coview import InputError
from coview.io import read_views
from tests.cli.running import call, refused

IDS = st.lists(st.sampled_from(["s1", "s2", "s3", "t4", "t5", "u6", ""]), min_size=1, max_size=6)


def write(folder, ids):
    """Write tables whose value is the number of the row, and return the options of the command for them."""
    for name, each in ids.items():
        rows = "".join(f"{sample},{i}\n" for i, sample in enumerate(each))
        (folder / f"{name}.csv").write_text("patient,x\n" + rows)
    return {name: folder / f"{name}.csv" for name in ids}


def expected(ids, align):
    """Return the samples in their order, or the part of an error message that names what is wrong."""
    for each in ids.values():
        if "" in each:
            return r"has no (id in row \d|column 'patient' of ids)"
        if len(set(each)) < len(each):
            return r"has the id '..' in rows \d and \d; every sample needs its own id"
    (first, one), (second, other) = ids.items()
    if not set(one) & set(other):
        return f"{second!r}.* has no sample in common with the views before it"
    if align == "strict" and set(one) != set(other):
        lacks, missing = (second, set(one) - set(other)) if set(one) - set(other) else (first, set(other) - set(one))
        count = "the sample" if len(missing) == 1 else f"the {len(missing)} samples"
        return f"view {lacks!r}.* lacks {count} .*align='inner'.*align='outer'"
    both = [sample for sample in one if sample in other]
    return both if align != "outer" else [*one, *(sample for sample in other if sample not in one)]


@settings(max_examples=120, deadline=None)
@given(one=IDS, other=IDS, align=st.sampled_from(["strict", "inner", "outer"]))
def test_any_ids_are_aligned_or_refused_in_words(one, other, align):
    ids = {"a": one, "b": other}
    samples = expected(ids, align)
    with tempfile.TemporaryDirectory() as folder:
        files = write(Path(folder), ids)
        if isinstance(samples, str):
            with pytest.raises(InputError, match=samples) as error:
                read_views(files, ids="patient", align=align)
            assert "\n" not in str(error.value)
            return
        loaded = read_views(files, ids="patient", align=align)
    assert list(loaded.ids) == samples
    for name, each in ids.items():
        rows = [each.index(sample) if sample in each else np.nan for sample in samples]
        np.testing.assert_array_equal(loaded.views[name][:, 0], rows)
        lacking = len(set(samples) - set(each))
        notes = [note for note in loaded.notes if re.match(f"view {name!r} .* lacks the ", note)]
        assert len(notes) == (lacking > 0)
        dropped = [note for note in loaded.notes if re.match(f"view {name!r} .*: dropped the ", note)]
        assert len(dropped) == (align == "inner" and len(set(each) - set(samples)) > 0)


@pytest.mark.parametrize("align", ["strict", "inner", "outer"])
@pytest.mark.parametrize(
    ("one", "other", "message"),
    [
        (["s1", "s2", "s2"], ["s1", "s2", "s3"], "has the id 's2' in rows 1 and 2; every sample needs its own id"),
        (["s1", "s2", "s3"], ["s1", "", "s3"], "has no id in row 1, column 'patient'; give every sample an id"),
        (["s1", "s2"], ["t1", "t2"], "has no sample in common with the views before it"),
    ],
)
def test_the_command_refuses_ids_that_cannot_be_aligned(one, other, message, align, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    files = write(tmp_path, {"a": one, "b": other})
    views = [f"--view={name}={path}" for name, path in files.items()]
    assert message in refused(capsys, "fit", *views, "-k2", "--ids=patient", f"--align={align}", "-o", "run")


def test_the_command_says_how_many_samples_are_missing_and_where(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    files = write(tmp_path, {"a": [f"s{i}" for i in range(30)], "b": [f"s{i}" for i in range(7, 30)]})
    command = ["fit", *(f"--view={name}={path}" for name, path in files.items()), "-k2", "--ids=patient", "-o", "run"]
    message = refused(capsys, *command)
    assert re.search(r"view 'b' \(.*b\.csv\) lacks the 7 samples .* that view 'a' \(.*a\.csv\) has", message)
    assert "(--align inner)" in message
    assert "(--align outer)" in message
    for align, note in (("inner", "dropped the 7 samples"), ("outer", "lacks the 7 samples")):
        code, _, err = call(capsys, *command, f"--align={align}", "--no-report", "--force")
        assert code == 0, err
        assert note in err


@pytest.mark.parametrize(
    ("spelt", "difference"),
    [
        (lambda i: f"s{i:03}", "leading zeros, as in 's000' and 's0'"),
        (lambda i: f"s{i}" if i >= 100 else f"S{i}", "upper and lower case, as in 'S0' and 's0'"),
        (lambda i: f"s{i}" if i >= 100 else f"s-{i}", "hyphens, points and underscores, as in 's-0' and 's0'"),
    ],
)
def test_ids_that_are_nearly_equal_are_named_if_others_are_equal(spelt, difference, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    files = write(tmp_path, {"a": [f"s{i}" for i in range(120)], "b": [spelt(i) for i in range(120)]})
    command = ["fit", *(f"--view={name}={path}" for name, path in files.items()), "-k2", "--ids=patient", "-o", "run"]
    named = f": its ids differ in {difference}; write the ids in the same way"
    assert f" has{named}, keep only the common samples (--align inner)" in refused(capsys, *command)
    for align, note in (("inner", "not in every view"), ("outer", "more of 220")):
        code, _, err = call(capsys, *command, f"--align={align}", "--no-report", "--force")
        assert code == 0, err
        assert note + named in " ".join(err.split())


def test_nearly_equal_ids_are_named_if_a_third_view_has_the_same(tmp_path):
    ids = {"a": [f"s{i}" for i in range(9)], "b": [f"S{i}" for i in range(9)], "c": [f"S{i}" for i in range(9)]}
    notes = read_views(write(tmp_path, ids), ids="patient", align="outer").notes
    assert sum("differ in upper and lower case, as in 'S0' and 's0'" in note for note in notes) == 2


def test_ids_of_other_samples_are_not_taken_for_nearly_equal_ones(tmp_path):
    """Two sites number their patients, and one view has one patient more."""
    ids = {"a": ["a1", "a2", "a3", "c7"], "b": ["b1", "b2", "b3", "c7", "c8"]}
    notes = read_views(write(tmp_path, ids), ids="patient", align="outer").notes
    assert len(notes) == 2
    assert "differ" not in "".join(notes)


def test_the_help_explains_alignment(capsys):
    code, out, _ = call(capsys, "fit", "--help")
    text = " ".join(re.sub(r"[│╭╰─╮╯]", " ", out).split())
    assert code == 0
    assert "strict requires the same samples in every view, inner drops samples that lack a view, outer keeps" in text
