"""The workspace of comparisons: two cards, and the order of all items."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from math import log
from typing import Any

import numpy as np

from corank.data import Items, Votes, csv_text, has_votes, read_items, read_votes
from corank.errors import InputError
from corank_lab.database.database import ANY_NUMBER, ClaimableItem, Database, Project, StoredAnswer
from corank_lab.database.journal import entry_values, read_entry
from corank_lab.pages.markup import card, one_line, rich
from corank_lab.pages.uploads import Upload
from corank_lab.pages.workspaces import GUIDELINES, QUESTION, Export, NewProject, SaveResult, Setting, Workspace
from corank_lab.preferences.answers import (
    PreferenceAnswers,
    PreferenceEntry,
    PreferenceJournal,
    Question,
    items_payload,
    pair_key,
)
from corank_lab.preferences.model import agreement, judge_reliability
from corank_lab.preferences.session import OVERLAP, REPEAT, TOL, Pair, PreferenceFit, PreferenceSession

ACTIONS = PreferenceEntry.ACTIONS[:-1]
MAX_VOTES = 100_000
"""Largest number of votes of a file; `corank leaderboard` takes more."""


# characters that names of judges do not have
_NO_NAME = re.compile(r"[^\w .@-]+|^[^\w]+")


class PreferenceWorkspace(Workspace):  # noqa: D101
    __doc__ = Workspace.__doc__
    kind, title, entry = "compare", "Preferences", PreferenceEntry
    settings = (
        QUESTION,
        GUIDELINES,
        Setting(
            "repeat", REPEAT, "share", "Repeated questions (%)",
            "Share of questions that are asked again, to measure how consistent a judge is.", 0.0, 0.5,
        ),
        Setting(
            "overlap", OVERLAP, "share", "Shared questions (%)",
            "Share of questions that another judge answered, to measure agreement.",
        ),
        Setting(
            "tol", TOL, "number", "Smallest useful information (nats)",
            "Questions stop when no answer is expected to tell more; an answer tells 0.69 at most.", 0.0, 0.69,
        ),
    )  # fmt: skip

    def __init__(self, store: Database, project: Project) -> None:
        super().__init__(store, project)
        result = store.payload(project.id)
        self.items = Items(
            result["names"], np.array(result["X"], dtype=np.float64), result["fields"], result["columns"]
        )
        self.images = store.file_names(project.id)
        options = {name: self.setting(name) for name in ("repeat", "overlap", "tol")}
        self.session = PreferenceSession(self.items, has_votes=bool(project.settings.get("has_votes")), **options)
        self.log: list[tuple[StoredAnswer, PreferenceEntry]] = []

    @classmethod
    def create(cls, upload: Upload) -> NewProject:
        """Read a table of items or of votes, or take images as items."""
        if len(upload.tables) > 1:
            raise InputError(
                f"found {len(upload.tables)} tables; send one table of items, with images if they have some."
            )
        if upload.tables:
            with upload.on_disk() as (path,):
                if has_votes(path):
                    return cls._create_from_votes(read_votes(path), upload.tables[0].name)
                items, _ = read_items(path)
        else:
            names = sorted(upload.images)
            if len(names) < 2:
                raise InputError(f"found {len(names)} images and no table; send a table of items, or several images.")
            items = Items(names, fields=[{"image": name} for name in names])
        if len(items) > 5000:
            raise InputError(f"found {len(items)} items; 5,000 is the most that can be compared.")
        payload = items_payload(items)
        file = upload.tables[0].name if upload.tables else ""
        return NewProject({"files": PreferenceJournal.hash_of(payload), "file": file}, payload)

    @classmethod
    def _create_from_votes(cls, votes: Votes, file: str) -> NewProject:
        if len(votes) > MAX_VOTES:
            raise InputError(
                f"{file} has {len(votes):,} votes; 100,000 is the most here. Use corank leaderboard instead."
            )
        items = Items(votes.items)
        payload, answers = items_payload(items), []
        judges = [_NO_NAME.sub("-", judge)[:60].strip() or "unknown" for judge in votes.judges]
        for row, n in enumerate(votes.count.tolist()):
            a, b = int(votes.first[row]), int(votes.second[row])
            is_bad = votes.both_bad is not None and bool(votes.both_bad[row])
            action = "bad" if is_bad else ("left", "equal", "right")[int(votes.outcome[row])]
            entry = entry_values(PreferenceEntry(action, items.names[a], items.names[b], "import"))
            judge = "votes" if votes.judge is None else judges[int(votes.judge[row])]
            answers += [(judge, pair_key((a, b)), entry)] * n
        return NewProject(
            {"files": PreferenceJournal.hash_of(payload), "file": file, "has_votes": True}, payload, answers
        )

    def apply(self, answer: StoredAnswer) -> None:
        entry = read_entry(PreferenceEntry, answer.entry, f"answer {answer.number}")
        self.session.add(answer.judge, entry)
        self.log.append((answer, entry))

    def completed(self, entry: PreferenceEntry) -> tuple[str, PreferenceEntry]:
        """Return the pair of an entry of `corank prefer`."""
        PreferenceAnswers(self.items).add(entry)  # checks the names
        return pair_key([self.items.number.get(name, 0) for name in (entry.left, entry.right)]), entry

    def question(self, judge: str, item: str | None = None) -> dict[str, Any] | None:
        with self.lock:
            n_entries, seen = self.session.answers_of(judge).n_entries, self.last
            pair = self._pair(item) if item else None
            choices = self.session.choices(judge) if pair is None else []
        is_change = pair is not None
        if pair is None:
            candidates = [ClaimableItem(pair_key(pair), ANY_NUMBER if is_shared else 1) for pair, is_shared in choices]
            held = self.store.held_by(self.project.id, judge)
            if held is not None and candidates and held != candidates[0].item:
                # the same question until it is answered
                candidates.insert(0, ClaimableItem(held, ANY_NUMBER))
            claimed = self.store.claim(self.project.id, judge, candidates, seen) if candidates else None
            if claimed is None:
                return None
            pair = self._pair(claimed)
        with self.lock:
            asked, gain = self.session.question(judge, pair)
            before = self._before(judge, pair) if is_change else None
        if before is not None:
            asked = before[1]
        return {
            "template": "compare_question.html",
            "left": self.card(asked.left), "right": self.card(asked.right),
            "left_number": asked.left, "right_number": asked.right,
            "client_id": f"{n_entries}-{'change' if is_change else 'pair'}-{pair[0]}-{pair[1]}",
            "gain": None if gain is None or is_change else min(gain / log(2), 1.0),
            "is_change": is_change, "before": before[0] if before else "",
            "ask": self.setting("question"), "guidelines": rich(self.setting("guidelines")),
        }  # fmt: skip

    def save(self, judge: str, form: Mapping[str, str]) -> SaveResult:
        action = form.get("action", "")
        if action not in ACTIONS:
            raise InputError(f"the answer is {action!r}; choose one of {', '.join(ACTIONS)}.")
        left, right = self._number(form.get("left")), self._number(form.get("right"))
        pair = (min(left, right), max(left, right))
        if left == right:
            raise InputError("an item cannot be compared with itself; reload the page.")
        with self.lock:
            asked, _ = self.session.question(judge, pair)
        asked = Question(left, right, "change" if form.get("change") else asked.chosen_by)
        return self.append(judge, pair_key(asked), self.session.entry(action, asked), form.get("client_id", ""))

    def last_answer(self, judge: str) -> tuple[str, PreferenceEntry] | None:
        last = self.session.answers_of(judge).last
        return None if last is None else (pair_key(last), self.session.entry("undo", last))

    def history(self, judge: str) -> list[dict[str, Any]]:
        names = self.items.names
        with self.lock:
            answers = list(self.session.answers_of(judge).answers)
            times = {
                frozenset((entry.left, entry.right)): answer.time for answer, entry in self.log if answer.judge == judge
            }
        return [
            {
                "left": names[question.left], "right": names[question.right], "action": action,
                "is_left": action == "left", "is_right": action == "right", "by": question.chosen_by,
                "time": times.get(frozenset((names[question.left], names[question.right])), ""),
                "item": pair_key(question),
                "text": f"{names[question.left]} {names[question.right]}",
            }
            for action, question in reversed(answers)
        ]  # fmt: skip

    def progress(self, judge: str) -> dict[str, Any]:
        with self.lock:
            can_undo = self.session.answers_of(judge).last is not None
            return {**asdict(self.session.progress(judge)), "can_undo": can_undo}

    def overview(self) -> dict[str, Any]:
        with self.lock:
            model = self.session.model
            n_answers = sum(map(len, self.session.pairwise().values()))
            reliability = judge_reliability(self.session.judges)
            actions = Counter(action for item in self.session.judges.values() for action, _ in item.answers)
            same, both = agreement({judge: item.pairwise for judge, item in self.session.judges.items()})
        order, ticks = ([], []) if model is None else self._rows(model)
        return {
            "template": "compare_overview.html",
            "n_items": len(self.items), "n_answers": n_answers, "order": order, "ticks": ticks,
            "has_votes": self.session.has_votes,
            "n_ties": actions["equal"] + actions["bad"], "n_bad": actions["bad"],
            "expected_wrong": None if model is None else model.ranking.expected_disagreement,
            "is_behind": model is not None and model.n_answers < n_answers,
            "is_precise": model is not None and model.is_precise,
            "next_gain": model.gain(model.best) / log(2) if model is not None and model.best is not None else None,
            "reliability": reliability,
            "weights": {} if model is None else model.weights,
            "same": same, "both": both,
        }  # fmt: skip

    @property
    def exports(self) -> Mapping[str, Export]:
        return {
            "scores": Export(
                "Scores with standard deviations and 95 % intervals (CSV)", "scores.csv", "text/csv", self._scores
            ),
            "pairs": Export("All comparisons (CSV)", "pairs.csv", "text/csv", self._pairs),
            "log": Export("Log of answers (JSON lines)", "answers.jsonl", "application/jsonl", self.all_lines),
        }

    def card(self, number: int) -> dict[str, Any]:
        """Return what is shown of an item."""
        return {"name": one_line(self.items.names[number]), **card(self.items.fields[number], self.images)}

    def _learn(self) -> None:
        with self.lock:
            answers, asked = self.session.pairwise(), self.session.asked()
        model = self.session.learn(answers, asked)
        with self.lock:
            self.session.model = model

    def _before(self, judge: str, pair: Pair) -> tuple[str, Question] | None:
        answers = self.session.answers_of(judge).answers
        return next((item for item in reversed(answers) if set(item[1][:2]) == set(pair)), None)

    def _number(self, text: str | None) -> int:
        if text is None or not re.fullmatch("[0-9]{1,9}", text) or int(text) >= len(self.items):
            raise InputError("the form names an item that this project does not have; reload the page.")
        return int(text)

    def _pair(self, item: str) -> Pair:
        first, _, second = item.partition("-")
        a, b = self._number(first), self._number(second)
        if a >= b:
            raise InputError("the address names a pair that this project does not have; open the project again.")
        return a, b

    def _rows(self, model: PreferenceFit) -> tuple[list[dict[str, Any]], list[tuple[float, str]]]:
        """Return the rows of the order with their 95 % intervals, and the marks of the axis below."""
        from corank.comparison import Axis

        ranking, order = model.ranking, model.ranking.order
        ranks = [str(rank) for rank in range(1, len(order) + 1)]
        if model.board is not None:
            ranks = [str(best) if best == worst else f"{best}–{worst}" for best, worst in model.board.ranks_.tolist()]
        low, high = model.intervals
        margin = 0.04 * float(high.max() - low.min()) + 1e-9
        axis = Axis(float(low.min()) - margin, float(high.max()) + margin)

        def place(value: float) -> float:
            return round(100 * axis.place(value), 2)

        rows = [
            {
                "rank": rank, "name": one_line(self.items.names[i], 120),
                "score": float(ranking.score[i]), "std": float(ranking.std[i]),
                "x": place(ranking.score[i]), "x1": place(low[k]), "x2": place(high[k]), "zero": place(0.0),
            }
            for k, (rank, i) in enumerate(zip(ranks, order.tolist(), strict=True))
        ]  # fmt: skip
        return rows, [(place(value), label) for value, label in axis.ticks(4)]

    def _scores(self) -> str:
        self.background.wait()
        with self.lock:
            model = self.session.model
        if model is None:
            raise InputError("there are no answers yet; answer some questions first.")
        return csv_text(model.table(self.items))

    def _pairs(self) -> str:
        rows: list[list[object]] = [["number", "time", "judge", "left", "right", "answer", "chosen_by"]]
        with self.lock:
            for answer, entry in self.log:
                rows.append([answer.number, answer.time, answer.judge, entry.left, entry.right, entry.action, entry.by])
        return csv_text(rows)


def warm_up() -> None:
    """Load the compiled parts of the model before the first answer needs them."""
    for X in (np.empty((0, 0)), np.arange(4.0)[:, None]):
        session = PreferenceSession(Items(["a", "b", "c", "d"], X))
        session.answer(Question(0, 1), "left")
        session.next()
