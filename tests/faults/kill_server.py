"""
Kill `corank serve` under load: no acknowledged answer may be lost, and none may count twice.

    PYTHONPATH=.:tests python tests/faults/kill_server.py --kills 200 [--database sqlite postgresql]

Judges answer as fast as they can. The server is killed with SIGKILL at random times and started again; judges send an
answer until it is acknowledged, always with the id of its question, as the script of the page does. At the end, the
store must hold each acknowledged answer once, and no other. Prints one line of JSON; the exit code is 1 if a check
failed.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
import re
import socket
import sys
import tempfile
import threading
import time
from html import unescape
from pathlib import Path

import httpx

from corank.cli.serve import serve
from corank.judging.sessions.open_store import open_answer_store
from corank.server.grading.workspace import GradeWorkspace
from corank.server.uploads import Upload, UploadedFile
from some_postgres import PostgresServer

N_JUDGES = 6
N_DOCUMENTS = 4000
_FIELD = re.compile(r'<input type="hidden" name="(client_id|item)" value="([^"]*)"')


def run_server(folder, port, database):
    """Run the command, in a process of its own."""
    # the parent's signal handlers do not matter: the process is killed
    serve(Path(folder), port=port, database=database, no_browser=True)


class JudgeAtWork(threading.Thread):
    """
    A judge who answers until told to stop.

    acknowledged: client id and action of each answer that the server confirmed.
    """

    def __init__(self, base, project, token, number, is_over):
        super().__init__(daemon=True)
        self._base, self._path, self._token, self._is_over = base, f"/p/{project}/judge", token, is_over
        self._rng = random.Random(number)
        self.acknowledged: list[tuple[str, str]] = []
        self.n_retries = 0
        self.fault = ""

    def run(self):
        try:
            with httpx.Client(base_url=self._base, timeout=60, headers={"sec-fetch-site": "same-origin"}) as client:
                self._send(client, "GET", f"/enter?token={self._token}")
                html = self._send(client, "GET", self._path)
                while not self._is_over.is_set():
                    form = {name: unescape(value) for name, value in _FIELD.findall(html.partition("data-answer")[2])}
                    if "item" not in form:
                        return
                    form["action"] = self._rng.choice(["grade-0", "grade-1", "grade-2", "grade-3", "unrateable"])
                    html = self._send(client, "POST", self._path, data=form, headers={"x-corank": "1"})
                    self.acknowledged.append((form["client_id"], form["action"].partition("-")[0]))
        except Exception as error:
            self.fault = f"{type(error).__name__}: {error}"

    def _send(self, client, method, path, **more):
        """Send a request until it is answered."""
        while True:
            try:
                answer = client.request(method, path, **more)
            except httpx.TransportError:
                self.n_retries += 1
                time.sleep(0.02)
                continue
            if answer.status_code == 503:
                self.n_retries += 1
                time.sleep(0.02)
                continue
            if answer.status_code != 200:
                raise RuntimeError(f"{method} {path}: {answer.status_code} {answer.text[:200]}")
            return answer.text


def wait_for(base):
    """Wait until the server answers."""
    end = time.monotonic() + 120
    while time.monotonic() < end:
        try:
            if httpx.get(f"{base}/health", timeout=60).status_code == 200:
                return
        except httpx.TransportError:
            time.sleep(0.01)
    raise RuntimeError("the server does not start")


def new_project(store):
    """A project of many documents, two judges each."""
    rows = ["query,docid,title", *(f"query {at // 20},d{at},Title {at}" for at in range(N_DOCUMENTS))]
    created = GradeWorkspace.create(Upload([UploadedFile("x.csv", "\n".join(rows).encode())], {}))
    settings = {one.name: one.default for one in GradeWorkspace.settings} | {"judges": 2}
    return store.add_project("grade", "load", settings, created.payload).id


def kill_many(kills, seed, address, folder):
    """Return the results of one database."""
    rng = random.Random(seed)
    with open_answer_store(address) as store:
        project = new_project(store)
        tokens = [store.add_judge(project, f"judge{number}") for number in range(N_JUDGES)]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    base = f"http://127.0.0.1:{port}"
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(
        ["__main__", "corank.server.app", "corank.cli.serve", "corank.cli.output", "uvicorn"]
    )
    database = None if address == str(Path(folder, "corank.db")) else address

    def start():
        process = context.Process(target=run_server, args=(str(folder), port, database), daemon=True)
        process.start()
        wait_for(base)
        return process

    is_over = threading.Event()
    server = start()
    judges = [JudgeAtWork(base, project, token, number, is_over) for number, token in enumerate(tokens)]
    for judge in judges:
        judge.start()
    n_killed = 0
    while n_killed < kills and any(judge.is_alive() for judge in judges):
        time.sleep(rng.uniform(0.0, 0.6))
        server.kill()
        server.join()
        n_killed += 1
        server = start()
    is_over.set()
    for judge in judges:
        judge.join()
    server.kill()
    server.join()
    with open_answer_store(address) as store:
        answers = store.answers(project)
    faults = [judge.fault for judge in judges if judge.fault]
    for number, judge in enumerate(judges):
        stored = [(one.client_id, one.action) for one in answers if one.judge == f"judge{number}"]
        if stored != judge.acknowledged:
            lost = set(judge.acknowledged) - set(stored)
            faults.append(
                f"judge{number}: {len(lost)} lost, {len(stored)} stored, {len(judge.acknowledged)} acknowledged"
            )
    items: dict[str, set[str]] = {}
    for one in answers:
        items.setdefault(one.item, set()).add(one.judge)
    crowded = sum(len(found) > 2 for found in items.values())
    if crowded:
        faults.append(f"{crowded} documents have more than two judges")
    retries = sum(judge.n_retries for judge in judges)
    return {"kills": n_killed, "answers": len(answers), "retries": retries, "faults": faults}


def main():
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--database", nargs="+", default=["sqlite", "postgresql"])
    options = parser.parse_args()
    results = {}
    for kind in options.database:
        with tempfile.TemporaryDirectory() as folder:
            server = PostgresServer() if kind == "postgresql" else None
            try:
                if server is not None and server.why_not:
                    results[kind] = {"skipped": server.why_not, "faults": []}
                    continue
                address = str(Path(folder, "corank.db")) if server is None else server.new_database("killed")
                results[kind] = kill_many(options.kills, options.seed, address, Path(folder))
            finally:
                if server is not None:
                    server.remove()
    print(json.dumps(results))
    sys.exit(any(one["faults"] for one in results.values()))


if __name__ == "__main__":
    main()
