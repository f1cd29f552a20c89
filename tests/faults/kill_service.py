"""
Kill `corank serve` under load: no acknowledged event may be lost, and none may be learnt twice.

    PYTHONPATH=.:tests python tests/faults/kill_service.py --kills 200 [--database sqlite] [--seed 0] [--minutes 5]

Shops ask for rankings and send clicks as fast as they can, each request again until it is acknowledged, always with the
same id. Services are killed with SIGKILL at random times and started again; on PostgreSQL two of them share a database,
and the right to learn moves from one to the other. With `--database killed-postgresql`, the PostgreSQL server is killed
instead, and the services go on. At the end the log must hold each acknowledged event once and no
other, and the models must be byte-equal to a clean replay of the log. Prints one line of JSON; the exit code is 1 if a
check failed. No kill begins after `--minutes`. A service that does not answer in time, or ends by itself, is a fault;
where it and the shops stand is then printed.
"""

from __future__ import annotations

import argparse
import faulthandler
import gc
import http.client
import json
import multiprocessing
import os
import random
import signal
import socket
import sys
import tempfile
import threading
import time
from pathlib import Path

import httpx
import numpy as np

from corank_lab.api.history import compare_with_replay, make_version
from corank_lab.api.learner import LogLearner
from corank_lab.api.log import CLICK, EventLog, Keys, NewEvent, pack
from corank_lab.api.models import Registry, rng_state_of
from corank_lab.cli.serve import start
from corank_lab.database.backends import open_database
from helpers.postgres import PostgresServer

N_SHOPS = 4
D = 5
PATIENCE = 120
"""Seconds after which a service that does not answer counts as hung; a busy machine is slow."""
REPORT = 20
"""Seconds between two lines about the progress."""
EARLY = 0.2
"""Share of the kills that come in the middle of a start or soon after; before the others, shops have got on."""
LONGEST = 0.3
"""Longest time between the first answer after a start, or an early start itself, and a kill, in seconds."""
WINDOW = 0.5
"""Seconds to wait for feedback, so that lists are closed by time as well."""


def warm_up():
    """Load compiled code, which takes longer than everything else at a start."""
    with tempfile.TemporaryDirectory() as folder, open_database(Path(folder, "corank.db")) as store:
        add_models(store)
        log, registry = EventLog(store), Registry(store)
        for name in registry.active:
            _, version, model = registry.serving(name)
            drawn = model.draw(np.zeros((2, D)), None, 2, rng_state_of(name))
            body = json.dumps({"items": ["a", "b"], "learnt": 0})
            shown = NewEvent("impression", name, 0, body, "", f"{name}/{version}", "", 0, pack(drawn.arrays))
            log.append([shown, NewEvent("feedback", name, 0, "{}", "", name, "a", CLICK)]).result()
        while LogLearner(log, registry).step():
            pass


def run_service(place, port):
    """Run the command, in a process of its own, which prints on SIGUSR1 where it stands."""
    faulthandler.register(signal.SIGUSR1)
    start(place, port=port, host="127.0.0.1", window=WINDOW, rate=1e6, exclude=[])


