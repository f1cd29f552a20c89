"""
A service that learns from clicks
=================================

Simulated users behind the real HTTP service: `corank serve start` ranks, records what was shown and clicked, and
learns with PDGD. The service is killed in the middle and started again. With equal seeds it has learnt the same bits as
``corank.clicks.simulate_clicks``. Then users compare the learnt model with an older one on interleaved lists until a
sequential test decides, and a bad version is activated and rolled back. Left: nDCG@10 of both on test queries. Right:
mean credit of the learnt model on interleaved lists, with the interval that may be looked at after every list.

The number of lists is the second argument (200 by default).
"""

from __future__ import annotations

import atexit
import http.client
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from corank import PDGD, SPD, RankingData, evaluate, load, make_ranking, save
from corank.cli import app
from corank.clicks import SimulatedUsers, simulate_clicks

N_LISTS = int(sys.argv[2]) if len(sys.argv) > 2 else 200
AT = [0, *(round(N_LISTS * share) for share in (0.03, 0.1, 0.25, 0.5, 1.0))]
SHOP = Path(tempfile.mkdtemp()) / "shop"


def corank(*words: object) -> None:
    """Run a command of corank in this process."""
    app([str(word) for word in words], standalone_mode=False)


class Server:
    """A running service, and a client of it."""

    def __init__(self, key: str = "") -> None:
        command = [sys.executable, "-m", "corank", "serve", "start", str(SHOP), "--port", "0", "--rate", "1000000"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        atexit.register(self.process.kill)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if line.startswith("Key"):  # shown once, when the database is new
            key, line = line.split()[-1], self.process.stdout.readline()
        self.key = key
        self.connection = http.client.HTTPConnection("127.0.0.1", int(line.split(":")[2].split(".")[0]))

    def send(self, method: str, target: str, value: object = None) -> dict:
        headers = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}
        body = json.dumps(value) if value is not None else None
        try:
            self.connection.request(method, target, body, headers)
            answer = self.connection.getresponse()
        except OSError:  # the service closes connections that are idle for a minute
            self.connection.close()
            self.connection.request(method, target, body, headers)
            answer = self.connection.getresponse()
        content = json.loads(answer.read())
        assert answer.status < 300, content
        return content

    def model(self, name: str) -> dict:
        return next(one for one in self.send("GET", "/models")["models"] if one["name"] == name and one["is_active"])


def kill(server: Server) -> None:
    """End the service without a warning, as a power cut would."""
    server.process.kill()
    server.process.wait()
    server.connection.close()


made = make_ranking(300, 20, random_state=0)
is_test = made.qid >= 200
X = made.X / np.abs(made.X).max(axis=0)
data, test = (RankingData.of(X[rows], made.y[rows], made.qid[rows]) for rows in (~is_test, is_test))
weak = SPD(random_state=0).fit(X[made.qid < 3], made.y[made.qid < 3], qid=made.qid[made.qid < 3])
save(weak, SHOP.parent / "weak.safetensors")
corank("serve", "add", SHOP, "clicks", "--online", "PDGD", "--columns", X.shape[1])
corank("serve", "add", SHOP, "old", "--model", SHOP.parent / "weak.safetensors")
server = Server()

# 1. learn from simulated users, with a restart in the middle
users = SimulatedUsers(data, "navigational", random_state=0)
state, curve, began = users.list_state.astype("<u8").tobytes().hex(), [], time.perf_counter()


def ndcg(coef: np.ndarray) -> float:
    return evaluate(test.y, test.X @ coef, test.queries.codes, "nDCG@10")["nDCG@10"].mean


