"""Label files that are written."""

import csv

import pytest

from coview.io import read_labels, write_labels

CONTROLS = [*map(chr, range(32)), "\x7f", *map(chr, range(0x80, 0xA0)), "\u2028", "\u2029"]
IDS = [f"a{sign}b" for sign in (*CONTROLS, "\r\n", '"', ",", ";", " ", "")]


@pytest.mark.parametrize(("ending", "delimiter"), [(".csv", ","), (".tsv", "\t")])
def test_ids_with_any_control_character_are_read_back(tmp_path, ending, delimiter):
    path, labels = tmp_path / f"labels{ending}", [*range(len(IDS))]
    write_labels(path, labels, ids=IDS)
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file, delimiter=delimiter))
    assert rows == [["sample", "cluster"], *([name, str(label)] for name, label in zip(IDS, labels, strict=True))]
    assert path.read_bytes().startswith(f"sample{delimiter}cluster\n".encode())
    kept = [name for name in IDS if "\0" not in name]  # a NUL is refused in text files
    write_labels(path, range(len(kept)), ids=kept)
    assert read_labels(path, ids="sample", order=kept) == tuple(map(str, range(len(kept))))
