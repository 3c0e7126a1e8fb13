"""Files that cannot be read, each with words of its error message; the tests of the command use them as well.

Every case writes the files of two views: `good` is valid, and the message must name `bad` and its file.
"""

import gzip
import io
import pickle
import struct
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import scipy.io
import scipy.sparse as sp

N = 12  # samples in the good view
GOOD = "sample,x,y\n" + "".join(f"s{i},{i}.5,{i * i}\n" for i in range(N))
ROWS = [f"s{i},{i}.25,{2 * i}" for i in range(N)]


@dataclass(frozen=True)
class BadFile:
    """A function that writes the file of the view `bad`, and words of the error message."""

    write: Callable[[Path], str]  # given a folder; returns the path, with ::NAME if necessary
    words: tuple[str, ...]
    options: dict[str, str] = field(default_factory=dict)  # ids, align and categories of `read_views`
    needs: str | None = None  # a library that the case needs

    def sources(self, folder: Path) -> dict[str, str]:
        """Write both files and return the path of each view."""
        (folder / "good.csv").write_text(
            GOOD if "ids" in self.options else GOOD.replace("sample,", ",").replace("s", "")
        )
        return {"good": str(folder / "good.csv"), "bad": self.write(folder)}


BAD_FILES: dict[str, BadFile] = {}


def bad(name, *words, needs=None, ids="sample", **options):
    """Register a case under a name."""

    def register(write):
        BAD_FILES[name] = BadFile(write, words, options if ids is None else {"ids": ids, **options}, needs)
        return write

    return register


def by_order(name, *words, needs=None):
    """Register a case without ids."""
    return bad(name, *words, needs=needs, ids=None)


def text(ending, content):
    def write(folder):
        path = folder / f"bad{ending}"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(path)

    return write


def lines(*rows, header="sample,x,y", ending=".csv"):
    return text(ending, "\n".join([header, *rows]) + "\n")


def array(values, ending=".npy"):
    def write(folder):
        path = folder / f"bad{ending}"
        np.save(path, values) if ending == ".npy" else np.savez(path, X=values)
        return str(path)

    return write


def table(**columns):
    """A Parquet file."""

    def write(folder):
        import pyarrow as pa
        from pyarrow import parquet

        parquet.write_table(pa.table(columns), folder / "bad.parquet")
        return str(folder / "bad.parquet")

    return write


def changed(write, change):
    """Write the file of another case, then change its bytes."""

    def write_changed(folder):
        given = write(folder)
        path = Path(given.partition("::")[0])
        path.write_bytes(change(path.read_bytes()))
        return given

    return write_changed


