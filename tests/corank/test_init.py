"""Names of `import corank` and of its folders: imported lazily at run time, with types for editors."""

from __future__ import annotations

import pkgutil
import subprocess
import sys
import warnings
from importlib import import_module
from pathlib import Path

import pytest

import corank
from corank import _moved

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("base", "cli", "clicks", "comparison", "core", "data", "deploy", "metrics", "models", "text")
STUBS = sorted(".".join(path.parent.relative_to(ROOT / "src").parts) for path in (ROOT / "src").rglob("__init__.pyi"))

SNIPPET = """
import corank

reveal_type(corank.SPD())
reveal_type(corank.RankRLS().fit([[0.0], [1.0]], [0, 1]))
corank.SPD(alhpa=3)
corank.SDP
reveal_type(corank.base.GaussianKernel())
corank.base.Gausian
reveal_type(corank.data.read_run("run.txt"))
corank.data.trek
"""


def test_the_library_has_ten_folders():
    assert sorted(module.name for module in pkgutil.iter_modules(corank.__path__) if module.ispkg) == [*FOLDERS]


@pytest.mark.parametrize("package", STUBS)
def test_every_name_of_a_stub_exists_and_no_module_hides_it(package):
    module = import_module(package)
    modules = {found.name for found in pkgutil.iter_modules(module.__path__)}
    assert not modules & set(module.__all__)
    assert set(module.__all__) <= set(dir(module))
    for name in module.__all__:
        assert getattr(module, name) is not None
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'trek'"):
        _ = module.trek


@pytest.mark.long
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


def named(path):
    package, _, name = path.rpartition(".")
    return getattr(import_module(package), name)


@pytest.mark.parametrize("name", _moved.NAMES)
def test_a_name_of_the_last_version_works_with_a_warning(name):
    with pytest.warns(FutureWarning, match=f"corank.{name} is now {_moved.NAMES[name]}; the old name is"):
        thing = getattr(corank, name)
    assert thing is named(_moved.NAMES[name])
    assert name not in corank.__all__


IN_FOLDERS = {
    "corank.base.OnTop": "corank.base.ResidualRanker",
    "corank.base.Smooth": "corank.base.NeighborSmoother",
    "corank.data.Collection": "corank.data.Dataset",
    "corank.clicks.simulate": "corank.clicks.simulate_clicks",
    "corank.deploy.summarise": "corank.deploy.pair_sums",
    "corank.deploy.distributed.summarise": "corank.deploy.pair_sums",
    "corank.models.Summary": "corank.models.PairSums",
    "corank.models.rls.Summary": "corank.models.PairSums",
    "corank.metrics.MEASURES": "corank.metrics.METRICS",
    "corank.metrics.Measure": "corank.metrics.Metric",
}


@pytest.mark.parametrize("old", IN_FOLDERS)
def test_a_renamed_name_of_a_folder_works_with_a_warning(old):
    with pytest.warns(FutureWarning, match=f"{old} is now {IN_FOLDERS[old]}; the old name is"):
        assert named(old) is named(IN_FOLDERS[old])


@pytest.mark.parametrize("name", _moved.GONE)
def test_a_removed_name_is_an_error_that_says_what_to_do(name):
    for package in ("corank", "corank.models", "corank.clicks", "corank.deploy.distributed"):
        with pytest.raises(AttributeError, match=rf"{package}.{name} was removed in 0.3; \w+ .*\.$"):
            named(f"{package}.{name}")


@pytest.mark.parametrize("old", _moved.PACKAGES)
def test_a_package_of_the_last_version_works_with_a_warning(old):
    for name in [name for name in sys.modules if name in _moved.PACKAGES]:
        del sys.modules[name]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        module = import_module(old)
    assert f"{old} is now {_moved.PACKAGES[old]}; the old name is removed in 0.4." in map(
        str, (w.message for w in caught)
    )
    assert module is import_module(_moved.PACKAGES[old])
    assert module.__spec__.name == _moved.PACKAGES[old]


def test_containers_of_old_packages_hide_no_name():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        assert corank.evaluation.compare is corank.comparison
        assert corank.judging.screening is import_module("corank_lab.screening")
        with pytest.raises(AttributeError):
            _ = corank.evaluation.trek
    assert corank.comparison.compare is corank.compare


def test_a_module_of_an_old_package_is_not_loaded_twice():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        module = import_module("corank.linear.spd")
    assert module.SPD is corank.SPD


def test_importing_corank_imports_nothing_heavy():
    heavy = "import corank, sys\nassert not {'numpy', 'numba', 'scipy', 'sklearn', 'corank.metrics'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", heavy], check=True)


def test_a_renamed_parameter_works_with_a_warning(tmp_path):
    corank.data.write_letor(tmp_path / "rows.txt", [[1.0], [2.0], [3.0]], [1, -1, 0], [1, 1, 1])
    expected = corank.read(tmp_path / "rows.txt", unjudged=-1)
    with pytest.warns(FutureWarning, match="the parameter unscored is now unjudged"):
        rows = corank.read(tmp_path / "rows.txt", unscored=-1)
    assert str(rows.y) == str(expected.y) == "[ 1. nan  0.]"
    with pytest.warns(FutureWarning, match="the parameter unscored is now unjudged"):
        parts = corank.deploy.Parts([tmp_path / "rows.txt"], unscored=-1)
    assert parts.unjudged == -1


def test_a_renamed_method_works_with_a_warning():
    rows, y = [[0.0], [1.0], [3.0]], [0, 1, 2]
    model = corank.RankRLS(1.0)
    with pytest.warns(FutureWarning, match=r"RankRLS.summary is now pair_sums"):
        sums = model.summary(rows, y)
    with pytest.warns(FutureWarning, match="RankRLS.fit_summary is now fit_pair_sums"):
        fitted = model.fit_summary(sums)
    assert fitted.coef_.tolist() == corank.RankRLS(1.0).fit_pair_sums(model.pair_sums(rows, y)).coef_.tolist()
