"""Progress of long work: a function of the stage, or a bar on standard error.

Inside a bar, methods without a parameter `progress` show their iterations: `with progress_bar(): model.fit(views)`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Timer
from typing import Any, TypeAlias

from coview.base.text import visible
from coview.errors import InputError

Progress: TypeAlias = Callable[[str, int, int], object]  # called with stage, done, total
ProgressParameter: TypeAlias = Progress | bool | None
_iterations: ContextVar[Callable[[int, int], object] | None] = ContextVar("iterations", default=None)


@contextmanager
def reporting(progress: Any) -> Iterator[Progress]:
    """Yield the function that reports stages: the given one, one that shows a bar (True), or none (False, None)."""
    if progress is None or progress is False:
        yield lambda stage, done, total: None
    elif progress is True:
        with progress_bar() as report:
            yield report
    elif callable(progress):
        yield progress
    else:
        raise InputError(
            f"progress={progress!r}: expected True for a bar, False, or a function that is called with the name of the "
            "stage, the number done and the total"
        )


def report_iteration(done: int, most: int) -> None:
    """Show the number of iterations in the bar of the current thread, if there is one."""
    show = _iterations.get()
    if show is not None:
        show(done, most)


@contextmanager
def progress_bar(delay: float = 0.0, *, remove: bool = False) -> Iterator[Progress]:
    """Show a bar on standard error if the work takes longer than the delay in seconds; `remove` it at the end."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    columns = TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    # In a notebook rich needs another package, but a bar of one line can be drawn as in a terminal.
    console = Console(stderr=True, force_jupyter=False, force_terminal=Console().is_jupyter or None)
    bars = Bars(*columns, console=console, transient=remove)
    task = bars.add_task("starting", total=None)
    timer = Timer(delay, bars.start)
    timer.daemon = True
    timer.start()
    if delay == 0:
        timer.join()
    current = ""

    def report(stage: str, done: int, total: int) -> None:
        nonlocal current
        current = f"{visible(stage)}: "
        bars.update(task, description=visible(stage), completed=done, total=total)

    def iterate(done: int, most: int) -> None:
        bars.update(task, description=f"{current}iterations", completed=done, total=most)

    outer = _iterations.set(iterate)
    try:
        yield report
    finally:
        _iterations.reset(outer)
        timer.cancel()
        timer.join()
        bars.stop()
