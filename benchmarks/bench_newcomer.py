"""
From ``pip install`` to the tenth answer: the seconds of the machine, and the number of actions of a newcomer.

``python benchmarks/bench_newcomer.py records.ris`` builds a wheel, installs it with ``[web]`` into a new virtual
environment, starts ``corank lab``, uploads the file in Chromium, and answers ten records with keys. The time in which
a person reads is not measured; an action is a command, a click, a choice of a file or a key.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


class Clock:
    """Seconds by the wall clock and of processors (own and of children that ended), step by step."""

    def __init__(self):
        self._last = self._now()

    def step(self, name, actions):
        now = self._now()
        seconds = [round(b - a, 1) for a, b in zip(self._last, now, strict=True)]
        self._last = now
        print(json.dumps({"figure": name, "seconds": seconds[0], "processor_seconds": seconds[1], "actions": actions}))

    @staticmethod
    def _now():
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return time.perf_counter(), time.process_time() + used.ru_utime + used.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("records", type=Path, help="file of records to screen")
    parser.add_argument("--answers", type=int, default=10, help="number of answers")
    wanted = parser.parse_args()
    from playwright.sync_api import sync_playwright

    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
        if subprocess.run([*pip, "--version"], capture_output=True, check=False).returncode:
            subprocess.run([sys.executable, "-m", "ensurepip"], check=True, capture_output=True)
        subprocess.run([*pip, "wheel", "--no-deps", "--wheel-dir", folder, str(ROOT)], check=True)
        (wheel,) = place.glob("corank-*.whl")
        clock = Clock()
        subprocess.run([sys.executable, "-m", "venv", str(place / "venv")], check=True)
        clock.step("python -m venv", 1)
        command = [place / "venv/bin/pip", "--quiet", "--disable-pip-version-check", "install", f"{wheel}[web]"]
        subprocess.run(command, check=True)
        clock.step("pip install corank[lab]", 1)
        server = subprocess.Popen(
            [place / "venv/bin/corank", "lab", str(place / "review"), "--no-browser", "--port", "0"],
            stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1", "COLUMNS": "500"},
        )  # fmt: skip
        link = next(found[0] for line in server.stdout if (found := re.search(r"http://\S+/enter\?token=\S+", line)))
        clock.step("corank lab until the link", 1)
        try:
            with sync_playwright() as playwright:
                page = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"]).new_page()
                page.set_default_timeout(120_000)
                page.goto(link)
                page.wait_for_url(re.compile(r"/$"))
                clock.step("the first page", 0)
                page.locator("form.kind:has(input[value=screen]) input[type=file]").set_input_files(wanted.records)
                page.wait_for_url("**/import")
                clock.step("choose the file until the import is shown", 2)
                page.get_by_role("link", name="Read the first record").click()
                page.wait_for_url("**/judge")
                clock.step("the first record", 1)
                for number in range(wanted.answers):
                    before = page.locator("input[name=client_id]").first.input_value()
                    page.keyboard.press("r" if number % 3 == 0 else "n")
                    page.wait_for_function(
                        "b => (document.querySelector('input[name=client_id]') || {}).value !== b", arg=before
                    )
                clock.step(f"{wanted.answers} answers", wanted.answers)
        finally:
            server.terminate()
            server.wait()
            clock.step("the server, from its start to its end", 0)


if __name__ == "__main__":
    main()
