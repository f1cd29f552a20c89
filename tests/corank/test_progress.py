"""Progress bars on a terminal, in a notebook, and elsewhere."""

from __future__ import annotations

import builtins
import io
import sys
import threading
from types import ModuleType

import pytest

import corank
from corank.progress import listen_to_progress, progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Handle:
    """IPython's handle of an output that can be drawn anew; keeps all that was drawn."""

    def __init__(self, first):
        self.drawn = [first]

    def update(self, bundle, *, raw):
        assert raw
        self.drawn.append(bundle)


class ZMQInteractiveShell:
    """By the name of its class a notebook's shell is known."""


@pytest.fixture
def notebook(monkeypatch):
    handles = []

    def display(bundle, *, raw, display_id):
        assert raw
        assert display_id
        handles.append(Handle(bundle))
        return handles[-1]

    package, module = ModuleType("IPython"), ModuleType("IPython.display")
    module.display = display
    monkeypatch.setitem(sys.modules, "IPython", package)
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    monkeypatch.setattr(builtins, "get_ipython", ZMQInteractiveShell, raising=False)
    return handles


def percents(handle):
    return [int(bundle["text/plain"].split()[-2]) for bundle in handle.drawn[:-1]]


def test_a_notebook_sees_a_bar_that_goes_away(notebook, capsys):
    with progress(1000, "a<b") as advance:
        for _ in range(1000):
            advance(1)
    (bar,) = notebook
    assert percents(bar) == list(range(101))
    assert bar.drawn[50]["text/html"] == '<progress max="100" value="50"></progress> a&lt;b 50 %'
    assert bar.drawn[-1] == {"text/plain": "", "text/html": ""}
    assert capsys.readouterr() == ("", "")


def test_a_bar_goes_away_where_the_work_fails(notebook):
    def fail(advance):
        advance(1)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), progress(2, "steps") as advance:
        fail(advance)
    (bar,) = notebook
    assert percents(bar) == [0, 50]
    assert bar.drawn[-1]["text/html"] == ""


def test_a_fit_in_a_notebook_shows_its_steps(notebook):
    made = corank.make_ranking(10, 6, random_state=0)
    corank.SPD(loss="hinge", n_steps=5000, verbose=True, random_state=0).fit(made.X, made.y, qid=made.qid)
    (bar,) = notebook
    assert percents(bar)[-1] == 100
    corank.SPD(loss="hinge", n_steps=5000, random_state=0).fit(made.X, made.y, qid=made.qid)
    assert len(notebook) == 1


@pytest.mark.parametrize(("stream", "speaks"), [(Terminal, True), (io.StringIO, False)])
def test_a_terminal_sees_a_bar_and_a_file_nothing(monkeypatch, stream, speaks):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", stream())
    with progress(3, "steps") as advance:
        advance(3)
    assert ("steps" in sys.stderr.getvalue()) is speaks


def test_a_listener_hears_of_each_step_in_its_own_thread():
    heard = []
    with listen_to_progress(lambda *step: heard.append(step)):
        other = threading.Thread(target=lambda: progress(1, "elsewhere", verbose=False).__enter__()(1))
        other.start()
        other.join()
        with progress(5, "fits", verbose=False) as advance:
            advance(2)
            advance(3)
    with progress(1, "later", verbose=False) as advance:
        advance(1)
    assert heard == [("fits", 0, 5), ("fits", 2, 5), ("fits", 5, 5)]
