"""All verbs speak alike: the same options for the same things, an example that runs, JSON that scripts can read."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from corank import cli
from helpers.files import files

EXAMPLES = {name: f"corank {verb.example}" for name, verb in cli.VERBS.items()}
NOT_RUN = ("demo", "lab pages", *(name for name in cli.VERBS if name.startswith("serve ")))  # which other tests run
SAME = {
    "output": ["-o", "--output"], "force": ["--force"], "as_json": ["--json"], "seed": ["--seed"], "label": ["--label"],
    "qid": ["--qid"], "unjudged": ["--unjudged"], "number": ["--number", "-n"],
    "id_column": ["--id"],
}  # fmt: skip


def command_of(name):
    """The command with a full name, such as ``screen replay``."""
    command = typer.main.get_command(cli.app)
    for word in name.split():
        command = command.commands[word]
    return command


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(files(tmp_path))
    monkeypatch.setenv("CORANK_DATA", str(tmp_path / "nowhere"))
    return tmp_path


@pytest.mark.parametrize("verb", cli.VERBS)
def test_the_same_thing_has_the_same_option(verb):
    for parameter in command_of(verb).params:
        if parameter.name in SAME and parameter.param_type_name == "option":
            assert sorted({*parameter.opts} - {"--n"}) == sorted(SAME[parameter.name]), parameter.name
            if parameter.name == "seed":  # None: that of the project
                assert parameter.default in ((0, None) if verb.startswith("screen ") else (0,))


@pytest.mark.parametrize("verb", cli.VERBS)
def test_help_ends_with_an_example_on_one_line_of_80_columns(verb):
    said = CliRunner().invoke(cli.app, [*verb.split(), "--help"], terminal_width=80)
    assert said.exit_code == 0
    assert said.output.rstrip().splitlines()[-1].strip() == EXAMPLES[verb]
    assert max(map(len, said.output.splitlines())) <= 80


@pytest.mark.parametrize(
    "verb", [pytest.param(verb, marks=[pytest.mark.long] if verb in ("prefer", "compare") else []) for verb in EXAMPLES]
)
def test_the_example_runs(verb, here, says):
    if verb in NOT_RUN:
        pytest.skip("run by other tests")
    corank, *words = shlex.split(EXAMPLES[verb])
    assert corank == "corank"
    assert " ".join(words).startswith(verb.removesuffix(" read"))
    for word in ("model.safetensors", "scores.txt", "articles.index", "links.safetensors"):
        if "--output" in words and words[words.index("--output") + 1] == word:
            (here / word).unlink()
    says(*words)


@pytest.mark.parametrize(
    "words",
    [
        "fit train.txt -m crr --unjudged -1 -o m",
        "rank model.safetensors test.txt -o s",
        "evaluate test.txt scores.txt",
        "suggest model.safetensors train.txt --unjudged -1",
        pytest.param(
            "compare train.txt --unjudged -1 --models spd --folds 2 --no-curve --jobs 1 -o study",
            marks=pytest.mark.long,
        ),
        "explain model.safetensors test.txt --pair 1 2",
        "learn-clicks rows.csv clicks.csv --bias 1 -o m",
        "replay shown.csv --model model.safetensors --rows rows.csv --bias 1",
        "screen replay records.csv --starts 1",
        "screen report reviewed.csv",
        "index articles -o i",
        "search articles.index pump",
        "search articles.index pump -o run",
        "learn-links articles.index links.tsv --steps 2 -o m",
        "convert test.txt c.store",
        "export model.safetensors --to solr -o m.json",
    ],
)
def test_json_is_one_object_that_names_its_verb(words, here, says):
    def refuse(constant):
        raise AssertionError(constant)

    said = json.loads(says(*words.split(), "--json"), parse_constant=refuse)
    assert f"{words} ".startswith(said["verb"] + " ")
    assert re.fullmatch(r"\d+\.\d+.*", said["corank"])
    assert len(said) > 2


def test_completion_is_offered_for_shells():
    # the shell is named, and not looked for among the processes above, where under make stands another
    environment = {**os.environ, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    words = [sys.executable, "-m", "corank", "--show-completion", "bash"]
    said = subprocess.run(words, capture_output=True, text=True, check=True, env=environment)
    assert "complete -o default -F _corank_completion corank" in said.stdout


def test_the_guide_lists_fields_of_commands_that_exist():
    page = (Path(__file__).parents[3] / "docs/guide/command-line.md").read_text(encoding="utf-8")
    fields = page.partition("| command | fields |")[2].partition("\n\n")[0]
    named = {row.split("`")[1].partition(" -")[0] for row in fields.splitlines() if row.startswith("| `")}
    assert named <= set(EXAMPLES)


@pytest.mark.parametrize("page", ["README.md", "docs"])
def test_pages_name_only_commands_that_exist(page):
    root = Path(__file__).parents[3] / page
    for path in [root] if root.is_file() else sorted(root.rglob("*.md")):
        text = path.read_text(encoding="utf-8")
        blocks = "\n".join(re.findall(r"^```\w*\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL))
        named = {*re.findall(r"`corank ([a-z][a-z-]*)[ `]", text)}
        named |= {*re.findall(r"(?:^|[|;] *)corank ([a-z][a-z-]*)", blocks, flags=re.MULTILINE)}
        assert named <= {*(name.split()[0] for name in EXAMPLES), "train", "predict", "ask"}, path
