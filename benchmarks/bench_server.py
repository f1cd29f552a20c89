"""
Load of `corank lab`: answers per second, time until the next question is there, and memory.

Each line of output is one setting as JSON. Judges are clients of one process, without pauses (`think` 0) or with a
pause between question and answer. The time of a request runs from the answer to the complete next question: the answer
is on the disk by then. `grade` has documents of 20 per query, `compare` learns an order of 100 items in the background,
and `screen` learns from all answers to records of 120 words, of which 2 % are relevant.

    python benchmarks/bench_server.py --documents 1000 20000 --judges 1 5 20
    python benchmarks/bench_server.py --documents --items 0 --records 20000 --judges 20 --think 2
    python benchmarks/bench_server.py --documents --items 0 --records 20000 --judges 1 --asreview path/to/bin/asreview

With `--asreview`, ASReview LAB answers the same questions to one judge: its page sends the label, which also trains a
model in the background, and then gets the next record; both requests are timed together. Ratios are ASReview / corank.
Without authentication it gives every client the same record, so there is no comparison with several judges.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from html import unescape
from pathlib import Path
from urllib.parse import urlencode

import numpy as np

from corank_lab.database.backends import open_database
from corank_lab.pages.app import KINDS
from corank_lab.pages.uploads import Upload, UploadedFile

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
        self.opened = 0.0

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


def cpu_seconds(pids: Iterable[int]) -> float:
    """Processor time of processes and their children: unlike times of requests, it does not depend on other load."""
    fields = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:15] for pid in pids]
    return sum(int(one) for ticks in fields for one in ticks) / os.sysconf("SC_CLK_TCK")


def summary(kind: str, n: int, n_judges: int, think: float, times: list[float], seconds: float) -> dict:
    """Figures of the times of requests, in seconds."""
    p50, p95, p99 = np.percentile(1000 * np.array(times), [50, 95, 99]).round(1).tolist()
    return {
        "bench": "server", "kind": kind, "documents": n, "judges": n_judges, "think": think, "answers": len(times),
        "per_second": round(len(times) / seconds, 1), "p50_ms": p50, "p95_ms": p95, "p99_ms": p99,
    }  # fmt: skip


def processes(session: int) -> list[int]:
    """Processes of a session."""
    found = [int(path.name) for path in Path("/proc").iterdir() if path.name.isdecimal()]
    return [pid for pid in found if _session(pid) == session]


def _session(pid: int) -> int:
    try:
        return os.getsid(pid)
    except OSError:
        return -1


def run_asreview(command: str, n: int, think: float, seconds: float) -> dict:
    """Label records through the API of ASReview LAB."""
    import httpx

    with tempfile.TemporaryDirectory() as folder, socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        words = [command, "lab", "--no-browser", "--skip-update-check", "--port", str(port)]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        environment = {**os.environ, "ASREVIEW_PATH": folder}
        server = subprocess.Popen(words, env=environment, cwd=folder, start_new_session=True, **quiet)  # type: ignore[call-overload]
        rng = np.random.default_rng(0)
        try:
            with httpx.Client(base_url=f"http://127.0.0.1:{port}/api/projects", timeout=600) as client:
                for _ in range(1200):
                    try:
                        client.get("")
                        break
                    except httpx.TransportError:
                        time.sleep(0.1)
                file = ("x.csv", table("screen", n).encode())
                made = client.post("/create", data={"mode": "oracle"}, files={"file": file}).raise_for_status().json()
                id = made["id"]
                client.put(f"/{id}/review", data={"status": "review"}).raise_for_status()
                record = client.get(f"/{id}/get_record").raise_for_status().json()["result"]
                # one relevant record is known, so that the model learns from the first label on
                prior = {"record_id": 0, "label": 1, "retrain_model": "1"}
                client.post(f"/{id}/record/0", data=prior).raise_for_status()
                pids = processes(server.pid)
                before, times = cpu_seconds(pids), []
                end = time.perf_counter() + seconds
                while time.perf_counter() < end:
                    if think:
                        time.sleep(think * rng.uniform(0.5, 1.5))
                    number = record["record_id"]
                    label = {"record_id": number, "label": int("pesticide" in record["title"]), "retrain_model": "1"}
                    began = time.perf_counter()
                    client.post(f"/{id}/record/{number}", data=label).raise_for_status()
                    record = client.get(f"/{id}/get_record").raise_for_status().json()["result"]
                    times.append(time.perf_counter() - began)
            pids = processes(server.pid)
            return summary("asreview", n, 1, think, times, seconds) | {
                "cpu_ms_per_answer": round(1000 * (cpu_seconds(pids) - before) / len(times), 2),
                "memory_mb": round(sum(memory_mb(pid) for pid in pids), 1),
            }
        finally:
            os.killpg(server.pid, signal.SIGKILL)
            server.wait()


def run(kind: str, n: int, n_judges: int, think: float, seconds: float, database: str | None, settings: dict) -> dict:
    with tempfile.TemporaryDirectory() as folder:
        address = database or str(Path(folder, "corank.db"))
        with open_database(address) as store:
            project = new_project(store, kind, n, settings)
            tokens = [store.add_judge(project, f"judge{number}") for number in range(n_judges)]
        words = [sys.executable, "-m", "corank", "lab", folder, "--no-browser", "--port", "0"]
        words += ["--database", database] if database else []
        server = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        try:
            port = int(re.search(r":(\d+)/", server.stdout.readline())[1])  # type: ignore[union-attr, index]
            clients = [Client(port, token, f"/p/{project}/judge") for token in tokens]

            async def everyone() -> None:
                warm, began = Client(port, tokens[0], f"/p/{project}/judge"), time.perf_counter()
                await warm.work(0.0, 0.0, np.random.default_rng(0))  # the project is read once
                clients[0].opened = time.perf_counter() - began
                await asyncio.sleep(n / 4000 if kind == "screen" else 0)  # the words of all records are counted
                nonlocal before
                before = cpu_seconds([server.pid])
                rngs = [np.random.default_rng(number) for number in range(n_judges)]
                await asyncio.gather(*(one.work(seconds, think, rng) for one, rng in zip(clients, rngs, strict=True)))

            before = 0.0
            asyncio.run(everyone())
            times = [seconds for one in clients for seconds in one.times]
            used = cpu_seconds([server.pid]) - before
            return summary(kind, n, n_judges, think, times, seconds) | {
                "order": settings.get("order", ""), "database": "postgresql" if database else "sqlite",
                "opened_s": round(clients[0].opened, 2),
                "cpu_ms_per_answer": round(1000 * used / max(len(times), 1), 2),
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
                ours = run("screen", n, n_judges, think, args.seconds, args.database, settings)
                print(json.dumps(ours), flush=True)
                if args.asreview and n_judges == 1:
                    theirs = run_asreview(args.asreview, n, think, args.seconds)
                    names = ("p50_ms", "p95_ms", "p99_ms", "cpu_ms_per_answer", "memory_mb")
                    theirs["ratios"] = {name: round(theirs[name] / max(ours[name], 1e-3), 2) for name in names}
                    print(json.dumps(theirs), flush=True)
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
    parser.add_argument("--asreview", help="command of ASReview, in an environment of its own")
    parser.add_argument("--database", help="address of a PostgreSQL database; SQLite by default")
    main(parser.parse_args())
