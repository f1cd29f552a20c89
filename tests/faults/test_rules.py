"""Rules of every writer, on the command line and in Python: no unrequested replacement, no partial file."""

from __future__ import annotations

import os
import re
import shutil
import stat
import threading
from pathlib import Path

import pytest

import corank
from corank.cli import app
from corank.errors import InputError
from experiments.options import ExperimentOptions
from faults.commands import COMMANDS
from faults.functions import EXPERIMENT, FUNCTIONS, IN_PARTS, RESULTS, event_log, gains_plot, some_study
from faults.limits import small_files, without_rights
from faults.writers import sources, tree

WRITERS = (*COMMANDS, *FUNCTIONS)
# a writer of Excel that a full disk stopped complains when it is collected, in whatever test that happens
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture(scope="module", autouse=True)
def inputs():
    """Make the files that writers read before any test takes the disk away."""
    sources()
    for version in (0, 1):
        event_log(version)
        some_study(version)


def every(*writers):
    """Cases of a test: one for each writer; a few are slow."""
    slow = [pytest.mark.long]
    return pytest.mark.parametrize(
        "writer", [pytest.param(one, id=one.name, marks=slow if one.is_slow else []) for one in writers]
    )


EVERY = every(*WRITERS)
EVERY_FILE = every(*WRITERS, *RESULTS)
EVERY_FUNCTION = every(*FUNCTIONS)


@EVERY
def test_files_are_replaced_on_request_only(writer, tmp_path):
    writer(tmp_path, 0, overwrite=False)
    old = tree(tmp_path)
    with pytest.raises(InputError, match=rf"{writer.target} exists already; .*overwrite=True"):
        writer(tmp_path, 1, overwrite=False)
    assert tree(tmp_path) == old
    writer(tmp_path, 1, overwrite=True)
    assert tree(tmp_path) != old
    assert len(os.listdir(tmp_path)) == 1


@pytest.mark.parametrize(
    "words",
    [
        ["convert", "none.txt", "TARGET.txt"],
        ["convert", "none.txt", "TARGET.store"],
        ["convert", "none.txt", "TARGET.parquet"],
        ["fit", "none.txt", "-m", "spd", "-o", "TARGET"],
        ["rank", "none.safetensors", "none.txt", "-o", "TARGET"],
        ["rank", "none.safetensors", "none.txt", "--format", "trec", "-o", "TARGET"],
        ["evaluate", "none.txt", "none.scores", "--per-query", "TARGET"],
    ],
    ids=" ".join,
)
def test_a_command_checks_its_output_before_it_reads(words, tmp_path):
    """The inputs do not exist, but the error is about the output."""
    target = tmp_path / next(word for word in words if "TARGET" in word)
    (target if target.suffix == ".store" else target.parent).mkdir(exist_ok=True)
    (target / "header.json" if target.suffix == ".store" else target).write_text('{"format": "corank store"}')

    def say(folder, overwrite=False):
        here = [str(folder / word) if "TARGET" in word else word for word in words]
        app([*here, *(["--force"] if overwrite else [])], standalone_mode=False)

    with pytest.raises(InputError, match="exists already"):
        say(tmp_path)
    with pytest.raises(InputError, match=r"there is no folder .*nowhere"):
        say(tmp_path / "nowhere")
    with without_rights(tmp_path), pytest.raises(InputError, match=r"TARGET.* cannot be written"):
        say(tmp_path, overwrite=True)
    with pytest.raises(InputError, match="none"):  # the output is fine
        say(tmp_path, overwrite=True)
    assert os.listdir(tmp_path) == [target.name]


def test_an_experiment_checks_its_folder_first(tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "mine").mkdir()
    with pytest.raises(InputError, match=r"file cannot be written \(File exists\)"):
        ExperimentOptions(tmp_path / "file")
    for folder in (tmp_path / "mine" / "new", tmp_path / "mine"):
        with (
            without_rights(tmp_path / "mine"),
            pytest.raises(InputError, match=r"written \(Permission denied\)"),
        ):
            ExperimentOptions(folder)