for number in range(N_LISTS + 1):
    if number in AT:
        corank("serve", "save", SHOP, "clicks", "-o", SHOP.parent / "clicks.safetensors", "--force")
        curve.append(ndcg(load(SHOP.parent / "clicks.safetensors").coef_))
    if number == N_LISTS:
        break
    if number == N_LISTS // 2:
        kill(server)
        server = Server(server.key)
    rows = users.ask()
    request = {"model": "clicks", "id": f"list {number}", "k": 10, "random_state": state}
    items = {"items": rows.astype(str).tolist(), "features": data.X[rows].tolist()}
    answer = server.send("POST", "/rank", {**request, **items})
    shown, state = [int(one["id"]) for one in answer["items"]], answer["random_state"]
    clicks = [str(row) for row, is_clicked in zip(shown, users.click(shown), strict=True) if is_clicked]
    server.send("POST", "/feedback?wait=true", {"impression": answer["impression"], "clicks": clicks, "final": True})
seconds = time.perf_counter() - began
learnt = load(SHOP.parent / "clicks.safetensors")
alone = simulate_clicks(PDGD(), data, "navigational", N_LISTS, test=test, evaluate_at=AT, random_state=0)
print(f"{N_LISTS} lists in {seconds:.0f} s")
corank("serve", "events", "verify", SHOP)
print("nDCG@10, service: ", *(f"{value:.4f}" for value in curve))
print("nDCG@10, simulate:", *(f"{value:.4f}" for value in alone.offline[0]))
is_equal = learnt.coef_.tobytes() == alone.coefs[0].tobytes()
print(f"the weights of both are {'equal to the last bit' if is_equal else 'different'}")

# 2. an interleaved test of the learnt model against the old one
save(learnt, SHOP.parent / "learnt.safetensors")
corank("serve", "add", SHOP, "new", "--model", SHOP.parent / "learnt.safetensors")
corank("serve", "add", SHOP, "test", "--interleave", "new,old")
verdict, means, lows, highs = server.model("test")["verdict"], [], [], []
for number in range(1, 1501):
    rows = users.ask()
    items = {"items": rows.astype(str).tolist(), "features": data.X[rows].tolist()}
    answer = server.send("POST", "/rank", {"model": "test", "id": f"test {number}", "k": 10, **items})
    shown = [int(one["id"]) for one in answer["items"]]
    clicks = [str(row) for row, is_clicked in zip(shown, users.click(shown), strict=True) if is_clicked]
    server.send("POST", "/feedback", {"impression": answer["impression"], "clicks": clicks, "final": True})
    if number % 25 == 0:
        verdict = server.model("test")["verdict"]
        means.append(verdict["mean"] or 0.0)
        lows.append(verdict["low"])
        highs.append(verdict["high"])
        if verdict["winner"] is not None:
            break
print(f"the better model is {verdict['winner']}, decided after {verdict['decided_at']} lists with a click")

# 3. a version that is wrong, and back
save(SPD(random_state=0).fit(data.X, -data.y, qid=data.queries.codes), SHOP.parent / "wrong.safetensors")
corank("serve", "add", SHOP, "new", "--model", SHOP.parent / "wrong.safetensors")
server.send("POST", "/models/new/activate", {"version": 2})
wrong = server.model("new")["version"]
back = server.send("POST", "/models/new/activate", {"version": 1})["version"]
print(f"version {wrong} was activated, then version {back} again")
kill(server)

figure, (left, right) = plt.subplots(1, 2, figsize=(8.5, 3.8), layout="constrained")
left.plot(AT, alone.offline[0], color="0.7", linewidth=5, label="simulate")
left.plot(AT, curve, marker="o", markersize=4, label="service over HTTP")
left.axvline(N_LISTS // 2, linestyle=":", color="0.5")
left.text(N_LISTS // 2, min(curve), " killed and started", color="0.4")
left.set(xlabel="lists shown", ylabel="nDCG@10 on test queries")
left.legend()
looks = 25 * np.arange(1, len(means) + 1)
right.fill_between(looks, lows, highs, alpha=0.2, linewidth=0)
right.plot(looks, means)
right.axhline(0.0, color="0.5", linewidth=1)
right.set(xlabel="interleaved lists", ylabel="mean credit of the learnt model")
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "service.png", dpi=120)