class Shop(threading.Thread):
    """
    A shop that ranks and sends clicks until told to stop.

    lists, clicks: ids of lists, with an item of each, and ids of feedback that the service acknowledged.
    """

    def __init__(self, bases, key, number, is_over):
        super().__init__(daemon=True)
        self._bases, self._number, self._is_over = bases, number, is_over
        self._headers = {"authorization": f"Bearer {key}"}
        self._rng = random.Random(number)
        self.lists: dict[str, str] = {}
        self.clicks: list[str] = []
        self.n_retries = 0
        self.fault = ""

    def run(self):
        try:
            with httpx.Client(timeout=60, headers=self._headers) as client:
                while not self._is_over.is_set():
                    self._work(client)
        except Exception as error:
            self.fault = f"{type(error).__name__}: {error}"

    def _send(self, client, path, value):
        """Send a request to any service until it is answered."""
        while True:
            try:
                answer = client.post(self._rng.choice(self._bases) + path, json=value)
            except httpx.TransportError:
                self.n_retries += 1
                time.sleep(0.1)
                continue
            if answer.status_code in (429, 503):
                self.n_retries += 1
                time.sleep(0.02)
                continue
            if answer.status_code != 200:
                raise RuntimeError(f"{path}: {answer.status_code} {answer.text[:200]}")
            return answer.json()

    def _work(self, client):
        rng, id = self._rng, f"shop{self._number}-{len(self.lists)}"
        items = [{"id": f"i{at}", "features": [round(rng.gauss(0, 1), 2) for _ in range(D)]} for at in range(8)]
        model = rng.choice(["shop", "duel", "test"])
        answer = self._send(
            client, "/rank", {"id": id, "items": items, "k": 6, "model": model, "user": f"u{self._number}"}
        )
        shown = [one["id"] for one in answer["items"]]
        self.lists[id] = rng.choice(shown)
        best = max(range(6), key=lambda rank: items[int(shown[rank][1:])]["features"][0])
        events = []
        if rng.random() < 0.7:
            events.append({"id": f"{id}-click", "impression": id, "item": shown[best]})
        if rng.random() < 0.2:
            events.append({"id": f"{id}-view", "impression": id, "item": shown[0], "action": "view"})
        if rng.random() < 0.5:
            events.append({"id": f"{id}-final", "impression": id, "final": True})
        if rng.random() < 0.1:  # late, or twice
            old = rng.choice(list(self.lists))
            events.append({"id": f"{id}-late", "impression": old, "item": self.lists[old]})
        if events:
            self._send(client, "/feedback", {"events": events})
            if rng.random() < 0.1:
                self._send(client, "/feedback", {"events": events})
            self.clicks += [event["id"] for event in events]


