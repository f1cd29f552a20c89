"""Names of `import corank`: imported lazily at run time, with types for editors."""

from __future__ import annotations

import ast
import pkgutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import corank

ROOT = Path(__file__).resolve().parents[2]

SNIPPET = """
import corank

reveal_type(corank.SPD())
reveal_type(corank.RankRLS().fit([[0.0], [1.0]], [0, 1]))
corank.SPD(alhpa=3)
corank.SDP
reveal_type(corank.base.kernels.GaussianKernel())
corank.base.kernels.Gausian
reveal_type(corank.data.read_run("run.txt"))
corank.data.trek
"""


def declared(module):
    """Names that the block for type checkers imports, with the modules they come from."""
    tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If) and isinstance(node.test, ast.Name))
    return {alias.asname: line.module for line in block.body for alias in line.names if alias.asname == alias.name}


def test_a_type_checker_is_told_of_every_name():
    for package in (corank.data, corank.base, corank.evaluation, corank.judging, corank.models.labels):
        assert declared(package) == package._HOMES
    assert declared(corank) == {**corank._HOMES, **dict.fromkeys(corank._PACKAGES, "corank")}


def test_a_misspelt_parameter_and_a_misspelt_name_are_type_errors(tmp_path, monkeypatch):
    api = pytest.importorskip("mypy.api", reason="needs mypy: pip install 'corank[dev]'")
    path = tmp_path / "snippet.py"
    path.write_text(SNIPPET)
    monkeypatch.chdir(ROOT)  # its settings, and what it remembers of the last `make lint`
    limit = sys.getrecursionlimit()
    said, complaint, _ = api.run([str(path), "--no-error-summary", "--hide-error-context"])
    sys.setrecursionlimit(limit)  # which mypy raises, and other tests go down to
    assert not complaint
    found = [line.split(":", 1)[1] for line in said.splitlines()]
    revealed = [line.split('"')[1] for line in found if "Revealed" in line]
    assert revealed == [
        "corank.models.linear.spd.SPD",
        "corank.models.rls.rankrls.RankRLS",
        "corank.base.kernels.radial.GaussianKernel",
        "corank.data.io.trec.Run",
    ]
    errors = [(int(line.split(":")[0]), line.split("[")[-1]) for line in found if ": error: " in line]
    assert errors == [(6, "call-arg]"), (7, "attr-defined]"), (9, "attr-defined]"), (11, "attr-defined]")]
    assert 'Unexpected keyword argument "alhpa"' in said


def test_every_public_package_is_imported_lazily():
    packages = {module.name for module in pkgutil.iter_modules(corank.__path__)}
    assert set(corank._PACKAGES) == packages - {
        "__main__", "_lazy", "_version", "choices", "core", "cli", "server", "service", "console", "memory",
        "parameters", "progress", "tables",
    }  # fmt: skip
    reach = "import corank, sys\nassert 'corank.metrics' not in sys.modules\n"
    for name in corank._PACKAGES:
        reach += f"assert corank.{name}.__name__ == 'corank.{name}'\n"
    for package in (corank.evaluation, corank.judging):
        for part in package._HOMES:
            reach += f"assert {package.__name__}.{part}.__name__ == '{package.__name__}.{part}'\n"
    subprocess.run([sys.executable, "-c", reach], check=True)


@pytest.mark.parametrize("name", corank.__all__)
def test_every_public_name_is_where_corank_looks_for_it(name):
    thing = getattr(corank, name)
    assert name == "__version__" or thing is getattr(import_module(corank._HOMES[name]), name)


def test_dir_lists_names_and_rooms_and_nothing_else():
    assert set(dir(corank)) == {*corank._HOMES, *corank._PACKAGES}
    assert set(dir(corank.data)) == set(corank.data._HOMES)
    with pytest.raises(AttributeError, match="module 'corank' has no attribute 'SDP'"):
        _ = corank.SDP
    with pytest.raises(AttributeError, match=r"module 'corank\.data' has no attribute 'trek'"):
        _ = corank.data.trek


def test_importing_corank_imports_nothing_heavy():
    heavy = "import corank, sys\nassert not {'numpy', 'numba', 'scipy', 'sklearn'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", heavy], check=True)