@EVERY_FILE
def test_missing_permission_raises(writer, tmp_path):
    writer(tmp_path, 0)
    old = tree(tmp_path)
    with without_rights(tmp_path), pytest.raises(InputError, match=rf"{writer.target} cannot be written \(Permission"):
        writer(tmp_path, 1)
    assert tree(tmp_path) == old


@EVERY_FILE
@pytest.mark.parametrize("exists", [False, True])
@pytest.mark.usefixtures("capsys")  # otherwise pytest keeps what is printed in a file
def test_a_full_disk_raises_and_keeps_the_old_file(writer, exists, tmp_path):
    writer(tmp_path, 0)  # also compiles its kernels, whose cache is on a disk too
    if not exists:
        target = tmp_path / writer.target
        target.unlink() if target.is_file() else shutil.rmtree(target)
    old = tree(tmp_path)
    # SQLite needs some space to open a database from which answers are exported
    said = rf"{writer.target} cannot be written \(.*File too large|corank\.db cannot be written"
    with small_files(100), pytest.raises(InputError, match=said):
        writer(tmp_path, 1)
    assert tree(tmp_path) == old
    assert os.listdir(tmp_path) == ([writer.target] if exists else [])
    writer(tmp_path, 1)


@every(*IN_PARTS)
def test_a_full_disk_leaves_each_file_of_several_old_or_new(writer, tmp_path):
    (tmp_path / "new").mkdir()
    (tmp_path / "here").mkdir()
    for version in range(2):
        writer(tmp_path / "new", version)
    writer(tmp_path / "here", 0)
    old, new = tree(tmp_path / "here"), tree(tmp_path / "new")
    with small_files(len(old.get("results.jsonl", b"")) + 100), pytest.raises(InputError, match="cannot be written"):
        writer(tmp_path / "here", 1)
    assert writer.allows(tree(tmp_path / "here"), old, new)
    with without_rights(tmp_path / "here"), pytest.raises(InputError, match="Permission denied"):
        writer(tmp_path / "here", 1)
    writer(tmp_path / "here", 1)
    assert tree(tmp_path / "here") == new
    assert not list((tmp_path / "here").glob("*.part"))


def test_a_full_disk_keeps_the_results_of_an_experiment_readable(tmp_path):
    EXPERIMENT(tmp_path, 0)
    log = tmp_path / "results.jsonl"
    old, options = log.read_bytes(), ExperimentOptions(tmp_path)
    with (
        small_files(len(old) + 100),
        pytest.raises(InputError, match=r"results\.jsonl cannot be .*; free some space"),
    ):
        options.result({"cell": 3}, lambda: [1.0] * 2000)
    assert log.read_bytes() == old
    with small_files(100), pytest.raises(InputError, match=r"report\.md cannot be written"):
        EXPERIMENT(tmp_path, 0)
    assert options.result({"cell": 3}, lambda: [1]) == [1]  # the same process continues
    assert ExperimentOptions(tmp_path).result({"cell": 3}, lambda: [2]) == [1]


def test_two_runs_of_an_experiment_keep_each_other_s_results(tmp_path):
    """An incomplete line is removed by the next writer, never while another process writes."""
    ExperimentOptions(tmp_path).result({"cell": 0}, lambda: 0)
    log = tmp_path / "results.jsonl"
    log.write_bytes(log.read_bytes() + b'{"key": "cut o')
    one, other = ExperimentOptions(tmp_path), ExperimentOptions(tmp_path)
    assert one.result({"cell": 0}, lambda: 9) == 0
    assert other.result({"cell": 1}, lambda: 1) == 1
    assert one.result({"cell": 2}, lambda: 2) == 2
    again = ExperimentOptions(tmp_path)
    assert [again.result({"cell": cell}, lambda: 9) for cell in range(3)] == [0, 1, 2]


