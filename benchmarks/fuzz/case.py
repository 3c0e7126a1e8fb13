"""Cases and findings: what every part of the fuzz tests has in common.

A part is a module with `cases(seed, folder)`, which yields an endless sequence of `Case`s that depend on the seed only,
and an entry in `PARTS` of `benchmarks.fuzz.run`. Each case has its own number, so that a finding can be repeated alone
and an interrupted run continues.
"""

from __future__ import annotations

import faulthandler
import signal
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from coview import InputError


@dataclass(frozen=True)
class Case:
    """One case: words that describe it, and a function that raises an error if it finds something."""

    words: str
    run: Callable[[], str]  # returns the outcome in a word, such as "read" or "refused"


@dataclass(frozen=True)
class Outcome:
    """What a case did; `finding` is empty unless it broke the rules."""

    words: str
    result: str
    seconds: float
    finding: str = ""


class Finding(AssertionError):  # noqa: N818 - the word of the reports
    """A case that broke the rules."""


def answer_or_documented_error(call: Callable[[], object]) -> str:
    """Call a function; the answer, or an InputError of one line, is right, and anything else is a finding."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        try:
            call()
        except InputError as error:
            message = str(error)
            if "\n" in message or not 10 <= len(message) <= 2100:
                raise Finding(f"a message of {len(message)} characters: {message[:100]!r}") from None
            return "refused"
        except MemoryError as error:
            if "GiB" not in str(error):
                raise Finding(f"a MemoryError without figures: {error}") from None
            return "refused"
    return "answered"


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Interrupt a case that hangs; if it hangs outside Python, end the process with the tracebacks of its threads."""

    def interrupt(number: int, frame: object) -> None:
        raise Finding(f"no answer in {seconds:g} seconds")

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    faulthandler.dump_traceback_later(2 * seconds + 60, exit=True)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def outcome_of(case: Case, seconds: float) -> Outcome:
    """Run a case; an error of any other type and a case that takes longer than the limit are findings."""
    start = time.perf_counter()
    try:
        with time_limit(2 * seconds):
            result, finding = case.run(), ""
    except Finding as found:
        result, finding = "finding", str(found)
    except Exception as error:
        result, finding = "finding", f"{type(error).__name__}: {error}"
    took = time.perf_counter() - start
    if took > seconds and not finding:
        result, finding = "finding", f"took {took:.1f} seconds"
    return Outcome(case.words, result, took, finding[:300])
