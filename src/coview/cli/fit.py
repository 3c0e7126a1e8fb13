"""`coview fit` and `coview demo`: from views to a folder of results; `coview report` draws it again."""

from __future__ import annotations

import shlex
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated

import typer

from coview.cli import options
from coview.cli.folder import check_folder
from coview.cli.inputs import read, read_truth, require_writer
from coview.cli.run import RUN_FILES, brief, run
from coview.cli.settings import METHOD_NAMES, Settings, chosen, view_files
from coview.cli.terminal import Terminal
from coview.errors import InputError

if TYPE_CHECKING:
    from coview.summary import Summary


def fit(
    context: typer.Context,
    view: options.ViewFiles,
    n_clusters: Annotated[
        int | None,
        typer.Option(
            "-k",
            "--n-clusters",
            min=2,
            help="How many clusters to find; only comic finds the number by itself. For example -k 6",
            rich_help_panel=options.MODEL,
        ),
    ] = None,
    method: options.Method = "tmvkscr",
    kernel: Annotated[
        list[str] | None,
        typer.Option(
            "--kernel",
            metavar="KERNEL",
            help="How similar two samples are: rbf, linear, poly, normpoly, cosine or precomputed, with its parameters "
            "if you like, and for one view with its name in front; views without one get rbf. "
            "For example --kernel rbf:sigma2=0.5, or --kernel text=normpoly:degree=2,offset=1",
            rich_help_panel=options.MODEL,
        ),
    ] = None,
    rho: Annotated[
        float | None,
        typer.Option(
            help="tmvkscr: the balance between what each view says (1) and what all views say together (0). "
            "For example --rho 0.5",
            rich_help_panel=options.MODEL,
        ),
    ] = None,
    kappa: Annotated[
        list[str] | None,
        typer.Option(
            "--kappa",
            metavar="VIEW=WEIGHT",
            help="tmvkscr: the weight of a view in the sum; views without one get 1. "
            "For example --kappa text=2 --kappa image=1",
            rich_help_panel=options.MODEL,
        ),
    ] = None,
    assigner: Annotated[
        str | None,
        typer.Option(
            metavar="directions|codebook",
            help="How scores become clusters. For example --assigner codebook",
            autocompletion=options.completing(("directions", "codebook")),
            rich_help_panel=options.MODEL,
        ),
    ] = None,
    n_train: Annotated[
        str | None,
        typer.Option(
            "--n-train",
            metavar="COUNT|SHARE|auto",
            help="Train on some of the samples and label all: for more than some 20,000. "
            "For example --n-train 2000, --n-train 0.1 or --n-train auto",
            rich_help_panel=options.MODEL,
        ),
    ] = None,
    select: Annotated[
        str | None,
        typer.Option(
            metavar="uniform|entropy|anchors",
            help="Which samples to train on, with --n-train. For example --select anchors",
            autocompletion=options.completing(("uniform", "entropy", "anchors")),
            rich_help_panel=options.MODEL,
        ),
    ] = None,
    scale: options.Scale = None,
    seed: options.Seed = 0,
    ids: options.Ids = None,
    align: options.Align = "strict",
    categories: options.Categories = "refuse",
    truth: options.TruthFile = None,
    output: options.Run = Path("coview-run"),
    labels_format: Annotated[
        str,
        typer.Option(
            metavar="csv|parquet",
            help="How to write the labels. For example --labels-format parquet",
            autocompletion=options.completing(("csv", "parquet")),
            rich_help_panel=options.OUTPUT,
        ),
    ] = "csv",
    draw: Annotated[
        bool,
        typer.Option("--report/--no-report", help="Write report.html as well.", rich_help_panel=options.OUTPUT),
    ] = True,
    force: options.Force = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Find the clusters of samples that several files describe.

    Writes a folder with the model, the labels, the numbers (summary.json) and a report to look at (report.html).

    Example: coview fit --view text=text.parquet --view image=image.npy -k 6 -o run
    """
    terminal = Terminal(as_json, quiet)
    files = view_files(view)
    settings = Settings(
        chosen("--method", method.lower(), METHOD_NAMES),
        n_clusters,
        tuple(kernel or ()),
        rho,
        tuple(kappa or ()),
        assigner,
        n_train,
        select,
        tuple(scale or ()),
        seed,
    )
    chosen("--labels-format", labels_format, ("csv", "parquet"))
    require_writer(f".{labels_format}")
    estimator, notes = settings.estimator(tuple(files))
    check_folder(output, RUN_FILES, force=force)
    for note in notes:
        terminal.note(note)
    with terminal.working() as progress:
        progress("reading the files", 0, 4)
        start = perf_counter()
        loaded = read(files, ids=ids, align=align, categories=categories)
        classes = read_truth(truth, loaded, ids)
        for note in loaded.notes:
            terminal.note(note)
        summary, written = run(
            estimator,
            loaded.views,
            output,
            terminal,
            progress,
            ids=loaded.ids,
            ids_name=ids,
            truth=classes,
            labels_name=f"labels.{labels_format}",
            draw=draw,
            command=shlex.join(context.obj),
            seconds={"read": perf_counter() - start},
        )
    _tell(terminal, summary)
    terminal.say(f"Written to {output}/: {', '.join(written)}")
    terminal.answer({**brief(summary), "output": str(output), "files": written})


def demo(
    context: typer.Context,
    output: options.Run = Path("demo-run"),
    as_json: options.Json = False,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Cluster three views of handwritten digits.

    The clusters are compared with the digits that people wrote.

    Replaces what an earlier demonstration has written.

    Example: coview demo -o demo-run
    """
    check_folder(output, RUN_FILES, force=True)
    terminal = Terminal(as_json, quiet)
    with terminal.working() as progress:
        from coview.datasets import digits_views
        from coview.methods.tmvkscr import TMvKSCR

        progress("reading the digits", 0, 4)
        views, digits = digits_views()
        # Everything as a newcomer would leave it: the digits play no part in the fit or in these settings.
        summary, written = run(
            TMvKSCR(n_clusters=10, random_state=0),
            views,
            output,
            terminal,
            progress,
            truth=tuple(map(str, digits.tolist())),
            command=shlex.join(context.obj),
        )
    rows = []
    for cluster in summary.clusters:
        digit, count = next(iter((cluster.classes or {}).items()))
        rows.append((str(cluster.label), str(cluster.size), digit, f"{count / cluster.size:.0%}"))
    terminal.table("Clusters", ("cluster", "samples", "mostly the digit", "share"), rows)
    pairs = zip(summary.eigenvalues or (), summary.explained_variance_ratio or (), strict=False)
    terminal.table(
        "Shared latent space",
        ("component", "eigenvalue", "explained variance"),
        [(str(i), f"{value:.4f}", f"{share:.1%}") for i, (value, share) in enumerate(pairs, start=1)],
    )
    names = ", ".join(view.name for view in summary.views)
    terminal.say(f"{summary.n_samples} handwritten digits, views: {names}; fitted in {summary.seconds['fit']:.2f} s")
    if summary.truth is not None:
        terminal.say(
            f"Against the known digits: ARI {summary.truth.ari:.3f}, NMI {summary.truth.nmi:.3f} (1 is perfect)"
        )
    terminal.say(f"Written to {output}/: {', '.join(written)}")
    terminal.answer({**brief(summary), "output": str(output), "files": written})


def report(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="The folder that coview fit has written, such as run/")],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Where to write it, instead of report.html in the folder. For example -o results.html",
            rich_help_panel=options.OUTPUT,
        ),
    ] = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Draw the report of a run again, from its summary.json.

    Example: coview report run
    """
    from coview.report import write_report
    from coview.summary import Summary

    terminal = Terminal(as_json, quiet)
    source = folder / "summary.json" if folder.is_dir() else folder
    target = source.with_name("report.html") if output is None else output
    if not target.parent.is_dir() or target.is_dir():
        raise InputError(f"{target} cannot be written: its folder must exist, and it must not be a folder itself")
    try:
        text = source.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise InputError(f"{source} is no text; give the folder that coview fit has written") from None
    except OSError as error:
        raise InputError(
            f"{source} cannot be read ({error.strerror}); give the folder that coview fit has written"
        ) from None
    try:
        summary = Summary.from_json(text)
    except InputError as error:
        raise InputError(f"{source}: {error}") from None
    with terminal.working() as progress:
        progress("drawing the report", 0, 1)
        write_report(summary, target)
    terminal.say(f"Written: {target}")
    terminal.answer({"files": [str(target)]})


def _tell(terminal: Terminal, summary: Summary) -> None:
    """Show the clusters and what sets them apart."""
    rows = []
    for cluster in summary.clusters:
        special = ", ".join(
            f"{feature.view}/{feature.name} {'high' if feature.effect > 0 else 'low'}"
            for feature in cluster.features[:2]
        )
        mostly = next(iter(cluster.classes), "") if cluster.classes else None
        rows.append((str(cluster.label), str(cluster.size), f"{cluster.share:.0%}", special, mostly))
    headings = ("cluster", "samples", "share", "what sets it apart", "mostly")
    width = 5 if summary.truth is not None else 4
    terminal.table("Clusters", headings[:width], [tuple(str(cell or "") for cell in row[:width]) for row in rows])
    agreed = {view.name: view.agreement for view in summary.views if view.agreement is not None}
    if len(agreed) > 1:
        by_view = ", ".join(f"{name} {value:.2f}" for name, value in agreed.items())
        terminal.say(f"How far each view by itself agrees with the clusters (1 is fully): {by_view}")
    if summary.truth is not None:
        terminal.say(
            f"Against the known classes: ARI {summary.truth.ari:.3f}, NMI {summary.truth.nmi:.3f} (1 is perfect)"
        )
    views = "1 view" if len(summary.views) == 1 else f"{len(summary.views)} views"
    terminal.say(f"{summary.n_samples} samples, {views}; fitted in {summary.seconds['fit']:.2f} s")
