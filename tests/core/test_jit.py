"""What a user sees of compiling: one line on a terminal, nothing anywhere else."""

from __future__ import annotations

import io
import sys
from types import SimpleNamespace

import pytest

from corank.core.jit import CompileNotice, jit


class Terminal(io.StringIO):
    def isatty(self):
        return True


def compiling(module):
    """The event that numba sends when a function of this module is not in its cache."""
    return SimpleNamespace(data={"dispatcher": SimpleNamespace(py_func=SimpleNamespace(__module__=module))})


def heard(monkeypatch, stream, *modules):
    monkeypatch.setattr(sys, "stderr", stream)
    notice = CompileNotice()
    for module in modules:
        notice.on_start(compiling(module))
        notice.on_end(compiling(module))
    return stream.getvalue()


def test_a_terminal_is_told_once(monkeypatch):
    said = heard(monkeypatch, Terminal(), "corank.core.top_k", "corank.core.blocks")
    assert said == "corank: compiling for this machine, which takes some seconds, once...\n"


def test_other_streams_and_other_libraries_are_left_alone(monkeypatch):
    assert heard(monkeypatch, io.StringIO(), "corank.core.top_k") == ""
    assert heard(monkeypatch, Terminal(), "someone.else", "corankish") == ""


def test_no_stream_at_all_is_no_error(monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    CompileNotice().on_start(compiling("corank.core.top_k"))


@pytest.mark.parametrize(("module", "calls"), [("corank.core.made_up", 1), ("tests.made_up", 0)])
def test_numba_tells_when_it_compiles_and_only_then(monkeypatch, tmp_path, module, calls):
    (tmp_path / "made_up.py").write_text("def twice(x):\n    return 2 * x\n")
    space = {"__name__": module}
    exec(compile((tmp_path / "made_up.py").read_text(), tmp_path / "made_up.py", "exec"), space)
    kernel = jit(space["twice"])
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr("corank.core.jit.NOTICE.said", False)
    assert [kernel(1), kernel(2)] == [2, 4]
    assert stream.getvalue().count("compiling") == calls
