from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from corank import memory
from corank.errors import InputError
from corank.memory import free_memory, require_memory


def test_refuses_what_does_not_fit(monkeypatch):
    monkeypatch.setattr(memory, "free_memory", lambda: 1e9)
    with pytest.raises(InputError) as caught:
        require_memory(50_000, 2e10, "set n_basis to 1,000")
    assert str(caught.value) == "50,000 rows need 20.0 GB of memory, but 1.0 GB are free; set n_basis to 1,000."
    require_memory(50_000, 8e8, "set n_basis")
    with pytest.raises(InputError):
        require_memory(50_000, 9.5e8, "set n_basis")


def test_unknown_memory_refuses_nothing(monkeypatch):
    monkeypatch.setattr(memory, "free_memory", lambda: None)
    require_memory(10**9, 1e30, "set n_basis")


def test_small_amounts_do_not_read_the_system(monkeypatch):
    monkeypatch.setattr(memory, "free_memory", lambda: pytest.fail("free memory was read"))
    require_memory(1_000, 8e6, "set n_basis")


def test_this_machine():
    free = free_memory()
    if free is None:
        pytest.skip("this system does not report its free memory")
    assert 1e6 < free < 1e15
    with pytest.raises(InputError, match="are free"):
        require_memory(10**6, 1e16, "set n_basis")


GROUPS = {
    "version 2": (
        "0::/user/job\n",
        {
            "user/job/memory.max": "max",
            "user/job/memory.current": "7000",
            "user/memory.max": "10000",
            "user/memory.current": "8000",
            "user/memory.stat": "anon 1\ninactive_file 500\nactive_file 9",
        },
        2500,
    ),
    "version 1": (
        "9:cpu:/\n4:hugetlb,memory:/job\n0::/\n",
        {
            "memory/job/memory.limit_in_bytes": "6000",
            "memory/job/memory.usage_in_bytes": "2000",
            "memory/memory.limit_in_bytes": "9223372036854771712",
            "memory/memory.usage_in_bytes": "50000",
        },
        4000,
    ),
    "no limit": ("0::/\n", {}, 51200),
    "overdrawn": ("0::/\n", {"memory.max": "100", "memory.current": "300"}, 0),
}


@pytest.mark.parametrize("case", GROUPS)
def test_limits_of_control_groups(tmp_path, monkeypatch, case):
    membership, files, expected = GROUPS[case]
    proc, groups = tmp_path / "proc", tmp_path / "cgroup"
    for path, text in {
        proc / "meminfo": "MemTotal: 99 kB\nMemAvailable: 50 kB\n",
        proc / "self/cgroup": membership,
        **{groups / name: value for name, value in files.items()},
    }.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.setattr(memory, "_PROC", proc)
    monkeypatch.setattr(memory, "_GROUPS", groups)
    assert free_memory() == expected


def test_limit_of_the_process():
    pytest.importorskip("resource")
    if not Path("/proc/self/statm").exists():
        pytest.skip("this system does not report the address space of a process")
    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30)); "
        "from corank.memory import free_memory; print(free_memory())"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert 0 < float(printed) < 1 << 30
