"""
Kill `corank lab` under load: no acknowledged answer may be lost, and none may count twice.

    PYTHONPATH=.:tests python tests/faults/kill_server.py --kills 200 [--database sqlite] [--kind screen]

Judges answer as fast as they can. The server is killed with SIGKILL at random times and started again; with
`--database killed-postgresql`, the PostgreSQL server is killed instead, and the web server goes on. Judges send an
answer until it is acknowledged, always with the id of its question, as the script of the page does. In a screening they
also write notes and undo, the owner settles conflicts, and the model learns in the background. At the end, the store
must hold each acknowledged answer once, in its order, and no other. Prints one line of JSON; the exit code is 1 if a
check failed.
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
from collections import Counter
from html import unescape
from pathlib import Path

import httpx

from corank_lab.cli.lab import pages
from corank_lab.database.backends import open_database
from corank_lab.pages.app import KINDS
from corank_lab.pages.uploads import Upload, UploadedFile
from helpers.postgres import PostgresServer
from helpers.reviews import bees

N_JUDGES = 6
N_DOCUMENTS = 4000
N_RECORDS = 1500
PATIENCE = 600
"""Seconds after which a server that does not answer counts as hung; a busy machine is slow."""
EARLY = 0.2
"""Share of the kills that come soon after a start; before the others, judges have got on."""
LONGEST = {"grade": 0.6, "screen": 0.6}
"""Longest time between the first answer after a start and a kill, in seconds."""
_FIELD = re.compile(r'<input type="hidden" name="(client_id|item)" value="([^"]*)"')


def run_server(folder, port, database):
    """Run the command, in a process of its own."""
    # the parent's signal handlers do not matter: the process is killed
    pages(Path(folder), port=port, database=database, no_browser=True)


def form_of(html, end):
    """Return the hidden fields of the form that is sent to an address; none if the page lacks it."""
    form = html.partition(f'{end}" data-answer')[2].partition("</form>")[0]
    return {name: unescape(value) for name, value in _FIELD.findall(form)}


class AtWork(threading.Thread):
    """
    Somebody who works until told to stop.

    acknowledged: client id and action of each answer that the server confirmed.
    """

    def __init__(self, base, project, token, number, is_over):
        super().__init__(daemon=True)
        self._base, self.path, self._token, self.is_over = base, f"/p/{project}", token, is_over
        self.rng = random.Random(number)
        self.acknowledged: list[tuple[str, str]] = []
        self.n_retries = 0
        self.fault = ""

    def run(self):
        try:
            with httpx.Client(base_url=self._base, timeout=60, headers={"sec-fetch-site": "same-origin"}) as client:
                self._client = client
                self.send("GET", f"/enter?token={self._token}")
                self.work()
        except Exception as error:
            self.fault = f"{type(error).__name__}: {error}"

    def send(self, method, path, **more):
        """Send a request until it is answered."""
        while True:
            try:
                answer = self._client.request(method, path, **more)
            except httpx.TransportError:
                self.n_retries += 1
                time.sleep(0.02)
                continue
            if answer.status_code == 503:
                self.n_retries += 1
                time.sleep(0.02)
                continue
            if answer.status_code not in (200, 303):
                raise RuntimeError(f"{method} {path}: {answer.status_code} {answer.text[:200]}")
            return answer.text

    def post(self, end, form):
        return self.send("POST", self.path + end, data=form, headers={"x-corank": "1"})


class Grader(AtWork):
    def work(self):
        html = self.send("GET", f"{self.path}/judge")
        while not self.is_over.is_set() and (form := form_of(html, "/judge")):
            form["action"] = self.rng.choice(["grade-0", "grade-1", "grade-2", "grade-3", "unrateable"])
            html = self.post("/judge", form)
            self.acknowledged.append((form["client_id"], form["action"].partition("-")[0]))


class Screener(AtWork):
    def work(self):
        html = self.send("GET", f"{self.path}/judge")
        while not self.is_over.is_set() and (form := form_of(html, "/judge")):
            time.sleep(self.rng.uniform(0.0, 0.4))  # so that the records last for all kills
            undo = form_of(html, "/undo")
            if undo and self.rng.random() < 0.08:
                html = self.post("/undo", undo)
                self.acknowledged.append((undo["client_id"], "undo"))
                continue
            is_bee = "pesticide" in html.partition("data-answer")[0]
            is_bee ^= self.rng.random() < 0.1
            form["action"] = "later" if self.rng.random() < 0.03 else "relevant" if is_bee else "not"
            if self.rng.random() < 0.05:
                form["note"] = f"note {len(self.acknowledged)}"
                self.acknowledged.append((f"{form['client_id']}-note", "note"))
            html = self.post("/judge", form)
            self.acknowledged.append((form["client_id"], form["action"]))


class Adjudicator(AtWork):
    """The owner, who settles conflicts; the server does not store a decision on a conflict that an undo removed."""

    def work(self):
        self.sent = {}
        while not self.is_over.is_set():
            form = form_of(self.send("GET", f"{self.path}/conflicts"), "/settle")
            if form:
                form["action"] = self.rng.choice(["relevant", "not"])
                self.sent[form["client_id"]] = form["item"], form["action"]
                self.send("POST", f"{self.path}/settle", data=form)
            time.sleep(0.1)


def wait_for(base):
    """Wait until the server answers."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        try:
            if httpx.get(f"{base}/health", timeout=60).status_code == 200:
                return
        except httpx.TransportError:
            time.sleep(0.01)
    raise RuntimeError("the server does not start")


