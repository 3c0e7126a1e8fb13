"""Options and groups of options."""

from dataclasses import dataclass, field
from typing import Annotated

import typer
from typer.testing import CliRunner

from coview import KSC, METHODS
from coview.cli.commands import expand_groups
from coview.cli.estimator import ModelOptions
from coview.cli.options import option
from coview.registry import Entry
from tests.cli.running import call


@dataclass(frozen=True)
class Group:
    size: Annotated[int, option("Panel", "--size -s COUNT", "Help.", values=("1", "2"))]
    name: Annotated[str, option("Panel", "--name", "Help.", values=lambda: ("one", "two"))] = "one"
    internal: list[str] = field(default_factory=list)


def test_the_annotated_fields_of_a_group_are_options_of_the_command():
    received = []

    def command(group: Group, flag: Annotated[bool, option("Panel", "--flag", "Help.")] = False) -> None:
        received.append((group, flag))

    app = typer.Typer()
    app.command()(expand_groups(command))
    assert CliRunner().invoke(app, ["-s", "3", "--flag"]).exit_code == 0
    assert CliRunner().invoke(app, ["--size=4", "--name=two"]).exit_code == 0
    assert received == [(Group(3), True), (Group(4, "two"), False)]
    assert CliRunner().invoke(app, ["--name=two"]).exit_code == 2  # --size is required
    assert CliRunner().invoke(app, ["-s3", "--internal=x"]).exit_code == 2


def test_values_are_completed_and_listed():
    size = option("Panel", "--size", "Help.", ("10", "12", "20"))
    assert size.metavar == "10|12|20"
    assert size.autocompletion("1") == ["10", "12"]
    named = option("Panel", "--size -s COUNT", "Help.")
    assert (named.metavar, named.autocompletion) == ("COUNT", None)


def test_a_registered_method_is_known_to_the_command(monkeypatch):
    monkeypatch.setitem(METHODS.entries, "made_up", Entry("coview.methods.ksc:KSC", "a method"))
    estimator, _ = ModelOptions("made_up", "3", preprocess=("none",)).estimator(("text",))
    assert isinstance(estimator, KSC)


def test_help_says_that_coview_is_the_default_method_and_selects_the_number(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    code, out, _ = call(capsys, "fit", "--help")
    assert code == 0
    assert "The default method, coview, is the consensus of many clusterings." in out
    assert "Without -k it selects the number of clusters." in out
    assert "[default: coview]" in out
    assert "Example: coview fit --view text=text.parquet --view image=image.npy -o run" in out  # without -k
    assert "add --method tmvkscr" in out
