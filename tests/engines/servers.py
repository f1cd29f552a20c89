"""
Real search engines for tests: jars from Maven Central and Python packages, in a cache folder.

Each server is one process on loopback, stopped by its process id.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

HERE = Path(__file__).parent
START_SECONDS = FETCH_SECONDS = 240
CACHE = Path(os.environ.get("CORANK_ENGINES", Path.home() / ".cache" / "corank" / "engines"))
PACKAGES = (
    "lancedb==0.40.0", "qdrant-client==1.20.0", "pymilvus==3.0.2", "milvus-lite==3.2.2", "sqlite-vec==0.1.9",
    "apsw==3.54.1.0", "pgserver==0.1.4",
)  # fmt: skip
"""Engines that run inside Python, and a PostgreSQL with pgvector."""


@dataclass(frozen=True)
class Engine:
    """An engine: its label, the profile of pom.xml, the oldest Java, its launcher, and plugin classes."""

    label: str
    profile: str
    java: int
    launcher: str
    plugins: tuple[str, ...] = ()


OPENSEARCH2 = Engine(
    "OpenSearch 2.19.6", "opensearch2", 11, "OpenSearchNode.java",
    ("transport.Netty4Plugin", "painless.PainlessPlugin", "index.rankeval.RankEvalPlugin", "knn.plugin.KNNPlugin",
     "neuralsearch.plugin.NeuralSearch"),
)  # fmt: skip
OPENSEARCH3 = Engine(
    "OpenSearch 3.6.0", "opensearch3", 21, "OpenSearchNode.java",
    ("transport.Netty4ModulePlugin", "painless.PainlessModulePlugin", "knn.plugin.KNNPlugin",
     "neuralsearch.plugin.NeuralSearch"),
)  # fmt: skip
SOLR = Engine("Solr 8.11.4", "solr", 11, "SolrServer.java")


def find_java(oldest):
    """Return the java of the oldest development kit that is new enough, or skip."""
    homes = [os.environ.get("JAVA_HOME"), *map(str, sorted(Path("/usr/lib/jvm").glob("*")))]
    candidates = [shutil.which("java"), *(f"{home}/bin/java" for home in homes if home)]
    versions = {}
    for java in candidates:
        if java and Path(java).exists() and Path(java).resolve().with_name("javac").exists():
            shown = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
            if match := re.search(r'version "(?:1\.)?(\d+)', shown):
                versions.setdefault(int(match[1]), java)
    enough = [version for version in sorted(versions) if version >= oldest]
    if not enough:
        pytest.skip(f"this engine needs a Java development kit {oldest} or newer, which is not installed")
    return versions[enough[0]]


def fetch(engine):
    """Return the folder of the engine's jars; Maven brings them once."""
    pom = (HERE / "pom.xml").read_bytes()
    folder = CACHE / engine.profile
    if (folder / "pom.xml").exists() and (folder / "pom.xml").read_bytes() == pom:
        return folder
    if not shutil.which("mvn"):
        pytest.skip("Maven (mvn) is not installed, which brings the engines")
    shutil.rmtree(folder, ignore_errors=True)
    command = ["mvn", "-q", "-B", "-f", HERE / "pom.xml", "-P", engine.profile, "dependency:copy-dependencies"]
    command.append(f"-DoutputDirectory={folder}")
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=FETCH_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        pytest.skip(f"Maven did not bring {engine.label} within {FETCH_SECONDS} seconds")
    if done.returncode:
        lines = [line for line in done.stdout.splitlines() if "ERROR" in line]
        pytest.skip(f"Maven cannot bring {engine.label}: {lines[0][:300] if lines else done.stderr[:300]}")
    for archive in folder.glob("*.zip"):
        with zipfile.ZipFile(archive) as opened:
            for name in opened.namelist():
                if name.endswith(".jar") and "/" not in name and not (folder / name).exists():
                    opened.extract(name, folder)
    (folder / "pom.xml").write_bytes(pom)
    return folder


def fetch_packages():
    """Make the packages importable, behind those that are installed; pip brings them once."""
    folder, wanted = CACHE / "python", "\n".join(PACKAGES)
    note = folder / "packages.txt"
    if not (note.exists() and note.read_text() == wanted):
        shutil.rmtree(folder, ignore_errors=True)
        command = [sys.executable, "-m", "pip", "install", "-q", "--target", str(folder), *PACKAGES]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=FETCH_SECONDS, check=False)
        except subprocess.TimeoutExpired:
            pytest.skip(f"pip did not bring the packages within {FETCH_SECONDS} seconds")
        if done.returncode:
            pytest.skip(f"pip cannot bring the packages: {done.stderr.strip()[-300:]}")
        note.write_text(wanted)
    if str(folder) not in sys.path:
        sys.path.append(str(folder))


class Server:
    """A running engine: `call` sends a request and returns the decoded answer."""

    def __init__(self, engine, address):
        self.label, self.address = engine.label, address

    def call(self, method, path, body=None, *, lines=False):
        data = None if body is None else (body if isinstance(body, bytes) else json.dumps(body).encode())
        kind = "application/x-ndjson" if lines else "application/json"
        request = urllib.request.Request(self.address + path, data=data, method=method, headers={"Content-Type": kind})
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return json.loads(answer.read() or b"{}")
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{method} {path}: {error.code} {error.read().decode()[:1000]}") from None


@contextlib.contextmanager
def running(engine, home=None):
    """Start an engine in a temporary folder, and stop it by its process id."""
    java, jars = find_java(engine.java), fetch(engine)
    with tempfile.TemporaryDirectory(prefix="engine") as made, socket.socket() as free:
        folder = Path(made)
        (folder / "config").mkdir()
        if home:
            home(folder)
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
        free.close()
        classes = [f"org.opensearch.{name}" for name in engine.plugins]
        command = [
            java, "-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", f"-Djava.io.tmpdir={folder}",
            "-cp", f"{jars}/*", HERE / engine.launcher, folder, port, *classes,
        ]  # fmt: skip
        log = folder / "log"
        with log.open("wb") as out:
            process = subprocess.Popen(command, stdout=out, stderr=out)
        try:
            end = time.monotonic() + START_SECONDS
            while b"\nstarted" not in b"\n" + log.read_bytes():
                if process.poll() is not None or time.monotonic() > end:
                    pytest.fail(f"{engine.label} did not start:\n{log.read_text(errors='replace')[-3000:]}")
                time.sleep(0.2)
            yield Server(engine, f"http://127.0.0.1:{port}")
        finally:
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
