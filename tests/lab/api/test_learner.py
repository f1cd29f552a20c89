"""Learning from the log: against a naive reading of the rules, with restarts at any place, on both databases."""

from __future__ import annotations

import json

import numpy as np
import pytest

from corank import PDGD
from corank.clicks import Impression, InterleavingTest, PairwiseEpsilonGreedy
from corank.deploy.persist.files import model_bytes, model_from_bytes
from corank_lab.api.learner import Lease, LogLearner, OpenLists, replay, require_lease
from corank_lab.api.log import CLICK, EXCLUDED, FINAL, Event, EventLog, NewEvent, pack, unpack
from corank_lab.api.models import InterleavedModel, Registry, rng_state_of
from helpers.api import online_bytes
from helpers.stores import open_new

D = 4


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.long)])
def store(request, tmp_path):
    with open_new(request.param, tmp_path) as opened:
        yield opened


def shown(registry, id, time, window, rng, name="shop", *, prior=False):
    """Draw a list with the model that serves, and return its event and the ids of the items shown."""
    name, version, model = registry.serving(name)
    X = rng.standard_normal((7, D)).round(2)
    offset = rng.standard_normal(7) if prior else None
    drawn = model.draw(X, offset, 5, rng_state_of(id))
    items = [f"{id}-{at}" for at in range(7)]
    body = json.dumps({"items": items, "learnt": model.n_learnt})
    event = NewEvent("impression", id, time, body, "", f"{name}/{version}", "", window, pack(drawn.arrays))
    return event, [items[row] for row in drawn.rows]


def write_log(log, registry, rng, n=60, *, prior=False, step=lambda: None):
    """Write a log with late, final, excluded and unknown feedback, and learn now and then."""
    time, lists = 1000, []
    for at in range(n):
        time += int(rng.integers(0, 8))
        event, items = shown(registry, f"list{at}", time, int(rng.choice([5, 20])), rng, prior=prior)
        lists.append((event.id, items))
        events = [event]
        for _ in range(int(rng.integers(0, 3))):
            id, items = lists[int(rng.integers(max(0, at - 6), at + 1))]
            bits = (
                CLICK * int(rng.random() < 0.8) | FINAL * int(rng.random() < 0.2) | EXCLUDED * int(rng.random() < 0.1)
            )
            item = items[int(rng.integers(len(items)))]
            events.append(NewEvent("feedback", f"f{at}/{len(events)}", time, "{}", "u", id, item, int(bits)))
        if rng.random() < 0.1:
            events.append(NewEvent("feedback", f"unknown{at}", time, "{}", "u", "no list", "x", CLICK))
        log.append(events).result()
        if rng.random() < 0.4:
            step()


@pytest.mark.parametrize(
    ("ranker", "prior"),
    [(PDGD(random_state=0), False), (PDGD(random_state=0), True),
     (PairwiseEpsilonGreedy(random_state=0), False)],
    ids=["pdgd", "prior", "greedy"],
)  # fmt: skip
def test_learning_with_restarts_equals_a_naive_reading_of_the_log_and_a_replay(store, ranker, prior):
    rng = np.random.default_rng(5)
    log, registry = EventLog(store), Registry(store)
    initial = online_bytes(D, ranker, prior=prior)
    registry.add("shop", "online", initial, {})
    current = LogLearner(log, registry)

    def step():
        nonlocal current
        if rng.random() < 0.5:  # a restart
            current = LogLearner(log, registry)
        current.step()

    write_log(log, registry, rng, prior=prior, step=step)
    last = log.last_number()
    while current.number < last:
        current.step()
    counts = dict(current.counts)
    assert min(counts[name] for name in ("late", "unknown", "excluded")) > 1
    state = bytes(store.read("SELECT state FROM models")[0][0])
    assert replay(log, last)[0] == {"shop/1": state}
    fresh = LogLearner(log, registry)
    assert (fresh.number, fresh.n_open, fresh.counts) == (last, current.n_open, counts)
    learnt = model_from_bytes(state, type(ranker))
    expected = model_from_bytes(initial, type(ranker))
    assert learnt.n_learnt_ > 40
    naive_ranker, n_closed = naive_closings(log, expected)
    assert learnt.n_learnt_ == n_closed
    np.testing.assert_array_equal(learnt.coef_, naive_ranker.coef_)


def naive_closings(log, ranker):
    """
    Learn by the library's own `learn`.

    For every event the whole log before it is looked at again: which lists are open, and which of them it closes.
    """
    events = [event for part in log.batches() for event in part]
    closed: dict[int, set[str]] = {}
    for at, event in enumerate(events):
        before = [one for one in events[:at] if one.kind == "impression" and one.number not in closed]
        expired = []
        for one in before:  # the oldest first, and none before an older one
            if event.time < one.time + one.flag:
                break
            expired.append(one)
        final = [
            one for one in before
            if one not in expired and event.kind == "feedback" and event.subject == one.id
            and event.flag & FINAL and not event.flag & EXCLUDED
        ]  # fmt: skip
        for one in expired + final:
            end = at if one in expired else at + 1
            closed[one.number] = {
                other.item for other in events[:end]
                if other.kind == "feedback" and other.subject == one.id and other.flag & CLICK
                and not other.flag & EXCLUDED
            }  # fmt: skip
    for number, clicked in closed.items():
        found, body = log.arrays([number])[number], json.loads(log.bodies([number])[number])
        parts = (found["rows"], found["log_propensities"], body["learnt"], found["X"], found["scores"])
        impression = Impression(number, *parts, found.get("prior"))
        ranker.learn(impression, [body["items"][row] in clicked for row in found["rows"]])
    return ranker, len(closed)


