"""Delimiters and decimal marks of text tables: detected and noted if they are certain, refused otherwise."""

import gzip

import numpy as np
import pytest

from coview import InputError
from coview.io import cells, describe_file, read_labels, read_views

SEMICOLONS = "the columns are separated by semicolons"


def view_of(folder, content, ending=".csv", **options):
    path = folder / f"x{ending}"
    path.write_bytes(gzip.compress(content.encode()) if ending.endswith(".gz") else content.encode())
    loaded = read_views({"a": path}, **options)
    return loaded, [note.removeprefix(f"view 'a' ({path}): ") for note in loaded.notes]


def commas(example):
    return f"commas are read as decimal marks, as in {example!r}"


@pytest.mark.parametrize("ending", [".csv", ".csv.gz"])
def test_semicolons_and_decimal_commas_are_read_and_noted(tmp_path, ending):
    content = 'sample;x;"weight, kg"\ns;0,5;-1\nt;1e-1;2,25\n'
    loaded, notes = view_of(tmp_path, content, ending, ids="sample")
    np.testing.assert_array_equal(loaded.views["a"], [[0.5, -1], [0.1, 2.25]])
    assert (loaded.ids, loaded.views.columns["a"]) == (("s", "t"), ("x", "weight, kg"))
    assert notes == [SEMICOLONS, commas("0,5")]


@pytest.mark.parametrize(
    ("content", "expected", "noted"),
    [
        ("u;v\n1;2\n3;4\n", [[1, 2], [3, 4]], [SEMICOLONS]),
        ("u\tv\n1\t2.5\n3\t4\n", [[1, 2.5], [3, 4]], ["the columns are separated by tabs"]),
        ("u|v\n1|2\n3|4\n", [[1, 2], [3, 4]], ["the columns are separated by vertical bars"]),
        ('u,v\n"0,5",1\n"1,5",2\n', [[0.5, 1], [1.5, 2]], [commas("0,5")]),
        ("u, kg;v, cm\n1,5;2,5\n3,5;4,5\n", [[1.5, 2.5], [3.5, 4.5]], [SEMICOLONS, commas("1,5")]),
        ("u;v\n0,123;1,234\n3,456;4,5\n", [[0.123, 1.234], [3.456, 4.5]], [SEMICOLONS, commas("0,123")]),
        ("u;v\n1,234;0\n,5;0\n", [[1.234, 0], [0.5, 0]], [SEMICOLONS, commas("1,234"), "the column 'v' is constant"]),
        ('"u";"v"\n"s";1,5;2\n"t";2,5;3\n', [[1.5, 2], [2.5, 3]], [SEMICOLONS, commas("1,5")]),
    ],
)
def test_delimiters_and_marks_are_detected(tmp_path, content, expected, noted):
    loaded, notes = view_of(tmp_path, content)
    np.testing.assert_array_equal(loaded.views["a"], expected)
    assert notes == noted


def test_tables_without_names_may_have_decimal_commas(tmp_path):
    loaded, notes = view_of(tmp_path, "1,5;2,5\n3,5;4,5\n")
    np.testing.assert_array_equal(loaded.views["a"], [[1.5, 2.5], [3.5, 4.5]])
    assert notes[0] == SEMICOLONS
    assert "first line contains numbers" in notes[1]
    assert notes[2] == commas("1,5")


def test_commas_in_a_tsv_file_are_decimal_marks_or_delimiters(tmp_path):
    loaded, notes = view_of(tmp_path, "u\tv\n0,5\t1\n1,5\t2\n", ".tsv")
    np.testing.assert_array_equal(loaded.views["a"], [[0.5, 1], [1.5, 2]])
    assert notes == [commas("0,5")]
    loaded, notes = view_of(tmp_path, "u,v\n5,1\n6,2\n", ".tsv")
    np.testing.assert_array_equal(loaded.views["a"], [[5, 1], [6, 2]])
    assert notes == ["the columns are separated by commas"]


def test_strings_with_other_delimiters_do_not_change_the_delimiter(tmp_path):
    content = "x,tags;more\n1,a;b\n2,c;d\n3,a;b\n"
    loaded, notes = view_of(tmp_path, content, categories="onehot")
    assert loaded.views.categories["a"]["tags;more"].values == ("a;b", "c;d")
    assert notes == []


def test_decimal_commas_in_late_blocks_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr(cells, "_BLOCK_ROWS", 3)
    content = "u;v\n" + "".join(f"{i % 7};{i}{',5' if i > 30 else ''}\n" for i in range(40))
    loaded, notes = view_of(tmp_path, content)
    np.testing.assert_array_equal(loaded.views["a"][:, 1], [i + (i > 30) / 2 for i in range(40)])
    assert notes == [SEMICOLONS, commas("31,5")]
    with pytest.raises(InputError, match=r"a comma \('31,5' in the column 'v'\) and with a decimal point \('39.5'"):
        view_of(tmp_path, content.replace("39,5", "39.5"))


