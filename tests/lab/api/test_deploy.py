"""The container file and the unit of systemd: as far as they can be checked without a container or systemd."""

from __future__ import annotations

import configparser
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import typer

from corank import cli

DEPLOY = Path(__file__).resolve().parents[3] / "deploy"


def parsed(words):
    """Return the options that `corank service start` understands in the words of a command."""
    assert words[:3] == ["corank", "service", "start"]
    command = typer.main.get_command(cli.app).commands["service"].commands["start"]
    return command.make_context("start", words[3:]).params


def test_the_container_runs_without_root_and_writes_to_its_volume_only():
    text = (DEPLOY / "Containerfile").read_text(encoding="utf-8")
    steps = re.sub(r"\\\n", " ", text)
    assert int(re.findall(r"^USER (\d+)$", steps, flags=re.MULTILINE)[-1]) >= 1000
    assert not re.search(r"^ADD|curl|wget|chmod 777", steps, flags=re.MULTILINE)
    options = parsed(json.loads(re.search(r"^ENTRYPOINT (.+)$", steps, flags=re.MULTILINE)[1]))
    (volume,) = re.findall(r"^VOLUME (\S+)$", steps, flags=re.MULTILINE)
    assert (options["place"], options["host"]) == (volume, "0.0.0.0")
    assert f"EXPOSE {options['port']}" in steps
    assert f"NUMBA_CACHE_DIR={volume}/" in steps
    health = json.loads(re.search(r"CMD (\[.+\])$", steps, flags=re.MULTILINE)[1])
    assert f"127.0.0.1:{options['port']}/readyz" in health[2]
    assert "--read-only --cap-drop=all" in text


def test_the_unit_of_systemd_starts_the_service_on_this_computer_only():
    unit = configparser.RawConfigParser(strict=False)
    unit.optionxform = str
    unit.read(DEPLOY / "corank.service", encoding="utf-8")
    service = unit["Service"]
    options = parsed(service["ExecStart"].removeprefix("/usr/bin/env ").split())
    assert (options["place"], options["host"]) == (f"/var/lib/{service['StateDirectory']}", "127.0.0.1")
    assert (service["DynamicUser"], service["ProtectSystem"], service["NoNewPrivileges"]) == ("yes", "strict", "yes")


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_accepts_the_unit():
    done = subprocess.run(
        ["systemd-analyze", "verify", DEPLOY / "corank.service"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