def test_two_learners_at_once_learn_nothing_twice(store):
    rng = np.random.default_rng(0)
    log, registry = EventLog(store), Registry(store)
    registry.add("shop", "online", online_bytes(D), {})
    learners = [LogLearner(log, registry), LogLearner(log, registry)]
    write_log(log, registry, rng, step=lambda: learners[int(rng.integers(2))].step())
    last = log.last_number()
    while min(one.number for one in learners) < last:
        learners[int(rng.integers(2))].step()
    assert replay(log, last)[0] == {"shop/1": bytes(store.read("SELECT state FROM models")[0][0])}


def test_an_event_that_is_sent_again_changes_nothing(store):
    log = EventLog(store)
    first = NewEvent("feedback", "a", 1, '{"n": 1}', "u", "list", "x", CLICK)
    again = first._replace(body='{"n": 2}', item="y")
    assert log.append([first]).result() == [1]
    assert log.append([again, first._replace(kind="judgement")]).result()[0] == 0
    assert log.bodies([1]) == {1: '{"n": 1}'}
    assert [event.item for event in log.after(0)] == ["x", "x"]


def test_lists_above_the_largest_number_are_closed_oldest_first():
    lists = OpenLists(most=2)
    closed = [lists.feed(Event(at, "impression", f"l{at}", 0, "", "shop/1", "", 10**6))[0] for at in range(4)]
    assert [[one.number for one in part] for part in closed] == [[], [], [0], [1]]
    assert lists.counts["closed_early"] == 2


def test_the_interleaved_test_counts_the_lists_that_each_model_won(store):
    log, registry = EventLog(store), Registry(store)
    rng = np.random.default_rng(0)
    good, bad = PDGD(random_state=0), PDGD(random_state=0)
    contents = []
    for ranker, sign in ((good, 1.0), (bad, -1.0)):
        ranker._begin(np.zeros((1, D)), None)
        ranker.coef_ = sign * np.ones(D)
        contents.append(model_bytes(ranker))
    for name, content in zip(("good", "bad"), contents, strict=True):
        registry.add(name, "online", content, {})
    registry.add("test", "interleaved", InterleavedModel.start(("good", 1), ("bad", 1), registry.model), {})
    wins = [0, 0]
    for at in range(40):
        event, items = shown(registry, f"l{at}", at, 100, rng, "test")
        found = unpack(event.arrays)
        teams, best = found["teams"], int(np.argmax(found["X"][found["rows"]].sum(axis=1)))
        clicked = items[best]
        wins[int(teams[best])] += 1 if teams[best] >= 0 else 0
        final = NewEvent("feedback", f"f{at}", at, "{}", "", event.id, clicked, CLICK | FINAL)
        other, _ = shown(registry, f"g{at}", at, 100, rng, "good")
        log.append([other, NewEvent("feedback", f"h{at}", at, "{}", "", other.id, "", FINAL), event, final]).result()
    learner = LogLearner(log, registry)
    while learner.step():
        pass
    lists = {row.name: row.counts.get("lists", 0) for row in registry.versions()}
    assert lists == {"bad": 0, "good": 40, "test": 40}
    report = registry.model("test", 1).report()
    assert report["wins"] == wins
    assert wins[0] > 3 * wins[1]
    credits = [1.0] * wins[0] + [-1.0] * wins[1]
    expected = InterleavingTest().add(credits).verdict()
    assert (report["verdict"]["winner"], report["verdict"]["n_lists"]) == ("good/1", 40)
    assert report["verdict"]["mean"] == pytest.approx(expected.mean)
    assert report["verdict"]["low"] == pytest.approx(expected.low)
    assert (
        InterleavedModel(InterleavedModel.start(("good", 1), ("bad", 1), registry.model), registry.model).report()[
            "verdict"
        ]["winner"]
        is None
    )


def test_one_process_at_a_time_has_the_lease(store):
    first, second = Lease(store), Lease(store)
    assert first.take()
    assert first.take()
    assert not second.take()
    with pytest.raises(ValueError, match="a service is running on this database"):
        require_lease(store)
    first.release()
    assert second.take()
    second.release()


@pytest.mark.parametrize("values", [[0.1, 2.5], [0.5, 0.25], [1e300, 0.0]])
def test_packed_arrays_keep_every_bit(values):
    arrays = {"X": np.array([values]), "rows": np.array([3, 2**40])}
    for name, found in unpack(pack(arrays)).items():
        assert found.dtype == arrays[name].dtype
        np.testing.assert_array_equal(found, arrays[name])