def is_ready(port):
    """Return whether a service answers; without httpx, which needs a tenth of a second of work for a connection."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def wait_until(is_done, what, services):
    """Wait, and raise if that takes too long or a service ended; prints where everything stands then."""
    end = time.monotonic() + PATIENCE
    while not is_done():
        ended = [process.exitcode for process in services if not process.is_alive()]
        if ended or time.monotonic() > end:
            faulthandler.dump_traceback()
            for process in services:
                if process.is_alive():
                    os.kill(process.pid, signal.SIGUSR1)
            time.sleep(1)
            raise RuntimeError(f"a service ended with code {ended[0]}" if ended else f"waited too long for {what}")
        time.sleep(0.02)


def n_lists(shops):
    return sum(len(shop.lists) for shop in shops)


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def add_models(store):
    registry = Registry(store)
    for name, online in (("shop", "PDGD"), ("duel", "PairwiseEpsilonGreedy")):
        registry.add(name, *make_version(registry, None, online, str(D), None, has_prior=False))
    registry.add("test", *make_version(registry, None, None, None, "shop,duel", has_prior=False))


def kill_many(kills, seed, place, n_services, minutes, victim=None):
    """
    Return the results of one database.

    victim: the PostgreSQL server to kill, instead of the services.
    """
    rng = random.Random(seed)
    address = place if "://" in place else str(Path(place, "corank.db"))
    with open_database(address) as store:
        add_models(store)
        key = Keys(store).add("shops", ["rank", "feedback"])
    ports = [free_port() for _ in range(n_services)]
    bases = [f"http://127.0.0.1:{port}" for port in ports]
    context = multiprocessing.get_context("forkserver")
    # Python 3.11 does not load "__main__" before a fork
    context.set_forkserver_preload(
        ["corank_lab.api.app", "uvicorn.protocols.http.auto", "psycopg", "faults.kill_service"]
    )

    def begin(at):
        process = context.Process(target=run_service, args=(place, ports[at]), daemon=True)
        process.start()
        return process

    def wait_for_shops():
        """Wait until all services answer, and then a shop has got on or failed."""
        for port in ports:
            wait_until(lambda port=port: is_ready(port), "a service to start", services)
        n_before = n_lists(shops)
        wait_until(lambda: n_lists(shops) > n_before or has_failed(), "a list", services)

    def has_failed():
        return not all(shop.is_alive() for shop in shops)

    is_over, begun = threading.Event(), time.monotonic()
    services = [begin(at) for at in range(n_services)]
    shops = [Shop(bases, key, 1000 * seed + number, is_over) for number in range(N_SHOPS)]
    for shop in shops:
        shop.start()
    n_killed, reported = 0, begun
    while n_killed < kills and time.monotonic() < begun + 60 * minutes and not has_failed():
        if rng.random() > EARLY:
            wait_for_shops()
        time.sleep(rng.uniform(0.0, LONGEST))
        n_killed += 1
        if victim is not None:
            victim.kill()
        else:
            at = rng.randrange(n_services)
            services[at].kill()
            services[at].join()
            services[at] = begin(at)
        if time.monotonic() > reported + REPORT:
            reported = time.monotonic()
            print(f"{reported - begun:.0f} s: {n_killed} kills, {n_lists(shops)} lists", file=sys.stderr, flush=True)
    is_over.set()
    wait_until(lambda: not any(shop.is_alive() for shop in shops), "the shops to end", services)
    for process in services:
        process.kill()
        process.join()
    faults = [shop.fault for shop in shops if shop.fault]
    return check(address, shops, faults) | {"kills": n_killed, "retries": sum(shop.n_retries for shop in shops)}


def check(address, shops, faults):
    """Compare the log with what was acknowledged, and the models with a replay of the log."""
    with open_database(address) as store:
        log = EventLog(store)
        stored = {"impression": [], "feedback": []}
        for part in log.batches():
            for event in part:
                if event.kind in stored:
                    stored[event.kind].append(event.id)
        for kind, name in (("impression", "lists"), ("feedback", "clicks")):
            acknowledged = [id for shop in shops for id in getattr(shop, name)]
            if sorted(stored[kind]) != sorted(acknowledged):
                lost = len(set(acknowledged) - set(stored[kind]))
                faults.append(f"{kind}: {lost} lost, {len(stored[kind])} stored, {len(acknowledged)} acknowledged")
        before = int(store.read("SELECT number FROM learner")[0][0])
        different, _, _ = compare_with_replay(log)  # as the last kill left it
        learner = LogLearner(log, Registry(store))
        while learner.step():
            pass
        different += compare_with_replay(log)[0]
        faults += [f"{name} differs from a replay" for name in different]
        counts = [json.loads(row[0]) for row in store.read("SELECT counts FROM models")]
        n_learnt = sum(one.get("lists", 0) for one in counts)
        if n_learnt + learner.n_open != len(stored["impression"]):
            faults.append(f"{n_learnt} lists learnt and {learner.n_open} open of {len(stored['impression'])}")
        return {
            "lists": len(stored["impression"]), "feedback": len(stored["feedback"]), "learnt": n_learnt,
            "learnt_before_last_kill": before, "counts": learner.counts, "faults": faults,
        }  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=60.0, help="time after which no more kills begin")
    parser.add_argument("--database", nargs="+", default=["sqlite", "postgresql", "killed-postgresql"])
    options = parser.parse_args()
    signal.signal(
        signal.SIGTERM, lambda *_: sys.exit("ended by a signal; nothing was checked")
    )  # leaves nothing behind
    results = {}
    for database in options.database:
        server = None if database == "sqlite" else PostgresServer()
        try:
            if server is not None and server.why_not:
                results[database] = {"skipped": server.why_not, "faults": []}
                continue
            with tempfile.TemporaryDirectory() as folder:
                place = folder if server is None else server.new_database("service")
                n_services, victim = 1 if server is None else 2, server if database == "killed-postgresql" else None
                results[database] = kill_many(options.kills, options.seed, place, n_services, options.minutes, victim)
        finally:
            if server is not None:
                server.remove()
    print(json.dumps(results))
    sys.exit(any(one["faults"] for one in results.values()))


if __name__ == "faults.kill_service":  # the server from which services are forked
    warm_up()
    gc.freeze()  # a service need not look at what is loaded here
elif __name__ == "__main__":
    main()
