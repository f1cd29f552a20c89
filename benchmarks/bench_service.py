"""
Benchmark of `corank serve`: times of /rank under load, durable events a second, memory, restart.

    python benchmarks/bench_service.py [rank] [events] [memory] [--seconds 10] [--database URL]

- rank: requests for 100 items with 50 features at a fixed rate, with feedback on every list, as an open loop: a
  request is sent at its time whether or not the one before was answered, and times count from then.
- events: feedback as fast as it is acknowledged, one event and 100 events a request.
- memory: resident memory against the number of events.
- restart, part of memory: time from the start of the process to the first ranking, with all these events in the log.

Each line of output is one JSON object. `fsync_ms` is the median time of one fdatasync of 20 kB on the same disk. Times
of requests are only meaningful on an idle machine; `load_average` shows whether it was. Processor times always are.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import numpy as np

from corank_lab.api.history import make_version
from corank_lab.api.log import CLICK, FINAL, SCOPES, EventLog, Keys, NewEvent, pack
from corank_lab.api.models import Registry, rng_state_of
from corank_lab.database.backends import open_database

N, D = 100, 50


def memory_mb(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) / 1024


def cpu_seconds(pid: int) -> float:
    ticks = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")


def fsync_ms(folder: Path) -> float:
    times = []
    with (folder / "fsync").open("wb", buffering=0) as file:
        for _ in range(40):
            file.write(b"x" * 20_000)
            began = time.perf_counter()
            os.fdatasync(file.fileno())
            times.append(1000 * (time.perf_counter() - began))
    return round(float(np.median(times)), 2)


def prepare(place: str, d: int = D) -> str:
    """Make a database with one online ranker, and return a key."""
    with open_database(place if "://" in place else Path(place, "corank.db")) as store:
        registry = Registry(store)
        if "shop" not in registry.active:
            registry.add("shop", *make_version(registry, None, "PDGD", str(d), None, has_prior=False))
        return Keys(store).add("benchmark", SCOPES)


class Process:
    """A service as a process of its own."""

    def __init__(self, place: str, *options: str) -> None:
        self.began = time.perf_counter()
        words = [
            sys.executable,
            "-m",
            "corank",
            "serve",
            "start",
            place,
            "--port",
            "0",
            "--rate",
            "1000000",
            *options,
        ]
        self.process = subprocess.Popen(
            words, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"}
        )
        for line in self.process.stdout:  # type: ignore[union-attr]
            if found := re.search(r"http://127.0.0.1:(\d+)", line):
                self.port = int(found[1])
                return
        raise RuntimeError("the service did not start")

    @property
    def pid(self) -> int:
        return self.process.pid

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait()
        self.process.stdout.close()  # type: ignore[union-attr]


class Connection:
    """One connection that stays open, with as little work per request as possible."""

    def __init__(self, port: int, key: str) -> None:
        self._port, self._key = port, key

    async def open(self) -> Connection:
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)
        return self

    async def post(self, path: str, body: bytes, method: str = "POST") -> tuple[int, bytes]:
        head = [f"{method} {path} HTTP/1.1", "Host: x", f"Authorization: Bearer {self._key}"]
        head += [f"Content-Length: {len(body)}", "", ""]
        self._writer.write("\r\n".join(head).encode() + body)
        answer = (await self._reader.readuntil(b"\r\n\r\n")).decode()
        length = int(re.search(r"content-length: (\d+)", answer, re.IGNORECASE)[1])  # type: ignore[index]
        return int(answer.split(" ", 2)[1]), await self._reader.readexactly(length)

    def close(self) -> None:
        self._writer.close()


def requests(n: int, n_items: int = N, d: int = D, form: str = "json") -> list[bytes]:
    """Requests with features as JSON numbers of five decimals, or as base64 of float32."""
    rng = np.random.default_rng(0)
    found = []
    for _ in range(n):
        X = rng.standard_normal((n_items, d)).round(5)
        request: dict = {"items": [f"item{at}" for at in range(n_items)], "k": 10, "query": "shoes"}
        if form == "json":
            request["items"] = [{"id": f"item{at}", "features": row} for at, row in enumerate(X.tolist())]
        else:
            request["features"] = {"float32": base64.b64encode(X.astype("<f4").tobytes()).decode()}
        found.append(json.dumps(request).encode())
    return found


async def at_rate(
    rate: float, seconds: float, connections: list[Connection], send: Callable[[Connection], Awaitable[None]]
) -> int:
    """Start `rate` requests a second on free connections; return how many found no free connection in time."""
    free: asyncio.Queue[Connection] = asyncio.Queue()
    for one in connections:
        free.put_nowait(one)
    began, tasks, n_late = time.perf_counter(), [], 0

    async def run(due: float) -> None:
        connection = await free.get()
        await send(connection, due)  # type: ignore[call-arg]
        free.put_nowait(connection)

    for at in range(int(rate * seconds)):
        due = began + at / rate
        wait = due - time.perf_counter()
        if wait > 0:
            await asyncio.sleep(wait)
        n_late += free.empty()
        tasks.append(asyncio.create_task(run(due)))
    await asyncio.gather(*tasks)
    return n_late


def bench_rank(args: argparse.Namespace, place: str, form: str, *options: str) -> dict:
    key, bodies, times = prepare(place), requests(64, form=form), []

    async def everyone(port: int) -> int:
        connections = [await Connection(port, key).open() for _ in range(48)]
        feedback = [await Connection(port, key).open() for _ in range(8)]
        pending: asyncio.Queue[tuple[str, str]] = asyncio.Queue()

        async def send(connection: Connection, due: float) -> None:
            status, content = await connection.post("/rank", bodies[len(times) % len(bodies)])
            times.append(time.perf_counter() - due)
            if status != 200:
                raise RuntimeError(content.decode())
            answer = json.loads(content)
            pending.put_nowait((answer["impression"], answer["items"][1]["id"]))

        async def click(connection: Connection) -> None:
            while True:
                id, item = await pending.get()
                await connection.post(
                    "/feedback", json.dumps({"impression": id, "clicks": [item], "final": True}).encode()
                )

        clickers = [asyncio.create_task(click(one)) for one in feedback]
        await at_rate(50, 1.0, connections, send)  # type: ignore[arg-type]
        times.clear()
        nonlocal before
        before = cpu_seconds(service.pid)
        n_late = await at_rate(args.rate, args.seconds, connections, send)  # type: ignore[arg-type]
        for one in clickers:
            one.cancel()
        return n_late

    before = 0.0
    with Process(place, *options) as service:
        n_late = asyncio.run(everyone(service.port))
        used = cpu_seconds(service.pid) - before
        p50, p90, p99 = np.percentile(1000 * np.array(times), [50, 90, 99]).round(2).tolist()
        return {
            "bench": "service", "part": "rank", "form": form, "options": list(options), "items": N, "features": D,
            "rate": args.rate,
            "requests": len(times), "p50_ms": p50, "p90_ms": p90, "p99_ms": p99, "no_free_connection": n_late,
            "cpu_ms_per_rank_and_feedback": round(1000 * used / len(times), 2),
            "memory_mb": round(memory_mb(service.pid), 1),
        }  # fmt: skip


def bench_events(args: argparse.Namespace, place: str, at_once: int) -> dict:
    key = prepare(place)
    n_sent = 0

    async def everyone(port: int) -> None:
        nonlocal n_sent, before
        await (await Connection(port, key).open()).post("/readyz", b"", "GET")
        before = cpu_seconds(service.pid)
        end = time.perf_counter() + args.seconds

        async def work(number: int) -> None:
            nonlocal n_sent
            connection, at = await Connection(port, key).open(), 0
            while time.perf_counter() < end:
                events = [
                    {"impression": f"l{number}-{at}", "item": f"i{one}", "id": f"{number}-{at}-{one}"}
                    for one in range(at_once)
                ]
                status, content = await connection.post("/feedback", json.dumps(events).encode())
                if status != 200 or json.loads(content)["accepted"] != at_once:
                    raise RuntimeError(content.decode())
                n_sent += at_once
                at += 1

        await asyncio.gather(*(work(number) for number in range(32)))

    before = 0.0
    with Process(place) as service:
        asyncio.run(everyone(service.port))
        used = cpu_seconds(service.pid) - before
    with open_database(place if "://" in place else Path(place, "corank.db")) as store:
        n_stored = int(store.read("SELECT COUNT(*) FROM events WHERE kind = 'feedback'")[0][0])
    return {
        "bench": "service", "part": "events", "events_per_request": at_once, "events": n_sent, "stored": n_stored,
        "durable_events_per_second": round(n_sent / args.seconds), "cpu_us_per_event": round(1e6 * used / n_sent, 1),
    }  # fmt: skip


def fill(place: str, n_events: int, d: int = 10) -> None:
    """Write lists of 10 items and one final click on each, without HTTP."""
    with open_database(place if "://" in place else Path(place, "corank.db")) as store:
        log, model = EventLog(store), Registry(store).serving("shop")[2]
        rng = np.random.default_rng(0)
        first, now = log.last_number(), time.time_ns() // 1_000_000
        for start in range(0, n_events // 2, 1000):
            events = []
            for at in range(start, min(start + 1000, n_events // 2)):
                id = f"{first + at:012x}"
                drawn = model.draw(rng.standard_normal((10, d)), None, 10, rng_state_of(id))
                body = json.dumps({"query": "q", "items": [f"i{one}" for one in range(10)], "learnt": 0})
                events.append(NewEvent("impression", id, now, body, "u", "shop/1", "", 300_000, pack(drawn.arrays)))
                events.append(NewEvent("feedback", id, now, "{}", "u", id, f"i{drawn.rows[1]}", CLICK | FINAL))
            log.append(events).result()


def wait_learnt(port: int, key: str) -> None:
    async def poll() -> None:
        connection = await Connection(port, key).open()
        while True:
            text = (await connection.post("/metrics", b"", "GET"))[1].decode()
            if "corank_learner_lag_events 0" in text and re.search(r"learner_last_event [1-9]", text):
                return
            await asyncio.sleep(0.2)

    asyncio.run(poll())


def bench_memory(args: argparse.Namespace, place: str) -> dict:
    key, points = prepare(place, 10), []
    began = time.perf_counter()
    with Process(place) as service:
        for _ in range(args.points):
            fill(place, args.events // args.points)
            wait_learnt(service.port, key)
            points.append(round(memory_mb(service.pid), 1))
        used = cpu_seconds(service.pid)
    size = sum(path.stat().st_size for path in Path(place).glob("corank.db*")) if "://" not in place else 0
    return {
        "bench": "service", "part": "memory", "events": args.events, "memory_mb": points,
        "learnt_events_per_cpu_second": round(args.events / used), "seconds": round(time.perf_counter() - began, 1),
        "bytes_per_event": round(size / args.events),
    }  # fmt: skip


def bench_restart(args: argparse.Namespace, place: str) -> dict:
    key, times, used = prepare(place, 10), [], []
    body = requests(1, 10, 10)[0]
    for _ in range(args.repeats):
        with Process(place) as service:

            async def ask(port: int) -> None:
                status, content = await (await Connection(port, key).open()).post("/rank", body)
                if status != 200:
                    raise RuntimeError(content.decode())

            asyncio.run(ask(service.port))
            times.append(time.perf_counter() - service.began)
            used.append(cpu_seconds(service.pid))
            wait_learnt(service.port, key)  # the new list is counted before the next start
    with open_database(place if "://" in place else Path(place, "corank.db")) as store:
        learnt = int(store.read("SELECT number FROM learner")[0][0])
    bare = []
    for _ in range(args.repeats):
        code = "import corank_lab.api.app, corank.clicks, uvicorn, time; print(time.process_time())"
        bare.append(float(subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.PIPE).stdout))
    return {
        "bench": "service", "part": "restart", "learnt_events": learnt, "seconds": [round(one, 2) for one in times],
        "cpu_seconds": used, "cpu_seconds_of_imports": [round(one, 2) for one in bare],
    }  # fmt: skip


def main(args: argparse.Namespace) -> None:
    for part in args.parts:
        runs: list[Callable[[str], dict]] = {
            "rank": [
                lambda place: bench_rank(args, place, "json"),
                lambda place: bench_rank(args, place, "float32"),
            ],
            "events": [lambda place: bench_events(args, place, 1), lambda place: bench_events(args, place, 100)],
            "memory": [lambda place: bench_memory(args, place) | {"restart": bench_restart(args, place)}],
        }[part]
        for run in runs:
            with tempfile.TemporaryDirectory() as folder:
                figures = {**run(args.database or folder), "fsync_ms": fsync_ms(Path(folder))}
                print(json.dumps({**figures, "load_average": round(os.getloadavg()[0], 1)}), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", default=["rank", "events", "memory"])
    parser.add_argument("--rate", type=float, default=300.0)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--points", type=int, default=5)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--database", help="address of a PostgreSQL database; SQLite by default")
    main(parser.parse_args())
