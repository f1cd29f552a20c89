"""Compilation of kernels: one line on a terminal, no output elsewhere, and a missing cache is not fatal."""

from __future__ import annotations

import importlib
import importlib.util
import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from numba import TypingError

import corank
from corank.core.compiler import CompileNotice, NoCache
from corank.core.jit import jit


class Terminal(io.StringIO):
    def isatty(self):
        return True


def compiling(module):
    """The event that numba sends when a function of this module is not in its cache."""
    dispatcher = SimpleNamespace(py_func=SimpleNamespace(__module__=module))
    return SimpleNamespace(data={"dispatcher": dispatcher}, _exc_details=None)


def made_up(folder, module="corank.core.made_up", text="def twice(x):\n    return 2 * x\n"):
    """A kernel from a file of its own, as a new process would see it."""
    (folder / "made_up.py").write_text(text)
    space = {"__name__": module}
    exec(compile((folder / "made_up.py").read_text(), folder / "made_up.py", "exec"), space)
    return jit(space["twice"])


def compiled(kernel):
    """Call a kernel, and say whether it had to be compiled."""
    assert kernel(21) == 42
    return sum(kernel.stats.cache_misses.values()) == 1


def heard(monkeypatch, stream, *modules):
    monkeypatch.setattr(sys, "stderr", stream)
    notice = CompileNotice()
    for module in modules:
        notice.on_start(compiling(module))
        notice.on_end(compiling(module))
    return stream.getvalue()


def test_a_terminal_is_told_once(monkeypatch):
    said = heard(monkeypatch, Terminal(), "corank.core.lists.ranked", "corank.core.rows.blocks")
    assert said == "corank: compiling for this machine, which takes some seconds, once...\n"


def test_other_streams_and_other_libraries_are_left_alone(monkeypatch):
    assert heard(monkeypatch, io.StringIO(), "corank.core.lists.ranked") == ""
    assert heard(monkeypatch, Terminal(), "someone.else", "corankish") == ""


def test_no_stream_at_all_is_no_error(monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    CompileNotice().on_start(compiling("corank.core.lists.ranked"))


@pytest.mark.parametrize(("module", "calls"), [("corank.core.made_up", 1), ("tests.made_up", 0)])
def test_numba_tells_when_it_compiles_and_only_then(monkeypatch, tmp_path, module, calls):
    kernel = made_up(tmp_path, module)
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr("corank.core.compiler.NOTICE.is_printed", False)
    assert [kernel(1), kernel(2)] == [2, 4]
    assert stream.getvalue().count("compiling") == calls


@pytest.mark.parametrize("suffix", [".nbi", ".nbc"])
@pytest.mark.parametrize("damage", [lambda whole: whole[: len(whole) // 2], lambda whole: b"", lambda whole: b"no\n"])
def test_a_damaged_cache_is_compiled_again_and_mended(tmp_path, suffix, damage):
    assert compiled(made_up(tmp_path))
    assert not compiled(made_up(tmp_path))
    (kept,) = (tmp_path / "__pycache__").glob(f"*{suffix}")
    kept.write_bytes(damage(kept.read_bytes()))
    assert compiled(made_up(tmp_path))
    assert not compiled(made_up(tmp_path))


def test_a_cache_that_can_no_longer_be_written_is_told_once(tmp_path, monkeypatch):
    monkeypatch.setattr(NoCache, "has_warned", False)
    kernel = made_up(tmp_path)
    # a file where the folder was: no user may write into it, not even root
    shutil.rmtree(tmp_path / "__pycache__")
    (tmp_path / "__pycache__").touch()
    with pytest.warns(RuntimeWarning, match="cannot be cached") as found:
        assert [kernel(1), kernel(1.5)] == [2, 3.0]
    assert len(found) == 1


WAITS = """
from thrice import thrice
print("ready", flush=True)
thrice(21)
print(sum(thrice.stats.cache_misses.values()))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no locks on parts of a file")
def test_a_kernel_that_another_process_compiles_is_waited_for(tmp_path, monkeypatch):
    (tmp_path / "thrice.py").write_text(
        "from corank.core.jit import jit\n@jit\ndef thrice(x):\n    return 3 * x\n",
    )
    monkeypatch.syspath_prepend(tmp_path)
    kernel = importlib.import_module("thrice").thrice
    kernel._cache._acquire()
    options = {"env": {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", WAITS], **options) as other:
        assert other.stdout.readline() == "ready\n"
        assert kernel(21) == 63
        assert sum(kernel.stats.cache_misses.values()) == 1
        kernel._cache.release()
        assert other.communicate()[0] == "0\n"
    assert other.returncode == 0


def test_a_kernel_that_does_not_compile_is_not_locked(tmp_path):
    kernel = made_up(tmp_path, text="def twice(x):\n    return 2 * x.nothing\n")
    with pytest.raises(TypingError):
        kernel(21)
    assert kernel._cache._depth == 0


EVALUATE = """
import corank, json
made = corank.make_ranking(6, 5, random_state=0)
print(json.dumps(corank.evaluate(made.y, made.X[:, 0], made.qid, ["P@5", "AP"]).means))
"""


def run_in_a_process(*options, **variables):
    words = [sys.executable, *options]
    return subprocess.run(words, capture_output=True, text=True, env={**os.environ, **variables}, check=False)


@pytest.mark.long
def test_an_installation_without_a_writable_folder_works_and_warns_once(tmp_path):
    source = Path(importlib.util.find_spec("corank").origin).parent
    shutil.copytree(source, tmp_path / "corank", ignore=shutil.ignore_patterns("__pycache__"))
    for folder in [path.parent for path in (tmp_path / "corank").rglob("__init__.py")]:
        (folder / "__pycache__").touch()
    (tmp_path / "home").touch()
    home = {name: str(tmp_path / "home") for name in ("HOME", "XDG_CACHE_HOME", "NUMBA_CACHE_DIR", "LOCALAPPDATA")}
    found = run_in_a_process("-c", EVALUATE, PYTHONPATH=str(tmp_path), PYTHONDONTWRITEBYTECODE="1", **home)
    assert found.returncode == 0, found.stderr
    assert found.stderr.count("Warning") == found.stderr.count("NUMBA_CACHE_DIR") == 1, found.stderr
    made = corank.make_ranking(6, 5, random_state=0)
    expected = corank.evaluate(made.y, made.X[:, 0], made.qid, ["P@5", "AP"]).means
    assert json.loads(found.stdout) == pytest.approx(expected, rel=1e-9)


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="no limit on the size of files")
def test_a_full_disk_is_no_reason_to_fail(tmp_path):
    # a write beyond the limit fails as one to a full disk does
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))"
    found = run_in_a_process(
        "-c", limit + EVALUATE, NUMBA_CACHE_DIR=str(tmp_path), PYTHONPATH=os.pathsep.join(sys.path)
    )
    assert found.returncode == 0, found.stderr
    assert found.stderr.count("Warning") == found.stderr.count("cannot be cached") == 1, found.stderr
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and path.stat().st_size > 64]
