"""The command line as a process sees it: sentences on standard error, exit codes."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import time
import warnings

import pytest
import typer
from typer.testing import CliRunner

import corank
from corank import cli
from corank.errors import InputError, MissingExtra


def application(function, monkeypatch):
    """An application of one command, run without words."""
    monkeypatch.setattr(sys, "argv", ["corank"])
    whole = typer.Typer(pretty_exceptions_enable=False)
    whole.command(cls=cli.Command)(function)
    return whole


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (InputError("y is odd; pass numbers."), "corank: y is odd; pass numbers.\n"),
        (MissingExtra("zstandard is not installed; run: pip"), "corank: zstandard is not installed; run: pip\n"),
        (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "a.store"), "corank: a.store: No space left on device.\n"),
        (OSError("odd"), "corank: odd.\n"),
        (
            MemoryError("Unable to allocate 8.00 GiB for an array"),
            "corank: there is not enough memory (Unable to allocate 8.00 GiB for an array); "
            "try fewer rows or features, or a larger machine.\n",
        ),
    ],
)
def test_what_went_wrong_is_one_line_and_exit_code_1(monkeypatch, capsys, error, sentence):
    def fail():
        raise error

    with pytest.raises(SystemExit) as stop:
        cli.main(application(fail, monkeypatch))
    assert stop.value.code == 1
    assert capsys.readouterr().err == sentence


def test_a_command_that_went_well_says_nothing_more(monkeypatch, capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main(application(lambda: None, monkeypatch))
    assert stop.value.code == 0
    assert capsys.readouterr().err == ""


@pytest.mark.filterwarnings("always")
def test_a_warning_is_one_line_too(monkeypatch, capsys):
    shown = warnings.showwarning
    with pytest.raises(SystemExit):
        cli.main(application(lambda: warnings.warn("nothing to agree on; set coupling=0.", stacklevel=1), monkeypatch))
    assert capsys.readouterr().err == "corank: nothing to agree on; set coupling=0.\n"
    assert warnings.showwarning is shown


class Swallows:
    """Python ignores what a destructor raises."""

    def __del__(self):
        raise KeyboardInterrupt


def test_control_c_that_python_swallows_is_sent_again(monkeypatch, capsys):
    def work():
        Swallows()
        for _ in range(60_000):
            time.sleep(0.01)

    whole = application(work, monkeypatch)
    hook = sys.unraisablehook
    with pytest.raises(SystemExit) as stop:
        cli.main(whole)
    assert stop.value.code == 130
    assert capsys.readouterr().err == "corank: interrupted; unfinished output was not written.\n"
    assert sys.unraisablehook is hook


def test_python_m_corank_is_the_command():
    said = subprocess.run([sys.executable, "-m", "corank", "--version"], capture_output=True, text=True, check=True)
    assert said.stdout == f"corank {corank.__version__}\n"


@pytest.mark.parametrize("verb", ["fit", "evaluate", "demo"])
def test_a_seed_below_zero_is_refused_by_the_option(verb):
    words = {"fit": ["a", "-m", "spd", "-o", "c"], "evaluate": ["a", "b"]}.get(verb, [])
    said = CliRunner().invoke(cli.app, [verb, "--seed", "-1", *words])
    assert said.exit_code == 2
    assert "--seed" in said.output


@pytest.mark.parametrize("words", [("demo",)])
def test_a_file_is_no_folder_for_output(tmp_path, words):
    (tmp_path / "file").touch()
    said = CliRunner().invoke(cli.app, [*words, "--output", str(tmp_path / "file")])
    assert said.exit_code == 2
    assert "--output" in said.output


def test_help_lists_every_command_once_under_its_group():
    lines = CliRunner().invoke(cli.app, ["--help"], terminal_width=80).output.splitlines()
    at = [lines.index(f"{title}:") for title in cli.GROUPS]
    assert list(cli.GROUPS) == ["Learn", "Judge", "Search and clicks", "Files"]
    assert at == sorted(at)
    listed = [line.split()[0] for line in lines[at[0] :] if line.startswith("  ")]
    assert listed == [*(entry.name for entries in cli.GROUPS.values() for entry in entries)]
    assert sorted(listed) == sorted(typer.main.get_command(cli.app).commands)
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize(
    ("typed", "hint"),
    [
        ("train", "use 'corank fit'"), ("predict", "use 'corank rank'"), ("learn", "use 'corank fit'"),
        ("score", "use 'corank rank'"), ("eval", "use 'corank evaluate'"), ("label", "use 'corank suggest'"),
        ("ask", "use 'corank prefer'"), ("service", "use 'corank serve'"), ("events", "use 'corank serve events'"),
        ("certify", "use 'corank screen certify'"), ("verify", "use 'corank screen verify'"),
        ("recover", "use 'corank lab recover'"),
        ("conver", "did you mean 'convert'? Choose one of fit, rank,"), ("xyzzy", "choose one of fit, rank,"),
        ("check-lambda", "call corank.models.check_lambda in Python."),
        ("simulate-clicks", "call corank.clicks.simulate_clicks in Python."),
    ],
)  # fmt: skip
def test_an_unknown_command_gets_one_sentence_with_a_suggestion_and_exit_code_2(typed, hint):
    result = CliRunner().invoke(cli.app, [typed, "a.txt"])
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"corank: there is no command {typed!r}; {hint}")
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["serve"], "'corank serve' needs a command; the pages are now 'corank lab'; choose one of start, "),
        (
            ["serve", "reviews"],
            "there is no command 'serve reviews'; the pages are now 'corank lab'; choose one of start",
        ),
        (["serve", "--no-browser"], "there is no command 'serve --no-browser'; the pages are now 'corank lab'; "),
        (["serve", "events", "x"], "there is no command 'serve events x'; choose one of verify, export, forget."),
        (["serve", "events", "verif"], "there is no command 'serve events verif'; did you mean 'verify'? "),
    ],
)
def test_an_unknown_command_below_another_gets_one_sentence_too(words, problem, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(cli.app, words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"corank: {problem}")
    assert result.stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_words_that_name_no_command_are_for_the_default_one(tmp_path):
    for words in (["lab", "pages"], ["lab"]):
        result = CliRunner().invoke(cli.app, [*words, str(tmp_path / "none" / "x"), "--no-browser"])
        assert (result.exit_code, "x is not a folder" in str(result.exception)) == (1, True)
    assert "Usage: corank lab [OPTIONS] COMMAND" in CliRunner().invoke(cli.app, ["lab", "--help"]).stdout


def test_suggested_commands_exist():
    commands = typer.main.get_command(cli.app).commands
    groups = {name.rpartition(" ")[0] for name in cli.VERBS}
    assert not {*cli.OTHER_NAMES.values()} - {*commands, *cli.VERBS, *groups}
    assert not {name for name in cli.OTHER_NAMES if name in commands}


def test_options_of_commands_have_a_help_text():
    for name in cli.VERBS:
        command = typer.main.get_command(cli.app)
        for word in name.split():
            command = command.commands[word]
        for parameter in command.params:
            assert getattr(parameter, "help", None), (name, parameter.name)


def test_an_interrupt_inside_an_exec_ends_with_a_code_and_not_by_the_signal(tmp_path):
    """Python remembers an interrupt that passed through an `exec` of a text, and kills itself when it ends."""
    code = (
        "import corank.cli, typer\n"
        "app = typer.Typer()\n"
        "@app.command(cls=corank.cli.Command)\n"
        "def stop(): exec('raise KeyboardInterrupt')\n"
        "corank.cli.main(app)\n"
    )
    (tmp_path / "stop.py").write_text(code)
    words = [sys.executable, "-m", "stop"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "corank: interrupted; unfinished output was not written.\n")


def test_an_option_of_the_last_version_works_with_one_sentence(tmp_path, monkeypatch, capsys):
    (tmp_path / "rows.txt").write_text("1 qid:1 1:1\n-1 qid:1 1:2\n0 qid:1 1:3\n")
    given = {"--unscored=-1": True, "--unjudged=-1": False}
    for number, (option, is_old) in enumerate(given.items()):
        verb = ["fit", "-m", "rankrls"]
        words = [*verb, str(tmp_path / "rows.txt"), option, "-o", str(tmp_path / f"{number}")]
        monkeypatch.setattr(sys, "argv", ["corank", *words])
        with pytest.raises(SystemExit) as stop:
            cli.main()
        said = capsys.readouterr()
        assert stop.value.code == 0, said.err
        assert ("--unscored is now --unjudged; the old name is removed in 0.4." in said.err) == is_old
    contents = {(tmp_path / f"{number}").read_bytes() for number in range(2)}
    assert len(contents) == 1
