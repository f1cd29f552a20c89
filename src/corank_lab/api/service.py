"""
The service itself, without HTTP: rank, and take feedback.

Whether feedback counts as a click, and whether a rule excludes it, is decided when it arrives and stored with it. A
change of the rules therefore never changes what the log means.
"""

from __future__ import annotations

import json
import re
import secrets
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

import numpy as np
from msgspec import UNSET, UnsetType

from corank.errors import InputError
from corank_lab.api.learner import LearnerThread
from corank_lab.api.log import CLICK, EXCLUDED, FINAL, EventLog, NewEvent, now_ms, pack
from corank_lab.api.models import Registry, RngState, rng_state_of, subject_of
from corank_lab.api.requests import Feedback, RankItem, RankRequest, distinct, dump_json, features_of, made_id
from corank_lab.database.database import Database

_MAX_USERS = 100_000  # number of users whose feedback of the current minute is counted


@dataclass(frozen=True)
class Rules:
    """What feedback means."""

    window_seconds: float = 300.0  # time to wait for feedback on a list, unless it is closed by final feedback
    clicks: tuple[str, ...] = ("click", "purchase")  # actions that count as a click
    min_dwell_seconds: float = 30.0  # an action "dwell" of at least this time counts as a click
    excluded_users: frozenset[str] = frozenset()  # users whose feedback is not learnt
    # pattern of user agents whose feedback is not learnt, in any case of letters
    bots: str = "bot|crawl|spider|slurp|headless"
    max_per_minute: int = 120  # a user with more events in a minute is a bot; later ones of that minute are not learnt


class Conflict(InputError):
    """A request repeats the id of another one."""

    status = 409


@dataclass(frozen=True)
class Answer:
    """The answer to a request for a ranking."""

    committed: Future[list[int]]  # set when the list is in the log
    content: dict[str, Any]  # the answer, as JSON values
    asked: dict[str, Any]  # what a request with the same id must equal; the model is None if the request names none