def cut(content):
    return content[: len(content) // 2]


def variable(write, name):
    return lambda folder: f"{write(folder)}::{name}"


def npz(**arrays):
    def write(folder):
        np.savez(folder / "bad.npz", **arrays)
        return str(folder / "bad.npz")

    return write


def zip_of(member: bytes, claimed: int | None = None):
    """A .npz archive that may claim a wrong size."""

    def write(folder):
        with zipfile.ZipFile(folder / "bad.npz", "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("X.npy", member)
            if claimed is not None:
                archive.filelist[0].file_size = claimed
        return str(folder / "bad.npz")

    return write


def npy_header(shape) -> bytes:
    file = io.BytesIO()
    header = {"descr": "<f8", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)
    return file.getvalue()


def mat(ending=".mat", **variables):
    def write(folder):
        scipy.io.savemat(folder / f"bad{ending}", variables, do_compression=True)
        return str(folder / f"bad{ending}")

    return write


def hdf5(fill, ending=".h5ad", userblock=b""):
    def write(folder):
        import h5py

        path = folder / f"bad{ending}"
        with h5py.File(path, "w", userblock_size=512 if userblock else 0) as file:
            fill(file)
        if userblock:
            with path.open("r+b") as raw:
                raw.write(userblock)
        return str(path)

    return write


def annotated(file, values):
    import h5py

    file["X"] = values
    for axis, count in (("obs", N), ("var", 2)):
        group = file.create_group(axis)
        group.attrs["_index"] = "_index"
        group.create_dataset("_index", data=[f"s{i}" for i in range(count)], dtype=h5py.string_dtype())


def sheets(**rows):
    """An Excel workbook with these sheets."""

    def write(folder):
        import openpyxl

        book = openpyxl.Workbook()
        book.remove(book.active)
        for name, cells in rows.items():
            sheet = book.create_sheet(name)
            for row in cells:
                sheet.append(row)
        book.save(folder / "bad.xlsx")
        return str(folder / "bad.xlsx")

    return write


BARCODES = "".join(f"s{i}\n" for i in range(N))


def tenx(matrix=None, barcodes=BARCODES, features="g0\tA\ng1\tB\n", zipped=True):
    """A folder of 10x Genomics; None leaves out a file."""
    entries = "".join(f"{j + 1} {i + 1} {1 + i * j}\n" for i in range(N) for j in range(2))
    matrix = matrix or f"%%MatrixMarket matrix coordinate integer general\n2 {N} {2 * N}\n{entries}"

    def write(folder):
        (folder / "bad").mkdir()
        for name, content in {"matrix.mtx": matrix, "barcodes.tsv": barcodes, "features.tsv": features}.items():
            if content is not None:
                path = folder / "bad" / f"{name}{'.gz' if zipped else ''}"
                path.write_bytes(gzip.compress(content.encode()) if zipped else content.encode())
        return str(folder / "bad")

    return write


WHOLE = np.arange(2.0 * N).reshape(N, 2)
WITH_NAN = np.where(WHOLE == 5, np.nan, WHOLE)
HUGE = 2**50

# Paths
by_order("missing file", "does not exist; check the path")(lambda folder: str(folder / "bad.csv"))
by_order("file name too long", "cannot be read")(lambda folder: str(folder / f"{'long' * 99}.csv"))
by_order("unknown ending", "unknown ending", ".parquet")(text(".xls", b"\xd0\xcf"))
by_order("no ending", "unknown ending")(text("", GOOD))
by_order("zipped Parquet", "unknown ending", ".gz")(text(".parquet.gz", gzip.compress(b"PAR1")))
by_order("variable of a table", "without variables")(variable(lines(*ROWS), "X"))


@by_order("folder", "is a folder")
def write_folder(folder):
    (folder / "bad.csv").mkdir()
    return str(folder / "bad.csv")


# Text tables
by_order("empty file", "is empty")(text(".csv", b""))
by_order("blank lines only", "is empty")(text(".csv", b"\n\n  \n"))
by_order("empty archive of text", "is empty")(text(".csv.gz", b""))
by_order("header without samples", "no samples")(lines())
bad("ragged: a value too few", "1 columns in line 4", "expected 3")(lines(*ROWS[:2], "s2", *ROWS[3:]))
bad("ragged: a value too many", "4 columns in line 5")(lines(*ROWS[:3], ROWS[3] + ",9", *ROWS[4:]))
bad("a string in a column of numbers", "'about 7' in row 2", "column 'x'")(lines(*ROWS[:2], "s2,about 7,4", *ROWS[3:]))
bad("column of strings", "column 'y'", "categories='onehot'", "'red' in row 0", "(ids='y')")(
    lines(*(f"s{i},1,{('red', 'blue')[i % 2]}" for i in range(N)))
)
bad("names encoded as categories", "look like names", "(ids='y')", categories="onehot")(
    lines(*(f"s{i},1,name {i}" for i in range(N)))
)
bad("missing category", "no value in row 1, column 'y'; impute it", categories="onehot")(
    lines("s0,1,red", "s1,2,", *(f"s{i},1,{('red', 'blue')[i % 2]}" for i in range(2, N)))
)
bad("commas or semicolons", "may be separated by commas or by semicolons", "the decimal mark")(
    text(".csv", "sample;level (mg,dl)\n" + "".join(f"s{i};{i},5\n" for i in range(N)))
)
by_order("row names or decimal commas", "lines such as '1,75'", "a number with a decimal comma", "the decimal mark")(
    text(".csv", "height\n" + "".join(f"1,{75 + i}\n" for i in range(N)))
)
bad("decimal commas and points", "a comma ('0,5' in the column 'x')", "a decimal point ('1.5' in the column 'y')")(
    lines(*(f"s{i};{i},5;1.5" for i in range(N)), header="sample;x;y")
)
bad("separators of thousands", "'1,234' in the column 'x'", "separate thousands", "decimal=','")(
    lines(*(f"s{i};1,23{i % 6 + 4};1" for i in range(N)), header="sample;x;y")
)
bad("decimal commas although points are stated", "decimal point", "'0,5' in row 0", decimal=".")(
    lines(*(f's{i},"{i},5",1' for i in range(N)))
)
bad("points and commas in one number", "'1.000,5' in row 0", "without separators of thousands")(
    lines(*(f"s{i};{i + 1}.000,5" for i in range(N)), header="sample;x")
)
bad("dates with points", "'01.02.2023' in row 0", "which are dates", "such as days")(
    lines(*(f"s{i},{i + 1:02}.02.2023" for i in range(N)), header="sample,x")
)
bad("dates and a string", "'2.2.2023' in row 1", "which are dates", categories="onehot")(
    lines("s0,unknown", *(f"s{i},{i + 1}.2.2023" for i in range(1, N)), header="sample,x")
)
bad("a string among numbers", "'n/a?' in row 7", "otherwise contains numbers", "correct", categories="onehot")(
    lines(*(f"s{i},{'n/a?' if i == 7 else i / 8}" for i in range(N)), header="sample,x")
)
bad("spaces in .tsv", "separated by spaces")(text(".tsv", "\n".join(["sample,x,y", *ROWS]).replace(",", " ")))
bad("Latin-1", "not UTF-8", "line 1")(text(".csv", "sample,größe\ns0,1\n".encode("latin-1")))
bad("mixed encodings", "not UTF-8", "line 4")(
    text(".csv", "sample,größe\ns0,1\ns1,2\n".encode() + "s2é,1\n".encode("latin-1"))
)
bad("ends within a character", "not UTF-8", "line 2")(text(".csv", b"sample,x\ns0,\xc3"))
bad("UTF-16", "UTF-16", "UTF-8")(text(".csv", GOOD.encode("utf-16")))
bad("binary file", "is not a text file")(text(".csv", b"sample,x\n\0\0\0\0"))
bad("a word that is too long", "line 1", "field larger")(text(".csv", "x" * 200_000))
bad("open quote", "line 3", "quotes")(lines('s0,"1,2', "s1,1,2"))
bad("gzip truncated", "cannot be read")(text(".csv.gz", cut(gzip.compress(GOOD.encode() * 500))))
bad("not gzip at all", "cannot be read")(text(".csv.gz", GOOD))
bad("two columns of the same name", "two columns named 'x'")(lines(*ROWS, header="sample,x,x"))
bad("infinity", "infinite", "row 1, column 'x'")(lines(ROWS[0], "s1,inf,2", *ROWS[2:]))
bad("number too large", "too large", "row 1, column 'x'")(lines(ROWS[0], "s1,1e999,2", *ROWS[2:]))
bad("missing value", "no value in row 3, column 'y'; impute it (")(lines(*ROWS[:3], "s3,1,NA", *ROWS[4:]))
bad("huge integers", "2^53", "column 'y'")(lines(*(f"s{i},1,12345678901234567890{i}" for i in range(N))))
bad("integer of 400 digits", "2^53", "column 'y'")(lines(*ROWS[:5], f"s5,1,1{'0' * 400}", *ROWS[6:]))
bad("nothing but ids", "no features")(lines(*(f"s{i}" for i in range(N)), header="sample"))
bad("nothing but missing values", "no features")(lines(*(f"s{i},," for i in range(N))))

# Ids
bad("ids that differ", "lacks the sample 's11'", "(align='inner')")(lines(*ROWS[:-1], "t5,1,2"))
bad("a sample too few", "lacks the sample 's11'")(lines(*ROWS[:-1]))
bad("no common id", "no sample in common", align="inner")(lines(*(row.replace("s", "t") for row in ROWS)))
bad("duplicate ids", "'s1' in rows 1 and 5")(lines(*ROWS[:5], "s1,1,2", *ROWS[6:]))
bad("no id in a row", "no id in row 4")(lines(*ROWS[:4], ",1,2", *ROWS[5:]))
bad("no column of ids", "no column 'sample' of ids; did you mean 'id'? It has the 3 columns 'id', 'x', 'y'")(
    lines(*ROWS, header="id,x,y")
)
bad("mistyped column of ids", "'sample' of ids; did you mean 'samples'? It has the 7 columns 'samples', 'a', ")(
    lines(*(f"1,2,3,4,5,6,s{i}" for i in range(N)), header="a,b,c,d,e,f,samples")
)
bad("array of another length beside ids", "has 5 samples", "has 12")(array(WHOLE[:5]))
by_order("another number of samples", "has 5 samples", "has 12")(array(WHOLE[:5]))


# Orientation
by_order(
    "transposed",
    "has 2 samples but view 'good'",
    "has 12",
    "transpose it: transpose=['bad']",
)(array(WHOLE.T))
bad("transposed array beside ids", "has 2 samples but view 'good'", "transpose=['bad']")(array(WHOLE.T))
bad("transposed with the ids as column names", "has the ids of view 'good'", "transpose=['bad']")(
    text(".csv", f"gene,{','.join(f's{i}' for i in range(N))}\nx{',1' * N}\ny{',2' * N}\n")
)

# Excel
by_order("text renamed to .xlsx", "not a zip file", needs="openpyxl")(text(".xlsx", GOOD))
by_order("truncated .xlsx", "cannot be read", needs="openpyxl")(changed(sheets(one=[["x"], [1]]), cut))
by_order("a zip archive renamed to .xlsx", "cannot be read", needs="openpyxl")(
    lambda folder: Path(npz(X=WHOLE)(folder)).rename(folder / "bad.xlsx").as_posix()
)
by_order(
    ".xlsx with several sheets",
    "has 2 sheets: rna (A1:A2), protein (A1:A2); select one as bad.xlsx::NAME",
    needs="openpyxl",
)(sheets(rna=[["x"], [1]], empty=[], protein=[["x"], [1]]))
by_order(".xlsx without the sheet", "no sheet 'dna'; it has rna", needs="openpyxl")(
    variable(sheets(rna=[["x"], [1]]), "dna")
)
by_order("empty .xlsx", "has no sheets", needs="openpyxl")(sheets(one=[]))
by_order(".xlsx with a cell beside the table", "has 3 cells in row 3", "but 2 in its first row", needs="openpyxl")(
    sheets(one=[["x", "y"], [1, 2], [3, 4, "checked"], [5, 6]])
)
bad("missing value in .xlsx", "no value in row 1, column 'x'", needs="openpyxl")(
    sheets(one=[["sample", "x", "y"], ["s0", 1, 1], ["s1", "#N/A", 1], *([f"s{i}", 1, 2] for i in range(2, N))])
)
bad("an error of Excel", "'#DIV/0!' in row 1", "column 'x'", needs="openpyxl")(
    sheets(one=[["sample", "x"], ["s0", 1], ["s1", "#DIV/0!"], *([f"s{i}", 1] for i in range(2, N))])
)

# JSON lines
OBJECTS = [f'{{"sample": "s{i}", "x": {i}.5}}' for i in range(N)]
bad("a line that is not JSON", "is not JSON in line 3 (Expecting value); correct that line")(
    text(".jsonl", "\n".join([*OBJECTS[:2], '{"sample": "s2", "x": }', *OBJECTS[3:]]))
)
bad("truncated .jsonl", "is not JSON in line 2")(text(".jsonl", OBJECTS[0] + "\n" + cut(OBJECTS[1])))
bad("missing key", "lacks the key 'x' in line 2; write null if its value is missing")(
    text(".jsonl", "\n".join([OBJECTS[0], '{"sample": "s1"}', *OBJECTS[2:]]))
)
bad("additional key", "the key 'y' in line 3, which the lines before lack")(
    text(".jsonl", "\n".join([*OBJECTS[:2], '{"sample": "s2", "y": 1, "x": 1}', *OBJECTS[3:]]))
)
bad("key that is there twice", "in line 3 (the key 'x' is there twice); correct that line")(
    text(".jsonl", "\n".join([*OBJECTS[:2], '{"sample": "s2", "x": 2, "x": 1}', *OBJECTS[3:]]))
)
bad("key that is there twice in the first line", "in line 1 (the key 'x' is there twice)")(
    text(".jsonl", '{"x": 1, "x": 2}')
)
bad("list in .jsonl", "a list under the key 'x' in line 2")(
    text(".jsonl", f'{OBJECTS[0]}\n{{"sample": "s1", "x": [1]}}')
)
bad("object in .jsonl", "an object under the key 'x' in line 1")(text(".jsonl", '{"sample": "s1", "x": {"y": 1}}'))
bad("array instead of lines", "has a list in line 1; write one object per line")(
    text(".jsonl", f"[{','.join(OBJECTS)}]")
)
bad("indented JSON", "is not JSON in line 1")(text(".jsonl", '{\n"x": 1\n}'))
bad("numbers instead of objects", "has a value in line 2")(text(".jsonl", OBJECTS[0] + "\n3\n"))
bad("object without keys", "without keys in line 1")(text(".jsonl", "{}\n{}\n"))
bad("deeply nested .jsonl", "line 1")(text(".jsonl", '{"x": ' + "[" * 200_000))
bad("Latin-1 in .jsonl", "line 1", "UTF-8")(text(".jsonl", '{"größe": 1}'.encode("latin-1")))
bad("empty .jsonl", "is empty")(text(".jsonl", "\n"))
bad("null in .jsonl", "no value in row 1, column 'x'")(
    text(
        ".jsonl.gz",
        gzip.compress(
            "\n".join(f'{{"x": {"null" if i == 1 else i}, "y": {i}, "sample": "s{i}"}}' for i in range(N)).encode()
        ),
    )
)
bad("huge integers in .jsonl", "2^53", "column 'x'")(
    text(".jsonl", "\n".join(f'{{"sample": "s{i}", "x": {2**60}}}' for i in range(N)))
)
bad("truncated .jsonl.gz", "cannot be read")(text(".jsonl.gz", cut(gzip.compress("\n".join(OBJECTS).encode()))))

# 10x Genomics
by_order("10x without barcodes", "lacks barcodes.tsv.gz or barcodes.tsv")(tenx(barcodes=None))
by_order("10x without features", "lacks features.tsv.gz or features.tsv or genes.tsv.gz or genes.tsv")(
    tenx(features=None)
)
by_order("10x with several types", "2 feature types: Gene Expression (1), Antibody Capture (1)", "bad::NAME")(
    tenx(features="g0\tA\tGene Expression\ng1\tB\tAntibody Capture\n")
)
by_order("10x without the type", "no feature type 'RNA'; it has features (2)")(variable(tenx(), "RNA"))
by_order("10x with the same feature twice", "two columns named 'A (g0)'")(tenx(features="g0\tA\ng0\tA\n"))


# Arrays
by_order("pickle renamed to .npy", "not a NumPy file", "pickle")(text(".npy", pickle.dumps(WHOLE)))
by_order("objects in .npy", "pickled objects")(
    lambda folder: np.save(folder / "bad.npy", np.array([[{}]]), allow_pickle=True) or str(folder / "bad.npy")
)
by_order("empty .npy", "not a NumPy file")(text(".npy", b""))
by_order(".npy truncated", "cannot be read")(changed(array(WHOLE), cut))
by_order(".npy that claims too much", "cannot be read")(text(".npy", npy_header((HUGE, 4))))
by_order("strings in .npy", "has strings")(array(np.full((N, 2), "word")))
by_order("complex numbers in .npy", "complex")(array(WHOLE * 1j))
by_order("one dimension", "1-D")(array(WHOLE[:, 0]))
by_order("three dimensions", "3-D")(array(WHOLE[:, :, None]))
by_order("no samples in .npy", "has 0 samples")(array(WHOLE[:0]))
by_order("no columns in .npy", "no features")(array(WHOLE[:, :0]))
by_order("missing value in .npy", "no value in row 2, column '1'")(array(WITH_NAN))
by_order("huge integers in .npy", "2^53")(array(np.full((N, 2), 2**60)))
by_order("zip bomb as .npz", "GiB")(zip_of(npy_header((HUGE, 4)), HUGE * 32 + 128))
by_order(".npz that claims too much", "claims", "bytes are stored")(zip_of(npy_header((HUGE, 4))))
by_order("objects in .npz", "pickled objects")(
    lambda folder: np.savez(folder / "bad.npz", X=np.array([[{}]])) or str(folder / "bad.npz")
)
by_order("damaged .npz", "cannot be read")(changed(npz(X=WHOLE), cut))
by_order("text renamed to .npz", "cannot be read")(text(".npz", GOOD))
by_order("empty .npz", "has no arrays")(npz())
by_order("several arrays in .npz", "2 arrays", "left", "right")(npz(left=WHOLE, right=WHOLE))
by_order("no such array in .npz", "no array 'middle'", "left")(variable(npz(left=WHOLE), "middle"))
by_order("sparse indices outside", "cannot be read")(
    npz(format=b"csr", shape=np.array([N, 2]), data=np.ones(N), indices=np.full(N, 10**6), indptr=np.arange(N + 1))
)
by_order("sparse with too many rows", "GiB")(
    npz(format=b"coo", shape=np.array([HUGE, 2]), data=np.ones(1), row=np.zeros(1, int), col=np.zeros(1, int))
)
by_order("missing value in sparse", "no value in row 2, column '1'")(
    lambda folder: sp.save_npz(folder / "bad.npz", sp.csr_array(WITH_NAN)) or str(folder / "bad.npz")
)

by_order("huge integers in sparse", "2^53")(
    lambda folder: sp.save_npz(folder / "bad.npz", sp.csr_array(np.full((N, 2), 2**60))) or str(folder / "bad.npz")
)

# Matrix Market
COORDINATES = "%%MatrixMarket matrix coordinate real general\n"
by_order("text renamed to .mtx", "not a Matrix Market file")(text(".mtx", GOOD))
by_order(".mtx without sizes", "truncated")(text(".mtx", COORDINATES + "% nothing\n"))
by_order(".mtx truncated", "2 lines of 3", "states 9 of 3")(text(".mtx", COORDINATES + "12 2 9\n1 1 1\n2 2 1\n"))
by_order(".mtx with entries outside", "outside")(text(".mtx", COORDINATES + "12 2 1\n13 1 1\n"))
by_order(".mtx with entries between rows", "outside")(text(".mtx", COORDINATES + "12 2 1\n1.5 1 1\n"))
by_order(".mtx with entries at NaN", "outside")(text(".mtx", COORDINATES + "12 2 1\nnan 1 1\n"))
by_order(".mtx without entries", "0 lines of 3", "states 1 of 3")(text(".mtx", COORDINATES + "12 2 1\n"))
by_order(".mtx with an entry too many", "more lines", "states 1 of 3")(
    text(".mtx", COORDINATES + "12 2 1\n1 1 1\n2 2 1\n")
)
by_order(".mtx with a line without end", "a line that is not 3 numbers")(
    text(".mtx.gz", gzip.compress((COORDINATES + "12 2 1\n1 1 1").encode() + b"0" * 200_000))
)
by_order("huge integers in .mtx", "2^53")(
    text(".mtx", COORDINATES.replace("real", "integer") + f"12 2 1\n1 1 {2**60}\n")
)
by_order(".mtx with a decimal comma", "a line that is not 3 numbers", "'1,5'")(
    text(".mtx", COORDINATES + "12 2 1\n1 1 1,5\n")
)
by_order(".mtx with strings", "a line that is not 3 numbers", "'one'")(text(".mtx", COORDINATES + "12 2 1\n1 1 one\n"))
by_order(".mtx that claims too much", "GiB")(text(".mtx", COORDINATES + f"{HUGE} 2 1\n1 1 1\n"))
by_order("complex .mtx", "complex")(text(".mtx", COORDINATES.replace("real", "complex") + "12 2 1\n1 1 1 1\n"))
by_order("half an array in .mtx", "symmetric")(
    text(".mtx", COORDINATES.replace("coordinate", "array").replace("general", "symmetric") + "2 2\n1\n2\n3\n")
)

# MATLAB
by_order(".mat with several variables", "2 variables", "X (12x2)", "truth (1x12)")(mat(X=WHOLE, truth=np.arange(N)))
by_order(".mat without the variable", "no variable 'Y'", "X (12x2)")(variable(mat(X=WHOLE), "Y"))
by_order(".mat with a cell array", "cell array", "'X'")(variable(mat(X=np.array([[1, "a"]], dtype=object)), "X"))
by_order(".mat with complex numbers", "complex numbers")(mat(X=WHOLE * 1j))
by_order(".mat truncated", "truncated")(changed(mat(X=WHOLE), lambda content: content[:-10]))
by_order("damaged .mat", "cannot be read")(
    changed(mat(X=WHOLE), lambda content: content[:140] + b"\xff" * 40 + content[180:])
)
by_order("text renamed to .mat", "not a MATLAB file")(text(".mat", GOOD))
by_order(".mat with another element", "cannot be read", "damaged")(
    changed(mat(X=WHOLE), lambda content: content[:128] + struct.pack("<II", 1, 0))
)


def bomb_of_mat(content):
    """A variable that claims nearly 4 GiB and has a hundred zeros."""
    body = zlib.compress(struct.pack("<II", 14, 2**32 - 8) + b"\0" * 100)
    return content[:128] + struct.pack("<II", 15, len(body)) + body


by_order(".mat that claims too much", "cannot be read")(changed(mat(X=WHOLE), bomb_of_mat))

# HDF5
by_order("text renamed to .h5ad", "not an HDF5 file", needs="h5py")(text(".h5ad", GOOD))
by_order(".h5ad truncated", "cannot be read", needs="h5py")(changed(hdf5(lambda f: annotated(f, WHOLE)), cut))
by_order(".h5ad without the key", "no table 'X_umap'", "X (12x2)", needs="h5py")(
    variable(hdf5(lambda f: annotated(f, WHOLE)), "X_umap")
)
by_order("missing value in .h5ad", "no value in row 2, column 's1'", needs="h5py")(
    hdf5(lambda f: annotated(f, WITH_NAN))
)
by_order(".h5ad that claims too much", "GiB", needs="h5py")(
    hdf5(lambda f: f.create_dataset("X", (HUGE, 4), "f8", chunks=(64, 4)))
)
by_order(".h5ad of a group", "not a table of numbers", needs="h5py")(hdf5(lambda f: f.create_group("X")))
by_order("two columns of the same name in .h5ad", "two columns named 's0'", needs="h5py")(
    hdf5(lambda f: [annotated(f, WHOLE), f["var/_index"].write_direct(np.array(["s0", "s0"], object))])
)
by_order(".h5ad with a name too few", "2 names for 3 columns", needs="h5py")(
    hdf5(lambda f: annotated(f, np.hstack([WHOLE, WHOLE[:, :1]])))
)
by_order(".h5ad with a sample too few", "12 names for 11 rows", needs="h5py")(hdf5(lambda f: annotated(f, WHOLE[1:])))
by_order("strings in .h5ad", "has strings", needs="h5py")(hdf5(lambda f: annotated(f, np.full((N, 2), b"word"))))
by_order("one dimension in .h5ad", "1-D", needs="h5py")(hdf5(lambda f: annotated(f, WHOLE[:, 0])))
by_order("external data in .h5ad", "from other files", needs="h5py")(
    hdf5(lambda f: f.create_dataset("X", (N, 2), "u1", external=[("good.csv", 0, 2 * N)]))
)


def linked(file):
    import h5py

    file["X"] = h5py.ExternalLink(hdf5(lambda f: annotated(f, WHOLE), ".linked")(Path(file.filename).parent), "X")


by_order("external link in .h5ad", "from other files", needs="h5py")(hdf5(linked))
by_order(".h5mu without a modality", "2 tables", "atac", "rna", needs="h5py")(
    hdf5(lambda f: [annotated(f.create_group(f"mod/{name}"), WHOLE) for name in ("rna", "atac")], ".h5mu")
)
by_order("MATLAB 7.3 without the variable", "no variable 'Y'", "X (12x2)", needs="h5py")(
    variable(hdf5(lambda f: f.create_dataset("X", data=WHOLE.T), ".mat", b"MATLAB 7.3"), "Y")
)

# Parquet, Feather and Arrow
by_order("truncated Parquet", "cannot be read", needs="pyarrow")(changed(table(x=WHOLE[:, 0]), cut))
by_order("text renamed to .parquet", "cannot be read", needs="pyarrow")(text(".parquet", GOOD))
by_order("empty .feather", "cannot be read", needs="pyarrow")(text(".feather", b""))
by_order("text renamed to .arrow", "cannot be read", needs="pyarrow")(text(".arrow", GOOD))
by_order("strings in Parquet", "strings in the column 'y'", "onehot", needs="pyarrow")(
    table(x=WHOLE[:, 0], y=["red"] * N)
)
by_order("numbers stored as strings in Parquet", "column 'x'", "store it as numbers", needs="pyarrow")(
    table(x=["1", "2"] * 6)
)
by_order("missing value in Parquet", "no value in row 1, column 'x'", needs="pyarrow")(
    table(x=[1.0, None] + [3.0] * (N - 2), y=WHOLE[:, 0])
)
by_order("lists in Parquet", "column 'y' of values of type list", needs="pyarrow")(table(x=WHOLE[:, 0], y=[[1]] * N))
by_order("dates in Parquet", "column 'y' of dates or times", needs="pyarrow")(
    table(x=WHOLE[:, 0], y=np.full(N, np.datetime64("2020-02-02", "s")))
)
by_order("huge integers in Parquet", "2^53", "column 'y'", needs="pyarrow")(
    table(x=WHOLE[:, 0], y=np.full(N, 2**63, np.uint64))
)
bad("ids that differ in Parquet", "no sample in common", needs="pyarrow")(table(sample=np.arange(N), x=WHOLE[:, 0]))
