"""The project uses the words of its field: nothing in it uses the left-hand words below."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# What is not written, as a regular expression, and what is written instead.
GLOSSARY = {
    r"\bpreparations?\b|\bprepare[sd]? (the |a |each )?views?\b|\bviews? (is|are|was|were) prepared\b": "preprocessing",
    r"\brecipes?\b": "steps",
    r"\brows? of length 1\b|\bunit[- ]length rows?\b|\bUnitLength\b": "L2-normalised rows",
    r"\bat large\b": "RBF kernel (global bandwidth)",
    r"\bsp(eak|eaks|oke|oken) for\b|\bspoken\b|\bjudge[sd]?\b": "score, criterion value, selected because",
    r"\bLooks?\b|\blooks\b(?! (at|up|like|for))": "profile",
    r"\bTrials?\b|\bTried\b|\b[Ee]vidence\b": "evaluation, evaluated settings, record",
    r"\bbalanced?\b(?! line fit)|\bbalances\b": "rho; size entropy",
    r"\bsilenc(e|es|ed)\b": "zero out scores below rounding error",
    r"\bcopies\b": "duplicate rows",
    r"\b[Gg]iven(Similarity|Kernel)\b": "precomputed",
    r"\btelling\b|\b(tells?|says?) (nothing|little|anything|something)\b": "informative, uninformative",
    r"\bshares\b(?! memory)(?=[^(]|$)": "explained variance ratio, fraction",
    r"\bslow\stwins?\b": "reference implementation",
    r"\b(the|one|same) road\b|\bthe gate\b|\bgate for\b": "pipeline, input validation",
    r"\bway out\b": "how to fix it",
    r"\bhand(s|ed|ing)? out\b": "allocate, yield",
    r"\b[Ww]hoever\b|\b[Nn]obody\b": "any row that, no row",
    r"\bhangs? on\b": "depends on",
    r"(?<!value) is none\b(?! of)": "expected a number, got 'x'",
    r"\bwhole numbers?\b": "integer",
    r"\bcrumbs?\b": "small clusters",
    r"\ball in all\b": "in total",
    r"\brunners?[-_ ]up\b": "nearest other cluster (by margin), second cluster (by membership)",
}

# "Look" as a name and the English verb differ in case, as do "None" in Python and "none" in a sentence.
CASE_SENSITIVE = {word for word in GLOSSARY if "Look" in word or "is none" in word or "Trial" in word}


def files():
    listed = subprocess.run(
        ["git", "ls-files", "README.md", "CONTRIBUTING.md", "Makefile", "src", "tests", "docs", "benchmarks",
         "examples"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if listed.returncode:
        pytest.skip("not a git checkout")
    names = set(listed.stdout.split()) - {"tests/test_words.py"}
    binary = (".png", ".npz", ".gz", ".safetensors")
    return [ROOT / name for name in sorted(names) if not name.endswith(binary)]


@pytest.mark.parametrize("word", GLOSSARY, ids=GLOSSARY.values())
def test_words_are_those_of_the_field(word):
    found = []
    for path in files():
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            if re.search(word, line, 0 if word in CASE_SENSITIVE else re.IGNORECASE):
                found.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()[:120]}")
    assert not found, f"write {GLOSSARY[word]!r} instead:\n" + "\n".join(found)
