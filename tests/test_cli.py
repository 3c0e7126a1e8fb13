"""The command as a whole: the real console script from end to end, and its help."""

import csv
import re
import signal
import subprocess
import sys
from pathlib import Path
from resource import RLIMIT_FSIZE, RUSAGE_CHILDREN, getrusage, setrlimit

import numpy as np
import pytest

import coview
from coview import Coview
from coview.cli import app, main
from coview.cli.run import RUN_FILES
from coview.io import read_labels
from coview.persist import load
from tests.bad_files import BAD_FILES
from tests.cli.running import ONE_THREAD, SCRIPT, call, script, split_blobs


def test_three_files_to_labels_of_new_files_through_the_console_script(tmp_path):
    pytest.importorskip("pyarrow", reason="tables need pyarrow: pip install 'coview[io]'")
    data = split_blobs(tmp_path)
    run = tmp_path / "run"
    truth = f"{data['folder']}/train/truth.csv::kind"
    first = script("fit", *data["train_files"], "--ids", "id", "-k", 3, "--truth", truth, "-o", run)
    assert first.returncode == 0, first.stderr
    assert "ARI 1.000, NMI 1.000" in first.stdout
    assert {path.name for path in run.iterdir()} == set(RUN_FILES) - {"labels.parquet", "labels.parquet-metadata.json"}
    second = script("predict", run / "model.safetensors", *data["new_files"], "--ids", "id", "-o", tmp_path / "new.csv")
    assert second.returncode == 0, second.stderr

    model = Coview(3, random_state=0).fit(data["train"])
    expected = dict(zip(data["new_names"], model.predict(data["new"]).tolist(), strict=True))
    with (tmp_path / "new.csv").open() as file:
        assert {row["id"]: int(row["cluster"]) for row in csv.DictReader(file)} == expected
    assert read_labels(run / "labels.csv", column="cluster") == tuple(map(str, model.labels_.tolist()))
    np.testing.assert_array_equal(load(run / "model.safetensors").predict(data["new"]), list(expected.values()))


def test_a_missing_file_through_the_console_script(tmp_path):
    found = script("fit", "--view", f"a={tmp_path}/missing.csv", "-k", 3, "-o", tmp_path / "run")
    assert found.returncode == 2
    assert found.stderr.count("\n") == 1
    assert "view 'a'" in found.stderr
    assert "missing.csv" in found.stderr
    assert not list(tmp_path.iterdir())


def test_the_shell_completes_names_of_methods():
    words = {"_COVIEW_COMPLETE": "complete_bash", "COMP_WORDS": "coview fit --method c", "COMP_CWORD": "3"}
    found = subprocess.run([SCRIPT], capture_output=True, text=True, env={**ONE_THREAD, **words}, timeout=60)
    assert found.stdout.split() == ["coview", "coreg", "comic"]


def test_help_costs_little_more_than_typer_itself():
    """The least processor time of a few runs, which depends little on other work of the machine; typer: 0.1 s."""
    processes = {"help": [SCRIPT, "--help"], "typer": [sys.executable, "-c", "import typer"]}
    best = dict.fromkeys(processes, float("inf"))
    for _ in range(6):
        for name, command in processes.items():
            before = getrusage(RUSAGE_CHILDREN)
            subprocess.run(command, capture_output=True, check=True, env=ONE_THREAD)
            after = getrusage(RUSAGE_CHILDREN)
            work = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            best[name] = min(best[name], work)
    assert best["help"] <= 3 * best["typer"], best


def test_the_console_script_runs():
    found = script("--version")
    assert (found.returncode, found.stdout, found.stderr) == (0, f"coview {coview.__version__}\n", "")


def test_characters_that_the_terminal_cannot_show_are_replaced():
    command = [SCRIPT, "methods"]
    found = subprocess.run(command, capture_output=True, env={**ONE_THREAD, "PYTHONIOENCODING": "ascii"}, timeout=60)
    assert found.returncode == 0
    assert b"n?" in found.stdout


@pytest.mark.parametrize("name", list(BAD_FILES)[::20])
def test_some_bad_files_through_the_console_script(name, tmp_path):
    case = BAD_FILES[name]
    if case.needs is not None:
        pytest.importorskip(case.needs)
    views = [f"--view={view}={file}" for view, file in case.sources(tmp_path).items()]
    before = sorted(tmp_path.iterdir())
    choices = [f"--{option}={value}" for option, value in case.options.items()]
    found = script("compare", *views, *choices, "-k2", "-o", tmp_path / "found")
    assert found.returncode == 2
    assert (found.stdout, found.stderr.count("\n")) == ("", 1)
    assert "view 'bad'" in found.stderr
    assert sorted(tmp_path.iterdir()) == before


def two_views(folder, n_samples=30):
    """Write two views, and return the options of a quick fit."""
    for i, name in enumerate("ab"):
        x = np.random.default_rng(i).normal(size=(n_samples, 3))
        x[::3] += 8
        np.save(folder / f"{name}.npy", x)
    views = [f"--view={name}={folder / f'{name}.npy'}" for name in "ab"]
    return ["fit", *views, "-k2", "--method=tmvkscr", "--no-report"]


def in_shell(line, *typed):
    """Run the command with redirections, in which "$@" stands for it."""
    shell = ["bash", "-c", f"set -o pipefail; {line}", "bash", SCRIPT, *map(str, typed)]
    return subprocess.run(shell, capture_output=True, text=True, env=ONE_THREAD, timeout=120)


