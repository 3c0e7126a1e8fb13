"""A part of `make fuzz`, and that it notices what breaks the rules."""

import json
import subprocess
import sys
import time
import warnings
from pathlib import Path

import pytest

from benchmarks.fuzz import case as rules
from benchmarks.fuzz.case import Case, Finding, answer_or_documented_error, outcome_of
from benchmarks.fuzz.run import run_part
from coview import InputError


@pytest.mark.parametrize(("part", "n_cases"), [("estimators", 100), ("files", 50), ("models", 100)])
def test_there_are_no_findings(tmp_path, part, n_cases):
    pytest.importorskip("h5py")
    pytest.importorskip("pyarrow")
    pytest.importorskip("polars")
    rows = run_part(part, seed=1, n_cases=n_cases, out=tmp_path, seconds=300)
    assert len(rows) == n_cases
    assert [row for row in rows if row["finding"]] == []
    assert {row["result"] for row in rows} == {"answered", "refused"}


@pytest.mark.filterwarnings("ignore:found . distinct clusters:sklearn.exceptions.ConvergenceWarning")
def test_random_problems_have_the_results_of_the_reference_implementation(tmp_path):
    rows = run_part("numerics", seed=1, n_cases=15, out=tmp_path, seconds=300)
    assert [row for row in rows if row["finding"]] == []
    assert sum(row["result"] == "same labels" for row in rows) > 10


def test_a_run_continues_where_it_was_interrupted(tmp_path):
    first = run_part("models", seed=2, n_cases=5, out=tmp_path, seconds=60)
    all_of_them = run_part("models", seed=2, n_cases=9, out=tmp_path, seconds=60)
    assert all_of_them[:5] == first
    assert [row["number"] for row in all_of_them] == [*range(9)]
    assert len((tmp_path / "models-2.jsonl").read_text().splitlines()) == 9
    (alone,) = run_part("models", seed=2, n_cases=9, out=tmp_path, seconds=60, only=7)
    assert alone["words"] == all_of_them[7]["words"]
    assert json.loads((tmp_path / "models-2.jsonl").read_text().splitlines()[7])["result"] == alone["result"]


def raising(error):
    def call():
        raise error

    return call


def test_documented_errors_are_right():
    assert answer_or_documented_error(lambda: 3) == "answered"
    assert answer_or_documented_error(raising(InputError("view 'a' is empty; give samples"))) == "refused"
    assert answer_or_documented_error(raising(MemoryError("needs 3 GiB"))) == "refused"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (raising(KeyError("x")), "KeyError: 'x'"),
        (raising(InputError("two\nlines of a message")), "a message of 22 characters"),
        (raising(MemoryError()), "without figures"),
        (raising(Finding("found")), "found"),
        (lambda: warnings.warn("overflow", RuntimeWarning, stacklevel=1), "RuntimeWarning: overflow"),
    ],
)
def test_what_breaks_the_rules_is_a_finding(call, message):
    outcome = outcome_of(Case("a case", lambda: answer_or_documented_error(call)), 60)
    assert outcome.result == "finding"
    assert message in outcome.finding


def test_a_case_that_takes_too_long_is_a_finding(monkeypatch):
    ticks = iter([0.0, 21.5])
    monkeypatch.setattr(rules.time, "perf_counter", lambda: next(ticks))
    assert outcome_of(Case("a case", lambda: "answered"), 20).finding == "took 21.5 seconds"


def run_in_a_process(*words):
    """In a process of its own, because this one may have threads, and commands are forked."""
    run = [sys.executable, "-m", "benchmarks.fuzz.run", *map(str, words)]
    done = subprocess.run(run, capture_output=True, text=True, cwd=Path(__file__).parents[2], timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_commands_that_are_killed_or_fail_leave_all_of_one_run(tmp_path):
    """Four kills, a limit of the file size, a small file system, a read-only folder, and two writers."""
    printed = run_in_a_process("--part", "faults", "--part", "environment", "--cases", 4, "--out", tmp_path)
    assert "| faults | 4 |" in printed
    assert "| environment | 4 |" in printed


def test_a_case_that_hangs_is_interrupted():
    started = time.perf_counter()
    outcome = outcome_of(Case("a case", lambda: time.sleep(60) or "answered"), 0.05)
    assert outcome.finding == "no answer in 0.1 seconds"
    assert time.perf_counter() - started < 50


def test_processes_share_the_cases_of_a_part(tmp_path):
    run_in_a_process("--part", "models", "--cases", 7, "--seed", 2, "--out", tmp_path)
    rows = [json.loads(line) for line in (tmp_path / "models-2.jsonl").read_text().splitlines()]
    assert sorted(row["number"] for row in rows) == [*range(7)]