def wait_for_answer(judges):
    """Wait until an answer is acknowledged: the server goes on by itself."""
    end = time.monotonic() + PATIENCE
    before = sum(len(judge.acknowledged) for judge in judges)
    while sum(len(judge.acknowledged) for judge in judges) == before and any(judge.is_alive() for judge in judges):
        if time.monotonic() > end:
            raise RuntimeError("no judge got on after a start")
        time.sleep(0.01)


def new_project(store, kind, n_records):
    """A project of many documents or records, two judges each."""
    if kind == "screen":
        name, content, settings = "x.ris", bees(n_records), {"readers": 2}
    else:
        rows = ["query,docid,title", *(f"query {at // 20},d{at},Title {at}" for at in range(N_DOCUMENTS))]
        name, content, settings = "x.csv", "\n".join(rows), {"judges": 2}
    created = KINDS[kind].create(Upload([UploadedFile(name, content.encode())], {}))
    defaults = {one.name: one.default for one in KINDS[kind].settings}
    return store.add_project(kind, "load", defaults | dict(created.settings) | settings, created.payload).id


def kill_many(kills, seed, address, folder, kind, victim=None):
    """
    Return the results of one database and one kind of work.

    victim: the PostgreSQL server to kill, instead of the web server.
    """
    rng = random.Random(seed)
    is_screening = kind == "screen"
    with open_database(address) as store:
        project = new_project(store, kind, min(N_RECORDS, 100 + 50 * kills))
        tokens = [store.add_judge(project, f"judge{number}") for number in range(N_JUDGES)]
        owner = store.add_owner()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    base = f"http://127.0.0.1:{port}"
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(
        ["__main__", "corank_lab.pages.app", "corank_lab.cli.lab", "corank.cli.output", "uvicorn"]
    )
    database = None if address == str(Path(folder, "corank.db")) else address

    def start():
        process = context.Process(target=run_server, args=(str(folder), port, database), daemon=True)
        process.start()
        wait_for(base)
        return process

    is_over = threading.Event()
    server = start()
    worker = Screener if is_screening else Grader
    judges = [worker(base, project, token, number, is_over) for number, token in enumerate(tokens)]
    adjudicator = Adjudicator(base, project, owner, N_JUDGES, is_over)
    workers = [*judges, *([adjudicator] if is_screening else [])]
    for one in workers:
        one.start()
    n_killed = 0
    while n_killed < kills and any(judge.is_alive() for judge in judges):
        if rng.random() < EARLY:  # while the project is being read
            time.sleep(rng.uniform(0.0, 0.5))
        else:
            wait_for_answer(judges)
            time.sleep(rng.uniform(0.0, LONGEST[kind]))
        n_killed += 1
        if not n_killed % 20:
            print(f"{kind}: {n_killed} kills", file=sys.stderr, flush=True)
        if victim is not None:
            victim.kill()
            continue
        server.kill()
        server.join()
        server = start()
    is_over.set()
    for one in workers:
        one.join()
    server.kill()
    server.join()
    with open_database(address) as store:
        answers = store.answers(project)
    faults = [one.fault for one in workers if one.fault]
    if n_killed < kills:
        faults.append(f"all judges stopped after {n_killed} kills")
    for number, judge in enumerate(judges):
        stored = [(one.client_id, one.action) for one in answers if one.judge == f"judge{number}"]
        if stored != judge.acknowledged:
            lost = set(judge.acknowledged) - set(stored)
            faults.append(
                f"judge{number}: {len(lost)} lost, {len(stored)} stored, {len(judge.acknowledged)} acknowledged"
            )
    results = {
        "kills": n_killed, "answers": len(answers), "retries": sum(one.n_retries for one in workers),
    }  # fmt: skip
    undone = {one.item for one in answers if one.action == "undo"}
    if is_screening:
        counts = Counter(one.action for one in answers)
        settled = {one.client_id: (one.item, one.action) for one in answers if one.judge == "me"}
        wrong = [client for client, sent in adjudicator.sent.items() if settled.get(client, sent) != sent]
        missing = [client for client, sent in adjudicator.sent.items() if client not in settled]
        lost = [client for client in missing if adjudicator.sent[client][0] not in undone]
        if wrong or lost or settled.keys() - adjudicator.sent.keys():
            faults.append(f"adjudication: {len(wrong)} differ, {len(lost)} lost, {len(settled)} stored")
        by_model = sum(one.entry.get("by") == "model" for one in answers)
        if kills >= 50 and not (by_model and settled and undone):
            faults.append(f"{by_model} answers by the model, {len(settled)} settled, {len(undone)} undone: too few")
        results |= {"undone": counts["undo"], "notes": counts["note"], "settled": len(settled), "by_model": by_model}
    readers: dict[str, set[str]] = {}
    for one in answers:
        if one.action not in ("later", "undo", "note") and one.judge != "me":
            readers.setdefault(one.item, set()).add(one.judge)
    # an answer that was undone is asked again, although another judge may have got the record meanwhile
    crowded = sum(len(found) > 2 for item, found in readers.items() if item not in undone)
    if crowded:
        faults.append(f"{crowded} items have more than two judges")
    return {**results, "faults": faults}


def main():
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--database", nargs="+", default=["sqlite", "postgresql", "killed-postgresql"])
    parser.add_argument("--kind", nargs="+", default=["grade", "screen"])
    options = parser.parse_args()
    results = {}
    for database in options.database:
        server = None if database == "sqlite" else PostgresServer()
        try:
            for kind in options.kind:
                name = f"{kind} {database}"
                if server is not None and server.why_not:
                    results[name] = {"skipped": server.why_not, "faults": []}
                    continue
                with tempfile.TemporaryDirectory() as folder:
                    address = str(Path(folder, "corank.db")) if server is None else server.new_database(kind)
                    victim = server if database == "killed-postgresql" else None
                    results[name] = kill_many(options.kills, options.seed, address, Path(folder), kind, victim)
        finally:
            if server is not None:
                server.remove()
    print(json.dumps(results))
    sys.exit(any(one["faults"] for one in results.values()))


if __name__ == "__main__":
    main()
