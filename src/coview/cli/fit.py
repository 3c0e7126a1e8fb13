"""`coview fit`, `coview tune` and `coview demo`: from views to a folder of results; `coview report` draws it again."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from coview.cli import options
from coview.cli.folder import check_folder
from coview.cli.inputs import Sources
from coview.cli.run import RUN_FILES, Target, brief, run, run_files
from coview.cli.settings import METHOD_NAMES, Search, Settings, chosen, cluster_numbers, view_files
from coview.cli.tell import tell_clusters, tell_search
from coview.cli.terminal import Terminal
from coview.errors import InputError


def fit(
    context: typer.Context,
    view: options.ViewFiles,
    n_clusters: options.Clusters = None,
    method: options.Method = "tmvkscr",
    kernel: Annotated[
        list[str] | None,
        typer.Option(
            "--kernel",
            metavar="KERNEL",
            help="How similar two samples are: rbf, linear, poly, normpoly, cosine, graph or precomputed, with its "
            "parameters if you like, and for one view with its name in front; views without one get rbf. "
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
    n_train: options.NTrain = None,
    select: options.Select = None,
    preprocess: options.Preprocess = None,
    seed: options.Seed = 0,
    ids: options.Ids = None,
    align: options.Align = "strict",
    categories: options.Categories = "refuse",
    truth: options.TruthFile = None,
    output: options.Run = Path("coview-run"),
    labels_format: options.LabelsFormat = "csv",
    draw: options.Draw = True,
    force: options.Force = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Find the clusters of samples that several files describe.

    Writes a folder with the model, the labels, the numbers (summary.json) and a report to look at (report.html).

    Without --kernel, --rho, --kappa, --assigner and --preprocess the settings are selected without labels, in a few
    seconds; coview tune takes more time for it.

    Example: coview fit --view text=text.parquet --view image=image.npy -k 6 -o run
    """
    settings = Settings(
        chosen("--method", method.lower(), METHOD_NAMES),
        cluster_numbers(n_clusters),
        tuple(kernel or ()),
        rho,
        tuple(kappa or ()),
        assigner,
        n_train,
        select,
        tuple(preprocess or ()),
        seed,
    )
    terminal = Terminal(as_json, quiet)
    sources = Sources(view_files(view), ids, align, categories, truth)
    target = Target(output, labels_format, draw, force)
    summary, written = run_files(settings, sources, target, terminal, shlex.join(context.obj))
    tell_clusters(terminal, summary)
    if summary.tuning is not None:
        found = summary.tuning.evaluations[summary.tuning.selected]
        number = "" if isinstance(settings.n_clusters, int) else f"{found.n_clusters} clusters, "
        terminal.say(
            f"The settings were chosen from the data: {number}{found.label}; give --kernel to choose yourself; "
            "coview tune tries more"
        )
    terminal.say(f"Written to {output}/: {', '.join(written)}")
    terminal.answer({**brief(summary), "output": str(output), "files": written})


def tune(
    context: typer.Context,
    view: options.ViewFiles,
    n_clusters: options.Clusters = "auto",
    budget: Annotated[
        str,
        typer.Option(
            metavar="full|small",
            help="How much to try: all candidates on 500 samples and the best half of them on 1500, or all on 400. "
            "For example --budget small",
            autocompletion=options.completing(("full", "small")),
            rich_help_panel=options.MODEL,
        ),
    ] = "full",
    n_train: options.NTrain = None,
    select: options.Select = None,
    seed: options.Seed = 0,
    ids: options.Ids = None,
    align: options.Align = "strict",
    categories: options.Categories = "refuse",
    truth: options.TruthFile = None,
    output: options.Run = Path("coview-run"),
    labels_format: options.LabelsFormat = "csv",
    draw: options.Draw = True,
    force: options.Force = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Choose settings and the number of clusters from the data, and fit.

    Tries ways to prepare the views and to compare samples, without labels, and shows what speaks for each. Writes what
    coview fit writes; all that was tried is in tuning.csv.

    Example: coview tune --view text=text.parquet --view image=image.npy -k 2..8 -o run
    """
    settings = Search(cluster_numbers(n_clusters), budget, n_train, select, seed)
    terminal = Terminal(as_json, quiet)
    sources = Sources(view_files(view), ids, align, categories, truth)
    target = Target(output, labels_format, draw, force)
    summary, written = run_files(settings, sources, target, terminal, shlex.join(context.obj))
    if summary.tuning is not None:
        tell_search(terminal, summary.tuning)
    tell_clusters(terminal, summary)
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
        from coview.tune import Tuned

        progress("reading the digits", 0, 4)
        views, digits = digits_views()
        # Everything as a newcomer would leave it: the digits play no part in the fit or in the choice of settings.
        summary, written = run(
            Tuned(10, random_state=0),
            views,
            output,
            terminal,
            progress,
            truth=tuple(map(str, digits.tolist())),
            command=shlex.join(context.obj),
        )
    if summary.tuning is not None:
        tell_search(terminal, summary.tuning)
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
