"""What the library says of its parameters, as the command line says it."""

from __future__ import annotations

import re
import sys

import pytest
import typer

from corank import cli
from corank.cli.messages import replace_assignments, translate_message
from corank.errors import InputError

COMMAND = typer.main.get_command(cli.app)


@pytest.mark.parametrize(
    ("verb", "said", "translated"),
    [
        ("fit", "name it as y=, qid= or docid=.", "name it as --label, --qid or --id."),
        ("fit", "y='a b' names a column; leave it out.", "--label 'a b' names a column; leave it out."),
        ("fit", "or set coupling=0.", "or pass --coupling 0."),
        ("fit", "set l1=0, or loss='squared'.", "pass --set l1=0, or --loss squared."),
        ("fit", "use alpha=1e-3 or n_steps=10, scale=False", "use --alpha 1e-3 or --iterations 10, --set scale=False"),
        ("fit", "alpha is -1.0; pass a number of at least 0.", "--alpha is -1.0; pass a number of at least 0."),
        ("fit", "tol is -1.0; pass a number.", "tol is -1.0; pass a number."),
        ("fit", "unjudged is 'x'; pass 'auto'.", "unjudged is 'x'; pass 'auto'."),
        ("fuse", "unjudged is 'x'; pass 'auto'.", "--unjudged is 'x'; pass 'auto'."),
        ("fit", "y is a word; pass numbers.", "y is a word; pass numbers."),
        ("rank", "name it as y= or set coupling=0.", "name it as --label or set coupling=0."),
        ("fit", "or replace it with overwrite=True.", "or replace it with --force."),
        ("convert", "or replace it with overwrite=True.", "or replace it with --force."),
        ("fit", "read with layout='csr'.", "read with layout='csr'."),
        ("fit", "found 'qid=3' and a/y=2; write --set alpha=1.", "found 'qid=3' and a/y=2; write --set alpha=1."),
        ("demo", "name it as y=.", "name it as y=."),
        ("none", "name it as y=.", "name it as y=."),
        ("screen", "set random_state=1.", "pass --seed 1."),
        ("screen replay", "set random_state=1 or overwrite=True.", "set random_state=1 or --force."),
        ("serve", "name it as y=.", "name it as y=."),
    ],
)  # fmt: skip
def test_assignments_become_options_of_the_verb(verb, said, translated):
    assert translate_message(said, COMMAND, [*verb.split(), "file"]) == translated


@pytest.mark.parametrize("verb", [name for name in COMMAND.commands if name in cli.VERBS])
def test_every_option_it_speaks_of_is_one_of_the_verb(verb):
    typed = {option for parameter in COMMAND.commands[verb].params for option in parameter.opts}
    names = ("y", "qid", "alpha", "n_steps", "rate", "random_state", "unjudged", "dtype", "layout", "loss", "views")
    for name in names:
        for option in re.findall(r"--[a-z-]+", translate_message(f"pass {name}=1.", COMMAND, [verb])):
            assert option in typed


def test_models_are_asked_for_their_parameters_only_where_no_option_fits():
    assert replace_assignments("y=", {"y": "--label"}, lambda: pytest.fail("asked")) == "--label"


USUAL = "label, grade, relevance, rating, y"


def test_main_speaks_of_options(monkeypatch, capsys, tmp_path):
    (tmp_path / "t.csv").write_text("score,qid,f1\n1,a,0.5\n0,a,0.25\n")
    monkeypatch.setattr(sys, "argv", ["corank", "fit", str(tmp_path / "t.csv"), "-m", "spd", "-o", str(tmp_path / "m")])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert stop.value.code == 1
    said = f"corank: {tmp_path / 't.csv'} has no label column ({USUAL}); "
    said += "choose one of 'score', 'qid', 'f1' with --label.\n"
    assert capsys.readouterr().err == said
    with pytest.raises(InputError, match="with y="):
        cli.app(sys.argv[1:], standalone_mode=False)