class Service:
    """Ranks and records; learns in the background."""

    def __init__(self, store: Database, rules: Rules = Rules()) -> None:
        self.store, self.rules = store, rules
        self.log, self.registry = EventLog(store), Registry(store)
        self.learner = LearnerThread(self.log, self.registry)
        self._bots = re.compile(rules.bots, re.IGNORECASE) if rules.bots else None
        self._minute, self._of_users = 0, Counter[str]()

    def start(self) -> None:
        for name in self.registry.active:
            model = self.registry.serving(name)[2]
            model.draw(np.zeros((2, model.n_features)), np.zeros(2) if model.has_prior else None, 2, rng_state_of(""))
        self.learner.start()

    def close(self) -> None:
        if self.learner.is_alive():
            self.learner.close()

    def rank(self, request: RankRequest) -> Answer:
        wanted = request.model or None
        name, version, model = self.registry.serving(wanted)
        items = [RankItem(item) if isinstance(item, str) else item for item in request.items]
        ids = distinct([item.id for item in items])
        X, prior = features_of(request, items, model)
        k = request.k or len(ids)
        now = now_ms()
        id = request.id or f"{now:012x}{secrets.token_hex(8)}"
        state = _rng_state(request.random_state, id)
        with np.errstate(over="ignore", invalid="ignore"):  # overflow is refused below
            drawn = model.draw(X, prior, k, state)
        if not np.isfinite(drawn.arrays["scores"]).all():
            raise InputError(
                f"scores of {name} version {version} overflow on these items; scale their features, or train another "
                "version."
            )
        query = request.query or ""
        body = {"query": query, "items": ids, "k": k, "model": name, "version": version, "learnt": model.n_learnt}
        event = NewEvent(
            "impression", id, now, json.dumps(body), request.user or "", subject_of(name, version), "",
            int(1000 * self.rules.window_seconds), pack(drawn.arrays),
        )  # fmt: skip
        shown = [{"id": ids[row], "score": float(drawn.scores[row])} for row in drawn.rows]
        content = {"impression": id, "model": name, "version": version, "learnt": model.n_learnt, "items": shown}
        if request.random_state is not UNSET:
            content["random_state"] = state.astype("<u8").tobytes().hex()
        return Answer(self.append([event]), content, {"items": ids, "k": k, "query": query, "model": wanted})

    def logged(self, answer: Answer) -> dict[str, Any]:
        """Return the answer that was given before to the same request; raise `Conflict` if it was another one."""
        id = answer.content["impression"]
        result = self.log.number_of("impression", id)
        if result is None:
            raise InputError("this list was removed from the log; ask for a ranking with another id.")
        body = json.loads(self.log.bodies([result])[result])
        arrays = self.log.arrays([result]).get(result)
        if arrays is None:
            raise Conflict("the id is that of a list that was ranked elsewhere; ask for a ranking with another id.")
        for name, asked in answer.asked.items():
            if asked is not None and body[name] != asked:
                raise Conflict(
                    f"the id {id[:60]!r} is that of an earlier request with another value of {name}; send a new id."
                )
        scores = arrays["scores"] if arrays["scores"].ndim == 1 else arrays["scores"][0]
        shown = [{"id": body["items"][row], "score": float(scores[row])} for row in arrays["rows"]]
        return {"impression": id} | {name: body[name] for name in ("model", "version", "learnt")} | {"items": shown}

    def feedback(self, sent: Sequence[tuple[Mapping[str, Any], Feedback]]) -> list[NewEvent]:
        """Return the events of a request with feedback; each is given as it was sent and as it was read."""
        return [event for data, read in sent for event in self._feedback(data, read)]

    def _feedback(self, data: Mapping[str, Any], sent: Feedback) -> list[NewEvent]:
        item = sent.item or ""
        if sent.clicks is UNSET:
            if not (item or sent.final):
                raise InputError("item is missing; send the id of an item, or final feedback.")
            action = sent.action or ("click" if item else "close")
            return [self._event(data, sent, item, action, sent.id, final=sent.final)]
        rest = {name: value for name, value in data.items() if name != "clicks"}
        events = []
        for item in dict.fromkeys(sent.clicks):
            id = made_id(sent.id, item) if sent.id else None
            events.append(self._event({**rest, "id": id}, sent, item, "click", id))
        if sent.final:
            events.append(self._event(rest, sent, "", "close", sent.id, final=True))
        return events

    def _event(
        self, data: Mapping[str, Any], sent: Feedback, item: str, action: str, id: str | None, *, final: bool = False
    ) -> NewEvent:
        """Return one event of feedback, and decide what it means."""
        impression, user = sent.impression, sent.user or ""
        seconds, agent, owner = sent.seconds, sent.agent or "", sent.owner or ""
        is_click = action in self.rules.clicks or (
            action == "dwell" and seconds is not None and seconds >= self.rules.min_dwell_seconds
        )
        reason = self._exclusion(user, agent, owner)
        body = {**data, "action": action} | ({"excluded": reason} if reason else {})
        bits = CLICK * bool(is_click and item) | FINAL * final | EXCLUDED * bool(reason)
        id = id or made_id(
            impression, item, action, "final" * final, user, agent, owner, "" if seconds is None else repr(seconds)
        )
        return NewEvent("feedback", id, now_ms(), dump_json(body), user, impression, item, bits)

    def _exclusion(self, user: str, agent: str, owner: str) -> str:
        """Return why feedback is not learnt; empty if it is."""
        if user in self.rules.excluded_users:
            return "user"
        if agent and self._bots is not None and self._bots.search(agent):
            return "bot"
        if user and user == owner:
            return "own item"
        if user:
            minute = now_ms() // 60_000
            if minute != self._minute or len(self._of_users) > _MAX_USERS:
                self._minute, self._of_users = minute, Counter()
            self._of_users[user] += 1
            if self._of_users[user] > self.rules.max_per_minute:
                return "too many"
        return ""

    def require_shown(self, events: Sequence[NewEvent]) -> None:
        """Raise if an event is a click on an item that its list did not show; lists of other systems are unknown."""
        clicks = [event for event in events if event.kind == "feedback" and event.flag & CLICK]
        if not clicks:
            return
        shown = self.log.shown({event.subject for event in clicks})
        for event in clicks:
            if event.subject in shown and event.item not in shown[event.subject]:
                raise InputError(
                    f"the list {event.subject[:60]!r} did not show the item {event.item[:60]!r}, so it cannot have "
                    "been clicked there; send the id of the list that showed it."
                )

    def append(self, events: Sequence[NewEvent]) -> Future[list[int]]:
        """Append events to the log, and wake the learner after the commit."""
        future = self.log.append(events)
        future.add_done_callback(lambda _: self.learner.notify())
        return future


def _rng_state(given: str | UnsetType | None, id: str) -> RngState:
    if not isinstance(given, str):
        return rng_state_of(id)
    try:
        state = np.frombuffer(bytes.fromhex(given), dtype="<u8").astype(np.uint64)
    except ValueError:
        state = np.empty(0, dtype=np.uint64)
    if len(state) != 4 or not state.any():
        raise InputError("random_state must be 64 hexadecimal digits that are not all zero.")
    return state
