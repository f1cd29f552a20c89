"""Models and feature sets are sent to a mock of the engines, as are the commands of the tour."""

from __future__ import annotations

import json
import re
import shlex
import urllib.error
import urllib.request
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from corank.deploy.export.describe import Description
from corank.deploy.export.export import TARGETS
from corank.deploy.export.scorers import LinearScorer
from corank.deploy.export.target import ExportOptions
from corank.errors import InputError
from helpers.hostile_models import linear, trees
from helpers.mock_engines import serving

TOUR = Path(__file__).parents[4] / "docs" / "tours" / "deploy.md"


def send(method, address, content=None):
    request = urllib.request.Request(address, data=content, method=method)
    if content is not None:
        request.add_header("Content-Type", "application/json")
    try:
        with urllib.request.urlopen(request, timeout=60) as reply:
            return reply.status, json.load(reply)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def scorers():
    for seed in range(6):
        rng = np.random.default_rng(seed)
        d = int(rng.integers(1, 6))
        yield d, linear(rng, d)
        yield d, trees(rng, d)


@pytest.mark.parametrize("shift", [None, 5.0])
@pytest.mark.parametrize("target", ["elasticsearch", "opensearch"])
def test_the_plugin_accepts_feature_sets_and_models(target, shift):
    with serving() as (engines, address):
        assert send("PUT", f"{address}/_ltr")[0] == 200
        for number, (d, scorer) in enumerate(scorers()):
            names = tuple(f'feature "{j}"' for j in range(d))
            export = TARGETS[target](Description(names, scorer), ExportOptions(name=f"m{number}", shift=shift))
            place = f"{address}/_ltr/_featureset/f{number}"
            assert send("PUT", place, export.files[".features.json"]) == (200, {"acknowledged": True})
            assert send("POST", f"{place}/_createmodel", export.files[""]) == (200, {"acknowledged": True})
        assert len(engines.models) == number + 1


@pytest.mark.parametrize("shift", [None, 5.0])
def test_solr_accepts_feature_stores_and_models(shift):
    with serving() as (engines, address):
        for number, (d, scorer) in enumerate(scorers()):
            names = tuple(f"x{j}" for j in range(d))
            export = None
            with suppress(InputError):  # thresholds that Solr's addition of 1e-6 merges
                export = TARGETS["solr"](Description(names, scorer), ExportOptions(name=f"m{number}", shift=shift))
            if export is None:
                continue
            place = f"{address}/solr/products/schema"
            assert send("PUT", f"{place}/feature-store", export.files[".features.json"])[0] == 200
            assert send("PUT", f"{place}/model-store", export.files[""]) == (200, {"acknowledged": True})
        assert len(engines.solr_models) > 6


def test_the_mock_refuses_what_the_plugin_refuses():
    scorer = LinearScorer(np.array([1.0, 2.0]))
    export = TARGETS["opensearch"](Description(("a", "b"), scorer), ExportOptions())
    with serving() as (_, address):
        place = f"{address}/_ltr/_featureset/f"
        assert send("PUT", place, export.files[".features.json"])[0] == 400  # no store
        send("PUT", f"{address}/_ltr")
        send("PUT", place, export.files[".features.json"])
        body = json.loads(export.files[""])
        body["model"]["model"]["definition"] = json.dumps({"a": 1.0, "c": 1.0})
        assert send("POST", f"{place}/_createmodel", json.dumps(body).encode())[0] == 400
        body["model"]["model"]["definition"] = {"a": 1.0}
        assert send("POST", f"{place}/_createmodel", json.dumps(body).encode())[0] == 400
        assert send("POST", f"{place}/_createmodel", export.files[""])[0] == 200


def commands():
    """The curl commands of the tour: method, path and file."""
    text = TOUR.read_text(encoding="utf-8").replace("\\\n", " ")
    for line in re.findall(r"^curl .*$", text, flags=re.MULTILINE):
        words = shlex.split(line)
        method = words[words.index("-X") + 1]
        address = next(word for word in words if word.startswith("http://"))
        data = next((word[1:] for word in words if word.startswith("@")), None)
        assert (data is None) or words[words.index("-H") + 1] == "Content-Type: application/json"
        yield method, re.sub(r"^http://[^/]+", "", address), data


def test_the_commands_of_the_tour_are_accepted(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names, rng = ("bm25_title", "bm25_body", "clicks"), np.random.default_rng(0)
    for stem, target in (("opensearch", "opensearch"), ("solr", "solr")):
        export = TARGETS[target](Description(names, linear(rng, 3)), ExportOptions(name=stem, shift=10.0))
        for suffix, content in export.files.items():
            (tmp_path / (f"{stem}{suffix}" if suffix else f"{stem}.json")).write_bytes(content)
    sent = list(commands())
    assert len(sent) >= 5
    with serving() as (engines, address):
        for method, path, data in sent:
            if "_search" in path or "select" in path:
                continue  # queries are not part of the mock
            content = None if data is None else (tmp_path / data).read_bytes()
            assert send(method, address + path, content) == (200, {"acknowledged": True}), path
        assert engines.models
        assert engines.solr_models