def test_a_stated_decimal_mark_decides_what_is_uncertain(tmp_path):
    thousands = "u;v\n1,234;1\n2,345;2\n"
    with pytest.raises(InputError, match="may be a decimal mark or separate thousands"):
        view_of(tmp_path, thousands)
    loaded, notes = view_of(tmp_path, thousands, decimal=",")
    np.testing.assert_array_equal(loaded.views["a"], [[1.234, 1], [2.345, 2]])
    assert notes == [SEMICOLONS]
    one_column = "height\n1,75\n1,62\n"
    with pytest.raises(InputError, match="may be a row name and a number, or a number with a decimal comma"):
        view_of(tmp_path, one_column)
    np.testing.assert_array_equal(view_of(tmp_path, one_column, decimal=",")[0].views["a"], [[1.75], [1.62]])
    np.testing.assert_array_equal(view_of(tmp_path, one_column, decimal=".")[0].views["a"], [[75], [62]])
    either = "sample;level (mg,dl)\ns;1,5\nt;2,5\n"
    with pytest.raises(InputError, match="may be separated by commas or by semicolons"):
        view_of(tmp_path, either, ids="sample")
    np.testing.assert_array_equal(view_of(tmp_path, either, ids="sample", decimal=",")[0].views["a"], [[1.5], [2.5]])


def test_row_names_as_r_writes_them_are_not_decimal_commas(tmp_path):
    loaded, notes = view_of(tmp_path, '"x"\n"1",5\n"2",7\n')
    np.testing.assert_array_equal(loaded.views["a"], [[5], [7]])
    assert notes == []


def test_numbers_that_contradict_the_stated_mark_are_refused(tmp_path):
    with pytest.raises(
        InputError, match=r"decimal point \('0.5' in the column 'u'\), but the decimal mark is set to a"
    ):
        view_of(tmp_path, "u,v\n0.5,1\n1.5,2\n", decimal=",")
    with pytest.raises(InputError, match=r"decimal=';': expected '.' or ','"):
        view_of(tmp_path, "u,v\n0.5,1\n1.5,2\n", decimal=";")
    with pytest.raises(InputError, match="write numbers with a decimal point"):
        view_of(tmp_path, "u;v\n0,5;1\n1,5;2\n", decimal=".")


def test_ids_keep_their_commas(tmp_path):
    loaded, _ = view_of(tmp_path, "sample;x\n1,5;0,5\n2,5;0,7\n", ids="sample")
    assert loaded.ids == ("1,5", "2,5")


def test_known_classes_may_be_separated_by_semicolons(tmp_path):
    path = tmp_path / "truth.csv"
    path.write_text("sample;class;level\nt;b;0,5\ns;a;1,5\n")
    assert read_labels(path, column="class", ids="sample", order=["s", "t"]) == ("a", "b")


def test_delimiters_within_the_strings_of_one_column_do_not_split_it(tmp_path):
    for delimiter in ";|\t":
        (tmp_path / "truth.csv").write_text(f"class\na{delimiter}b\nc{delimiter}d\n")
        assert read_labels(tmp_path / "truth.csv") == (f"a{delimiter}b", f"c{delimiter}d")


def test_what_was_detected_is_described(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("u;v\n0,5;1\n1,5;2\n")
    described = describe_file(path)
    assert described["notes"] == f"{SEMICOLONS}; {commas('0,5')}"
    assert described["columns"][0] == {"name": "u", "type": "number", "missing": 0, "min": 0.5, "max": 1.5}


@pytest.mark.parametrize("name", ["sample", ""])  # ids, and row names
@pytest.mark.parametrize(
    ("cells", "noted"),
    [
        (["s", "t", "u"], []),
        ([" s", "t", "u"], ["removed the spaces around 1 ids or categories, as in ' s'"]),
        (["s", '"t  "', "u "], ["removed the spaces around 2 ids or categories, as in 't  '"]),
        (['  "s"', "t", "u"], []),  # the spaces are outside of the cell
    ],
)
def test_spaces_around_ids_are_removed_with_a_note(tmp_path, cells, noted, name):
    rows = "".join(f"{cell}, {i}\n" for i, cell in enumerate(cells))
    loaded, notes = view_of(tmp_path, f"{name},x\n{rows}", ids=name or None)
    assert loaded.ids == ("s", "t", "u")
    assert notes == noted
    np.testing.assert_array_equal(loaded.views["a"][:, 0], [0, 1, 2])


def test_spaces_before_quotes_inside_cells_are_those_of_the_cell(tmp_path):
    cells = ['"p0, "', '"p1; "', ' "p2, "', '"p3 ""a"", ""b"""', '  "p4,\nx"']
    rows = "".join(f"{i}, {cell}, {i}\n" for i, cell in enumerate(cells))
    loaded, notes = view_of(tmp_path, f"x,sample,y\n{rows}", ids="sample")
    assert loaded.ids == ("p0,", "p1;", "p2,", 'p3 "a", "b"', "p4,\nx")
    assert notes == ["removed the spaces around 3 ids or categories, as in 'p0, '"]
    np.testing.assert_array_equal(loaded.views["a"], np.arange(5)[:, None].repeat(2, axis=1))
    loaded, notes = view_of(tmp_path, 'x;sample\n1;a, "b"\n2;c\n', ids="sample")
    assert loaded.ids == ('a, "b"', "c")  # a comma does not end a cell
    assert notes == [SEMICOLONS]


def test_spaces_before_quotes_do_not_belong_to_cells(tmp_path):
    content = 'x, colour\n1, "red, ""dark"""\n2, ""\n3, "blue"\n4, "blue"\n'
    loaded, _ = view_of(tmp_path, content, categories="onehot", empty_cells=["a"])
    assert loaded.views.categories["a"]["colour"].values == ("blue", 'red, "dark"')
    loaded, notes = view_of(tmp_path, "1, 2, 3\n0.5, 1, 2\n1, 5, 7\n")
    assert (loaded.views.columns["a"], len(notes)) == (("1", "2", "3"), 1)  # numbers of columns
