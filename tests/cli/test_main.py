"""The command line as a process sees it: sentences on standard error, exit codes."""

from __future__ import annotations

import errno
import os

import pytest

from corank import cli
from corank.errors import InputError, MissingExtra


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (InputError("y is odd; pass numbers."), "corank: y is odd; pass numbers.\n"),
        (MissingExtra("zstandard is not installed; run: pip"), "corank: zstandard is not installed; run: pip\n"),
        (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "a.store"), "corank: a.store: No space left on device.\n"),
        (OSError("odd"), "corank: odd.\n"),
    ],
)
def test_what_went_wrong_is_one_line_and_exit_code_1(monkeypatch, capsys, error, sentence):
    def fail():
        raise error

    monkeypatch.setattr(cli, "app", fail)
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert stop.value.code == 1
    assert capsys.readouterr().err == sentence


def test_a_command_that_went_well_says_nothing_more(monkeypatch, capsys):
    monkeypatch.setattr(cli, "app", lambda: None)
    cli.main()
    assert capsys.readouterr().err == ""