@pytest.mark.parametrize(
    ("line", "options", "note"),
    [
        ('"$@" 2>&-', [], None),
        ('"$@" <&- >&- 2>&-', [], None),
        ('"$@" >&-', ["--json"], None),
        ('"$@" 2>/dev/full', [], None),
        ('"$@" | true', [], None),
        ('"$@" >/dev/full', [], "Note: standard output: No space left on device\n"),
        ('"$@" >/dev/full', ["--json"], "Note: standard output: No space left on device\n"),
    ],
)
def test_a_fit_succeeds_if_its_results_are_written_although_it_cannot_print(tmp_path, line, options, note):
    found = in_shell(line, *two_views(tmp_path), *options, "-o", tmp_path / "run")
    assert found.returncode == 0, found.stderr
    assert {path.name for path in (tmp_path / "run").iterdir()} >= {"labels.csv", "model.safetensors", "summary.json"}
    assert "Error" not in found.stderr
    assert note is None or found.stderr.endswith(note)


@pytest.mark.parametrize("typed", [["methods"], ["--version"], ["--help"], ["fit", "-h"], []])
def test_commands_that_only_print_fail_if_they_cannot(typed):
    found = in_shell('"$@" >/dev/full', *typed)
    assert (found.returncode, found.stderr) == (1, "Error: standard output: No space left on device\n")
    assert in_shell('"$@" | true', *typed).returncode == 1


@pytest.mark.parametrize("line", ['"$@" 2>&-', '"$@" 2>/dev/full'])
def test_bad_input_has_its_exit_code_without_a_standard_error(tmp_path, line):
    assert in_shell(line, "fit", f"--view=a={tmp_path / 'missing.csv'}", "-k2").returncode == 2


@pytest.mark.parametrize("name", ["labels.csv", "model.safetensors", "report.html"])
def test_a_full_disk_has_one_exit_code_and_names_the_file(tmp_path, name):
    """A limit of the size of files has the same effect as a full disk: labels are about 1 kB, models 10 kB."""
    command = [*two_views(tmp_path), "--report"]
    size = {"labels.csv": 500, "model.safetensors": 2_000, "report.html": 200_000}[name]
    found = subprocess.run(
        [SCRIPT, *command, "-o", tmp_path / "run"],
        capture_output=True,
        text=True,
        env={**ONE_THREAD, "PYTHONDONTWRITEBYTECODE": "1"},
        timeout=120,
        preexec_fn=lambda: setrlimit(RLIMIT_FSIZE, (size, size)),
    )
    assert (found.returncode, found.stderr) == (1, f"Error: {tmp_path}/run/{name}: File too large\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.npy", "b.npy"]


def test_usage_errors_name_the_help(capsys):
    assert call(capsys, "fit", "--no-such-option")[2].endswith("--no-such-option. See coview fit --help\n")
    assert call(capsys, "fit")[2] == "Error: Missing option '--view'. See coview fit --help\n"
    for typed in (["dmo"], ["fit", "--kernal=rbf"], ["fit", "--view"], ["fit", "--seed=x"], ["info"]):
        assert re.search(r"[^.?][.?] See coview( \w+)? --help\n$", call(capsys, *typed)[2]), typed


def test_version_and_help(capsys):
    assert call(capsys, "--version") == (0, f"coview {coview.__version__}\n", "")
    assert call(capsys)[:2] == call(capsys, "--help")[:2]


def commands():
    from typer.main import get_command

    return get_command(app).commands


@pytest.mark.parametrize("name", ["fit", "predict", "report", "compare", "info", "methods", "demo"])
def test_every_option_is_explained_and_has_an_example(name, capsys):
    command = commands()[name]
    assert f"Example: coview {name}" in command.help
    for option in command.params:
        assert option.help, option.name
        flag = getattr(option, "is_flag", False) or option.param_type_name == "argument"
        example = any(f"{spelling} " in option.help.split("For example", 1)[-1] for spelling in option.opts)
        assert flag or ("For example" in option.help and example), option.name
    code, out, _ = call(capsys, name, "--help")
    assert code == 0
    assert "Example" in out


@pytest.mark.parametrize("name", ["fit", "predict", "report", "compare", "info", "methods", "demo"])
def test_the_documentation_lists_every_option(name):
    page = (Path(__file__).parents[1] / "docs" / "command.md").read_text()
    assert f"`coview {name}`" in page
    options = [option for option in commands()[name].params if option.param_type_name == "option"]
    missing = [o.name for o in options if not any(word in page for word in (*o.opts, *o.secondary_opts))]
    assert not missing


def test_there_are_no_other_commands():
    assert sorted(commands()) == ["compare", "demo", "fit", "info", "methods", "predict", "report"]


def test_the_commands_can_be_called_from_python():
    from typer.main import get_command

    assert get_command(app).main(["methods", "--quiet"], standalone_mode=False) is None


def test_an_interrupt_during_the_imports_shows_no_traceback():
    """The import of typer is replaced by one that sends Ctrl-C to its own process."""
    code = (
        "import os, signal, sys\n"
        "class Interrupting:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'typer':\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Interrupting())\n"
        "from coview.cli import main\n"
        "main()\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert run.returncode == -signal.SIGINT
    assert run.stderr == ""


def test_an_interrupt_before_the_options_are_read_shows_no_traceback(monkeypatch, capsys):
    def interrupted():
        raise KeyboardInterrupt

    monkeypatch.setattr("coview.cli.commands.app", interrupted)
    handler = signal.getsignal(signal.SIGTERM)
    with pytest.raises(SystemExit, match="130"):
        main()
    signal.signal(signal.SIGTERM, handler)
    assert capsys.readouterr().err == "Stopped.\n"