@pytest.mark.skipif(os.name == "nt", reason="permissions of POSIX")
@EVERY
def test_permissions_follow_the_umask_and_then_stay(writer, tmp_path):
    before = os.umask(0o027)
    try:
        writer(tmp_path, 0)
    finally:
        os.umask(before)
    target = tmp_path / writer.target
    files = [target] if target.is_file() else list(target.iterdir())
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o640}
    if target.is_dir():
        assert stat.S_IMODE(target.stat().st_mode) == 0o750
        return
    target.chmod(0o604)
    writer(tmp_path, 1)
    assert stat.S_IMODE(target.stat().st_mode) == 0o604


@EVERY_FUNCTION
@pytest.mark.parametrize("overwrite", [False, True])
def test_each_of_many_simultaneous_writers_succeeds_or_raises(writer, overwrite, tmp_path):
    expected = []
    for version in range(2):
        (tmp_path / str(version)).mkdir()
        writer(tmp_path / str(version), version)
        expected.append(tree(tmp_path / str(version)))
    folder, refused, together = tmp_path / "shared", [], threading.Barrier(4)
    folder.mkdir()

    def write(version):
        together.wait()
        try:
            writer(folder, version, overwrite)
        except InputError as error:
            refused.append(str(error))

    writing = [threading.Thread(target=write, args=(k % 2,)) for k in range(4)]
    for one in writing:
        one.start()
    for one in writing:
        one.join()
    assert tree(folder) in expected
    assert os.listdir(folder) == [writer.target]
    assert len(refused) == (0 if overwrite else 3), refused
    assert all("exists already" in sentence for sentence in refused)


def test_plots_are_written_like_other_files(tmp_path):
    pytest.importorskip("matplotlib")
    with small_files(100), pytest.raises(InputError, match=r"plot\.png cannot be written"):
        gains_plot(tmp_path / "plot.png", 0, overwrite=True)
    for _ in range(2):  # plots and reports in an experiment's folder are replaced
        gains_plot(tmp_path / "plot.png", 0, overwrite=True)
    assert os.listdir(tmp_path) == ["plot.png"]


WRITING = {
    "corank/cli/export.py",
    "corank/cli/leaderboard.py", "corank/cli/learn/cheap.py",
"corank/cli/learn/rank.py",
    "corank/cli/learn/scoring.py", "corank/comparison/report.py",
    "corank/comparison/study.py", "corank/comparison/outcomes.py",
    "corank/data/durable/files.py",
    "corank/data/durable/compressed.py", "corank/data/io/judgements.py",
    "corank/data/io/write.py", "corank/data/io/tables.py",
    "corank/data/io/trec.py", "corank/deploy/export/export.py", "corank/deploy/persist/files.py",
    "corank/models/fusion/definition.py",
    "corank/text/files.py", "corank/text/vectors.py", "corank_lab/api/history.py", "corank_lab/cli/demo.py",
    "corank_lab/cli/prefer.py", "corank_lab/cli/screening/results.py", "corank_lab/cli/serve.py",
    "corank_lab/records/writer.py",
    "corank_lab/screening/report.py", "corank_lab/screening/simulate.py",
}  # fmt: skip


def test_every_module_that_writes_is_known_here():
    """A module that writes has a line in `faults.commands` or `faults.functions`, then one here."""
    root = Path(corank.__file__).parents[1]
    writes = re.compile(r"\b(atomic_file|atomic_folder|write_text)\(|with store_folder\(|with JsonLines\(")
    comment = re.compile(r"^\s*(>>>|\.\.\.|#).*$", re.M)
    found = {
        str(path.relative_to(root)) for path in root.rglob("*.py") if writes.search(comment.sub("", path.read_text()))
    }
    # an archive is made in a temporary folder, and sent; tests of damaged databases and of Ctrl-C call recover
    others = {
        "corank/comparison/problem.py", "corank/data/durable/atomic.py", "corank/data/io/stores.py",
        "corank_lab/database/transfer.py", "corank_lab/pages/screening_results.py",
    }  # fmt: skip
    assert found - others == WRITING
