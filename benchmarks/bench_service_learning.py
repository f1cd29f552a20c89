"""
Learning by the service against `simulate_clicks`, and what an event costs.

Simulated users are served by the service in this process, without HTTP: every list and click goes through the log on
disk and the learner. The database is closed and opened again at each point of the curve, as by a restart. Lists of 10
of 20 items with 20 features. With `--folder` a run continues where the last one ended, so that `--lists` may be raised
step by step. Every line of output is one figure as JSON; times are processor times of the whole process.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

import numpy as np
from msgspec import convert

from corank import PDGD, RankingData, evaluate, make_ranking
from corank.clicks import SimulatedUsers, simulate_clicks
from corank.deploy.persist.files import model_bytes
from corank_lab.api.history import compare_with_replay
from corank_lab.api.learner import LogLearner
from corank_lab.api.models import OnlineModel
from corank_lab.api.requests import Feedback, RankRequest
from corank_lab.api.service import Service
from corank_lab.database.backends import open_database

AT = (0, 10, 30, 100, 300, 1000, 3000, 10_000, 30_000, 50_000)
BATCH_SIZE = 200


def figure(**values: object) -> None:
    print(json.dumps({"bench": "service_learning", **values}), flush=True)


def problem() -> tuple[RankingData, RankingData]:
    made = make_ranking(300, 20, random_state=0)
    is_test = made.qid >= 200
    X = made.X / np.abs(made.X).max(axis=0)
    data, test = (RankingData.of(X[rows], made.y[rows], made.qid[rows]) for rows in (~is_test, is_test))
    return data, test


def serve(folder: Path, data: RankingData, users: SimulatedUsers, state: str, first: int, last: int) -> str:
    """Serve lists `first` to `last`; each is learnt before the next is drawn. Return the state of the generator."""
    with open_database(folder / "corank.db") as store:
        service = Service(store)
        if not service.registry.versions():
            ranker = PDGD(random_state=0)
            ranker._begin(data.X[:1], None)
            service.registry.add("clicks", "online", model_bytes(ranker), {})
        learner = LogLearner(service.log, service.registry)
        for number in range(first, last):
            rows = users.ask()
            request = {"items": rows.astype(str).tolist(), "features": data.X[rows].tolist(), "k": 10}
            answer = service.rank(convert({**request, "id": f"list {number}", "random_state": state}, RankRequest))
            shown, state = [int(one["id"]) for one in answer.content["items"]], answer.content["random_state"]
            clicked = users.click(shown)
            clicks = [str(row) for row, is_clicked in zip(shown, clicked, strict=True) if is_clicked]
            sent = {"impression": f"list {number}", "clicks": clicks, "final": True}
            answer.committed.result()
            service.append(service.feedback([(sent, convert(sent, Feedback))])).result()
            while learner.step():
                pass
    return state


def weights(folder: Path) -> np.ndarray:
    with open_database(folder / "corank.db") as store:
        model = Service(store).registry.model("clicks", 1)
        assert isinstance(model, OnlineModel)
        return model.ranker.coef_


def run(folder: Path, n_lists: int) -> None:
    data, test = problem()
    points = [point for point in AT if point < n_lists] + [n_lists]
    users = SimulatedUsers(data, "navigational", random_state=0)
    state = users.list_state.astype("<u8").tobytes().hex()
    saved = folder / "users.json"
    done, curve = 0, []
    if saved.exists():
        kept = json.loads(saved.read_text())
        done, state, curve = kept["done"], kept["state"], kept["curve"]
        users._rngs = np.array(kept["rngs"], dtype=np.uint64)
    alone = simulate_clicks(PDGD(), data, "navigational", n_lists, test=test, evaluate_at=points, random_state=0)
    for point in points:
        if point < done or (point == done and curve and curve[-1][0] == point):
            continue
        began, first = time.process_time(), done
        state = serve(folder, data, users, state, done, point)
        took, done = time.process_time() - began, point
        coef = weights(folder)
        value = evaluate(test.y, test.X @ coef, test.queries.codes, "nDCG@10")["nDCG@10"].mean
        curve.append((point, value))
        saved.write_text(json.dumps({"done": done, "state": state, "curve": curve, "rngs": users._rngs.tolist()}))
        of_simulate = float(alone.offline[0][points.index(point)])
        speed = round((point - first) / took) if point - first >= 1000 else None
        figure(
            what="curve", lists=point, service=round(value, 4), simulate=round(of_simulate, 4),
            is_equal=value == of_simulate, lists_per_second=speed,
        )  # fmt: skip
    figure(what="weights", lists=n_lists, equal_bits=weights(folder).tobytes() == alone.coefs[0].tobytes())
    costs(folder)


def costs(folder: Path) -> None:
    """Print what the log takes, and how fast it is read and learnt again."""
    with open_database(folder / "corank.db") as store:
        service = Service(store)
        kinds = dict(store.read("SELECT kind, COUNT(*) FROM events GROUP BY kind"))
        arrays = store.read("SELECT SUM(LENGTH(content)) FROM event_arrays")[0][0]
        pages = store.read("SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()")[0][0]
        n_events = sum(kinds.values())
        figure(
            what="log", events=n_events, lists=kinds["impression"], feedback=kinds["feedback"],
            bytes_per_event=round(pages / n_events), bytes_of_arrays_per_list=round(arrays / kinds["impression"]),
        )  # fmt: skip
        began = time.process_time()
        n_read = sum(len(part) for part in service.log.batches())
        figure(what="read events, without bodies", events_per_second=round(n_read / (time.process_time() - began)))
        began = time.process_time()
        different, _, last = compare_with_replay(service.log)
        took = time.process_time() - began
        figure(
            what="replay from the initial state", events_per_second=round(last / took),
            lists_per_second=round(kinds["impression"] / took), different=different,
        )  # fmt: skip


def speeds(folder: Path) -> None:
    """Print how fast new events are taken and learnt, in a database of their own."""
    data, _ = problem()
    serve(folder, data, SimulatedUsers(data, random_state=1), "1" * 64, 0, 10)
    request = {"items": [str(row) for row in range(20)], "features": np.eye(20).tolist(), "k": 10}
    with open_database(folder / "corank.db") as store:
        service = Service(store)
        began = time.process_time()
        for _ in range(10):
            waiting = []
            for _ in range(BATCH_SIZE):
                answer = service.rank(convert(request, RankRequest))
                sent = {"impression": answer.content["impression"], "clicks": ["1"], "final": True}
                waiting += [answer.committed, service.append(service.feedback([(sent, convert(sent, Feedback))]))]
            for one in waiting:
                one.result()
        n_events = 3 * 10 * BATCH_SIZE
        figure(what="take events, not learnt", events_per_second=round(n_events / (time.process_time() - began)))
        began = time.process_time()
        learner = LogLearner(service.log, service.registry)
        while learner.step():
            pass
        figure(what="learn in batches", lists_per_second=round(10 * BATCH_SIZE / (time.process_time() - began)))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lists", type=int, default=3000)
    parser.add_argument("--folder", type=Path, help="keep the database here, and continue with it")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        run(chosen.folder or Path(scratch), chosen.lists)
    with tempfile.TemporaryDirectory() as scratch:
        speeds(Path(scratch))
