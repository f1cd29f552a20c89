"""
Flip bits of a database: it is refused with a sentence, or gives the same answers, events, models and keys as before.

    PYTHONPATH=.:tests python tests/faults/flip.py --flips 240 [--seed 0]

Each copy of a database has one to eight flipped bits at one place. It is opened, read whole, and one answer is added.
A copy that is refused is then recovered: what `recover` returns must be among the rows of the sound database. Prints
one line of JSON: the number of copies that were refused, gave the same, gave something else, raised another error; and
the share of answers that were recovered from refused copies. The exit code is 1 if a copy gave something else or
raised.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np

from corank.errors import InputError
from corank_lab.api.log import TABLES, EventLog, Keys, NewEvent, pack
from corank_lab.database.backends import open_database
from corank_lab.database.transfer import recover

N_ANSWERS = 396


def make_database(path):
    """A database with projects, answers of several judges, links, images, events, a model and keys; returns a link."""
    with open_database(path) as store:
        for number in range(3):
            payload = {"texts": [f"Title {item} of project {number}" for item in range(80)]}
            project = store.add_project("grade", f"Project {number}", {"judges": 2, "scale": [0, 1, 2]}, payload).id
            token = store.add_judge(project, "ann")
            store.add_files(project, {"a.png": ("image/png", bytes(range(256)) * 20)})
            rows = [
                (judge, f"q|d{item}", {"action": "grade", "grade": item % 3, "note": f"because {item}"}, f"c{item}", "")
                for judge in ("ann", "bob")
                for item in range(N_ANSWERS // 6)
            ]
            store.append_all(project, rows)
        log = EventLog(store)
        arrays = pack({"X": np.arange(40.0).reshape(8, 5) / 7})
        shown = [
            NewEvent("impression", f"l{n}", n, json.dumps({"items": list(range(8))}), "u", "m/1", "", 0, arrays)
            for n in range(60)
        ]
        clicks = [NewEvent("feedback", f"f{n}", n, "{}", "u", f"l{n}", "3", 1) for n in range(60)]
        log.append([*shown, *clicks]).result()
        insert = (
            "INSERT INTO models (name, version, kind, recipe, initial, state, counts, learnt, created) "
            "VALUES (?, 1, 'fixed', '{}', ?, ?, '{}', 7, '2026')"
        )
        store.write((insert, "m", bytes(range(200)) * 30, bytes(range(100)) * 60))
        store.write(("INSERT INTO active_models (name, version, history) VALUES ('m', 1, '[]')",))
        Keys(store).add("shop", ["rank"])
    return token


def contents(store, token, *, is_whole=True):
    """Everything that pages and services show, by kind; without what a database with missing rows lacks or computes."""
    projects = store.projects()
    log = EventLog(store)
    events = log.after(0)
    numbers = [event.number for event in events]
    found = {
        "answers": [
            (project.id, *answer[:4], json.dumps(answer.entry), *answer[5:])
            for project in projects
            for judge in ("ann", "bob")
            for answer in store.answers(project.id, judge=judge)
        ],
        "projects": [str(project) for project in projects],
        "judges": [str(judge) for project in projects for judge in store.judges(project.id)],
        "events": [*events, *sorted(log.bodies(numbers).items())],
        "arrays": [(number, found["X"].tolist()) for number, found in sorted(log.arrays(numbers).items())],
        "models": [list(map(str, row)) for row in store.read("SELECT name, version, kind, recipe, initial FROM models")]
        + [list(map(str, row)) for row in store.read("SELECT state, counts, learnt FROM models")]
        + [list(map(str, row)) for row in store.read("SELECT name, version, history FROM active_models")],
        "keys": [str(key) for key in Keys(store)._rows()],
    }
    if is_whole:
        found["files"] = [(store.payload(project.id), store.file(project.id, "a.png")) for project in projects]
        found["links"] = [str(store.judge_of(token))]
        found["learner"] = store.read("SELECT id, number, oldest, counts FROM learner")
    return found


def outcome(path, token, expected):
    """Open a copy and use it; return what happened, and the message or what differs."""
    try:
        with open_database(path) as store:
            given = contents(store, token)
            project = store.projects()[0].id
            store.append(project, "ann", "q|new", {"action": "grade", "grade": 1}, "new")
            last = store.answers(project, judge="ann")[-1]
            if (last.item, last.client_id) != ("q|new", "new"):
                return "changed", "the new answer"
    except InputError as error:
        return "refused", str(error)
    except Exception as error:
        return "uncaught", f"{type(error).__name__}: {error}"
    differs = [kind for kind in expected if given[kind] != expected[kind]]
    return ("changed", ", ".join(differs)) if differs else ("same", "")


def flip(content, rng):
    """Flip one to eight bits of one place."""
    start = rng.randrange(len(content))
    for _ in range(rng.choice((1, 1, 2, 4, 8))):
        content[min(start + rng.randrange(3), len(content) - 1)] ^= 1 << rng.randrange(8)
    return start


def flip_many(flips, seed, folder):
    """Return the outcome of each copy: the place, what happened, the message."""
    rng = random.Random(seed)
    sound = folder / "sound.db"
    token = make_database(sound)
    with open_database(sound) as store:
        expected = contents(store, token)
    content = sound.read_bytes()
    results = []
    for number in range(flips):
        damaged = bytearray(content)
        start = flip(damaged, rng)
        path = folder / f"{number}" / "corank.db"
        path.parent.mkdir()
        path.write_bytes(damaged)
        result, message = outcome(path, token, expected)
        n_recovered = 0
        if result == "refused":
            assert path.read_bytes()[:100] == damaged[:100] or "read-only" in message
            n_recovered, wrong = recovered(path, token, expected)
            if wrong:
                result, message = "changed", f"recovered {wrong}"
        results.append((start, result, n_recovered, message))
        shutil.rmtree(path.parent)
    return results


def recovered(path, token, expected):
    """Return the number of answers that can be recovered, and in what they or other rows differ."""
    new = path.with_name("new")
    try:
        recover(path, new, apps=[TABLES])
    except InputError as error:
        return 0, "" if "nothing can be read" in str(error) else str(error)
    except Exception as error:
        return 0, f"{type(error).__name__}: {error}"
    with open_database(new / "corank.db") as store:
        given = {kind: list(map(str, rows)) for kind, rows in contents(store, token, is_whole=False).items()}
    wrong = [kind for kind in given if not set(given[kind]) <= set(map(str, expected[kind]))]
    return len(given["answers"]), ", ".join(wrong)


def main():
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("--flips", type=int, default=240)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--verbose", action="store_true", help="print one line for each copy")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        results = flip_many(options.flips, options.seed, Path(folder))
    if options.verbose:
        for line in results:
            print(*line, file=sys.stderr)
    counts = Counter(result for _, result, _, _ in results)
    shares = [n_recovered / N_ANSWERS for _, result, n_recovered, _ in results if result == "refused"]
    recovered_whole = sum(share == 1 for share in shares)
    mean = round(sum(shares) / max(len(shares), 1), 4)
    print(json.dumps({"flips": options.flips, **counts, "recovered_whole": recovered_whole, "mean_share": mean}))
    sys.exit(bool(counts["changed"] or counts["uncaught"]))


if __name__ == "__main__":
    main()
