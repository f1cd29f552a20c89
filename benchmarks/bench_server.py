"""
Load of `corank serve`: answers per second, time until the next question is there, and memory.

Each line of output is one setting as JSON. Judges are clients of one process, without pauses (`think` 0) or with a
pause between question and answer. The time of a request runs from the answer to the complete next question: the answer
is on the disk by then. `grade` has documents of 20 per query, `compare` learns an order of 100 items in the background,
and `screen` learns from all answers to records of 120 words, of which 2 % are relevant.

    python benchmarks/bench_server.py --documents 1000 20000 --judges 1 5 20
    python benchmarks/bench_server.py --documents --items 0 --records 20000 --judges 20 --think 2
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from html import unescape
from pathlib import Path
from urllib.parse import urlencode

import numpy as np

from corank.judging.sessions.open_store import open_answer_store
from corank.server.app import KINDS
from corank.server.uploads import Upload, UploadedFile

FIELD = re.compile(r'<input type="hidden" name="(\w+)" value="([^"]*)"')
WORDS = ["heat", "pump", "house", "wind", "blade", "quiet", "owl", "salt", "ship", "brick", "wall", "fan", "noise"]


def table(kind: str, n: int) -> str:
    rng = np.random.default_rng(0)
    if kind == "screen":
        return reviews(n, rng)
    texts = [" ".join(rng.choice(WORDS, 60)) for _ in range(min(n, 500))]
    if kind == "compare":
        return "\n".join(["name,text,size", *(f"item {at},{texts[at % 500]},{rng.normal():.3f}" for at in range(n))])
    return "\n".join(
        ["query,docid,title,text", *(f"query {at // 20},d{at},Title {at},{texts[at % 500]}" for at in range(n))]
    )


def reviews(n: int, rng: np.random.Generator) -> str:
    """Records with words of a long-tailed distribution; every fiftieth is about bees."""
    rows = ["title,abstract,year,doi"]
    for at in range(n):
        words = [f"word{rank}" for rank in np.minimum(rng.zipf(1.3, 120), 30_000)]
        topic = "bees pesticide pollen " if at % 50 == 0 else ""
        rows.append(f"{topic}{' '.join(words[:10])} {at},{topic}{' '.join(words)},2001,10.1000/{at}")
    return "\n".join(rows)


def new_project(store: object, kind: str, n: int, settings: dict[str, object]) -> str:
    created = KINDS[kind].create(Upload([UploadedFile("x.csv", table(kind, n).encode())], {}))
    values = {one.name: one.default for one in KINDS[kind].settings} | dict(created.settings) | settings
    return store.add_project(kind, "load", values, created.payload).id  # type: ignore[attr-defined]


class Client:
    """A judge: one connection that stays open."""

    def __init__(self, port: int, token: str, path: str) -> None:
        self.port, self.path, self.token = port, path, token
        self.cookie = ""
        self.times: list[float] = []

    async def send(self, method: str, path: str, body: str = "") -> str:
        head = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", f"Cookie: {self.cookie}", "Sec-Fetch-Site: same-origin"]
        if body:
            head += ["X-Corank: 1", "Content-Type: application/x-www-form-urlencoded", f"Content-Length: {len(body)}"]
        self.writer.write(("\r\n".join(head) + "\r\n\r\n" + body).encode())
        answer = (await self.reader.readuntil(b"\r\n\r\n")).decode()
        if "200" not in answer.partition("\r\n")[0]:
            raise RuntimeError(answer.partition("\r\n")[0])
        if found := re.search(r"set-cookie: ([^;]+)", answer, flags=re.IGNORECASE):
            self.cookie = found[1]
        length = int(re.search(r"content-length: (\d+)", answer, flags=re.IGNORECASE)[1])  # type: ignore[index]
        return (await self.reader.readexactly(length)).decode()

    async def work(self, seconds: float, think: float, rng: np.random.Generator) -> None:
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
        await self.send("GET", f"/enter?token={self.token}")
        html = await self.send("GET", self.path)
        actions = ("left", "right") if "left_number" in html or 'name="left"' in html else ("grade-0", "grade-3")
        is_screening = 'value="relevant"' in html
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            if think:
                await asyncio.sleep(think * rng.uniform(0.5, 1.5))
            form = {
                name: unescape(value)
                for name, value in FIELD.findall(html.partition("data-answer")[2].partition("</form>")[0])
            }
            if not form:
                break
            action = actions[int(rng.integers(2))]
            if is_screening:
                action = "relevant" if "pesticide" in html.partition("</h1>")[0] else "not"
            body = urlencode({**form, "action": action})
            began = time.perf_counter()
            html = await self.send("POST", self.path, body)
            self.times.append(time.perf_counter() - began)
        self.writer.close()


def memory_mb(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) / 1024


def cpu_seconds(pid: int) -> float:
    """Processor time of a process: unlike the times of requests, it does not depend on other load."""
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def run(kind: str, n: int, n_judges: int, think: float, seconds: float, database: str | None, settings: dict) -> dict:
    with tempfile.TemporaryDirectory() as folder:
        address = database or str(Path(folder, "corank.db"))
        with open_answer_store(address) as store:
            project = new_project(store, kind, n, settings)
            tokens = [store.add_judge(project, f"judge{number}") for number in range(n_judges)]
        words = [sys.executable, "-m", "corank", "serve", folder, "--no-browser", "--port", "0"]
        words += ["--database", database] if database else []
        server = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        try:
            port = int(re.search(r":(\d+)/", server.stdout.readline())[1])  # type: ignore[union-attr, index]
            clients = [Client(port, token, f"/p/{project}/judge") for token in tokens]

            async def everyone() -> None:
                warm = Client(port, tokens[0], f"/p/{project}/judge")
                await warm.work(0.0, 0.0, np.random.default_rng(0))  # the project is read once
                await asyncio.sleep(n / 4000 if kind == "screen" else 0)  # the words of all records are counted
                nonlocal before
                before = cpu_seconds(server.pid)
                rngs = [np.random.default_rng(number) for number in range(n_judges)]
                await asyncio.gather(*(one.work(seconds, think, rng) for one, rng in zip(clients, rngs, strict=True)))

            before = 0.0
            asyncio.run(everyone())
            times = 1000 * np.concatenate([one.times for one in clients])
            p50, p95, p99 = np.percentile(times, [50, 95, 99]).round(1).tolist()
            return {
                "bench": "server", "kind": kind, "documents": n, "judges": n_judges, "think": think,
                "order": settings.get("order", ""),
                "database": "postgresql" if database else "sqlite", "answers": len(times),
                "per_second": round(len(times) / seconds, 1), "p50_ms": p50, "p95_ms": p95, "p99_ms": p99,
                "cpu_ms_per_answer": round(1000 * (cpu_seconds(server.pid) - before) / max(len(times), 1), 2),
                "memory_mb": round(memory_mb(server.pid), 1),
            }  # fmt: skip
        finally:
            server.kill()
            server.wait()
            server.stdout.close()  # type: ignore[union-attr]


def main(args: argparse.Namespace) -> None:
    for n_judges in args.judges:
        for think in args.think:
            for n in args.documents:
                settings = {"judges": 2, "order": args.order}
                print(json.dumps(run("grade", n, n_judges, think, args.seconds, args.database, settings)), flush=True)
            for n in args.records:
                settings = {"topic": "bees pesticide pollen"}
                print(json.dumps(run("screen", n, n_judges, think, args.seconds, args.database, settings)), flush=True)
            if args.items:
                print(
                    json.dumps(run("compare", args.items, n_judges, think, args.seconds, args.database, {})), flush=True
                )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, nargs="*", default=[1000, 20_000, 100_000])
    parser.add_argument("--records", type=int, nargs="*", default=[], help="records of screen")
    parser.add_argument("--items", type=int, default=100, help="items of compare; 0 leaves it out")
    parser.add_argument("--judges", type=int, nargs="+", default=[1, 5, 20])
    parser.add_argument("--think", type=float, nargs="+", default=[0.0, 1.0])
    parser.add_argument("--order", default="query")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--database", help="address of a PostgreSQL database; SQLite by default")
    main(parser.parse_args())
