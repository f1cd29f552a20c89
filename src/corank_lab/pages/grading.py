"""The workspace of grades: a query, a document, and a scale."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cached_property
from hashlib import sha256
from typing import Any

import numpy as np
from markupsafe import Markup

from corank.errors import InputError
from corank_lab.database.database import ClaimableItem, Database, Project, StoredAnswer
from corank_lab.database.journal import entry_values, read_entry
from corank_lab.grading.export import EXPORTS, GradingExport, GradingFeatures, as_features, grading_features
from corank_lab.grading.session import MAX_LIST, ORDERS, AlphaInterval, GradingSession, alpha_interval
from corank_lab.grading.task import GradingEntry, GradingScale, GradingTask, read_grading_task, title_column
from corank_lab.pages import training
from corank_lab.pages.markup import card, clean, one_line, rich
from corank_lab.pages.uploads import Upload
from corank_lab.pages.workspaces import (
    GUIDELINES,
    MAX_CHARACTERS,
    QUESTION,
    Export,
    NewProject,
    SaveResult,
    Setting,
    Workspace,
)

_SNIPPET = 200
_SHOWN = 100  # number of queries and conflicts that the overview lists


class GradeWorkspace(Workspace):  # noqa: D101
    __doc__ = Workspace.__doc__
    kind, title, entry = "grade", "Grade", GradingEntry
    settings = (
        QUESTION,
        GUIDELINES,
        Setting(
            "scale", GradingScale().lines(), "lines", "Scale",
            "One grade per line, such as: 0 = off topic. Grades that were given must stay.",
        ),
        Setting(
            "view", "one", "choice", "What judges see",
            "A list shows the documents of a query together; they are shuffled if the rank is hidden.",
            choices={"one": "One document at a time", "list": "A result list"},
        ),
        Setting(
            "order", "query", "choice", "What comes next",
            "The model chooses documents whose grade is most uncertain.", choices=ORDERS,
        ),
        Setting(
            "depth", 0, "number", "Depth", "Number of first documents of each query that are graded; 0 means all.",
            0, 1_000_000,
        ),
        Setting(
            "judges", 1, "number", "Judges per document",
            "Number of judges who grade each document of the shared part.", 1, 50,
        ),
        Setting(
            "shared", 1.0, "share", "Shared part (%)",
            "Share of documents that several judges grade; the others are graded by one.",
        ),
        Setting(
            "show_rank", False, "flag", "Show the rank of the document",
            "Judges who see the rank tend to agree with it, so it is hidden by default.",
        ),
        Setting(
            "use_texts", True, "flag", "Learn also from the words of query and text",
            "Otherwise “Train and compare” learns from numeric columns and the given order only.",
        ),
        Setting("index", "documents", "text", "Index", "Name of the index in the file for Elasticsearch."),
    )  # fmt: skip

    def __init__(self, store: Database, project: Project) -> None:
        super().__init__(store, project)
        self.task = GradingTask.from_json(store.payload(project.id))
        self.images = store.file_names(project.id)
        self.session = GradingSession(
            self.task, GradingScale.of_lines(self.setting("scale")), order=self.setting("order"),
            depth=int(self.setting("depth")), overlap=int(self.setting("judges")), shared=self.setting("shared"),
            list_size=MAX_LIST if self.is_list else 1,
        )  # fmt: skip
        self._alpha: tuple[int, AlphaInterval] | None = None
        if self.session.order == "model":
            self.background.request()

    @classmethod
    def create(cls, upload: Upload) -> NewProject:
        if not upload.tables:
            raise InputError("found no table; send a table with the columns query and docid, or a book of Quepid.")
        with upload.on_disk() as paths:
            result = read_grading_task(*paths)
        scale = result.task.scale or GradingScale()
        answers = [
            (judge, json.dumps([entry.query, entry.document]), entry_values(entry)) for judge, entry in result.known
        ]
        return NewProject({"scale": scale.lines()}, result.task.to_json(), answers)

    @property
    def is_list(self) -> bool:
        return bool(self.setting("view") == "list")

    def apply(self, answer: StoredAnswer) -> None:
        self.session.add(answer.judge, read_entry(GradingEntry, answer.entry, f"answer {answer.number}"))

    def completed(self, entry: GradingEntry) -> tuple[str, GradingEntry]:
        if entry.action in ("grade", "settle"):
            self.session.grade_of(entry)
        return "" if entry.action == "undo" else self.task.keys[self.session.number(entry)], entry

    def question(self, judge: str, item: str | None = None) -> dict[str, Any] | None:
        """Return a query with documents that the judge answered or may answer: a list of them, or one."""
        held = item or self.store.held_by(self.project.id, judge)
        with self.lock:
            mine, seen, n_entries = dict(self.session.judges.get(judge, {})), self.last, self.counts.get(judge, 0)
            lists = self.session.open_lists(judge)
            here = [] if held is None else self.session.list_of(self._number(held))
        lists.sort(key=lambda result: result[0].number not in here)  # the same list until the judge leaves it
        asked = -1 if item is None else self._number(item)
        is_asked = asked in mine  # a change, even if no document of the list is open
        if is_asked:
            lists = [matches for matches in lists if matches[0].number in here]
        groups = [[ClaimableItem(self.task.keys[entry.number], entry.slots) for entry in matches] for matches in lists]
        claimed = [self._number(entry) for entry in self.store.claim_group(self.project.id, judge, groups, seen)]
        if not is_asked and not claimed:
            return None
        if not is_asked and claimed[0] not in here:
            here = self.session.list_of(claimed[0])
        shown = [number for number in here if number in claimed or number in mine]
        if not self.setting("show_rank"):  # an order of each judge's own
            shown.sort(key=lambda number: sha256(f"{judge} {self.task.keys[number]}".encode()).digest())
        waiting = [number for number in shown if number not in mine]
        current = asked if asked in shown else (waiting or shown)[0]
        following = {
            number: next(
                (entry for entry in shown[i + 1 :] + shown[: i + 1] if entry in waiting and entry != number), number
            )
            for i, number in enumerate(shown)
        }
        rows = [
            {
                "card": self._row(number) if self.is_list else self.card(number), "item": self.task.keys[number],
                "client_id": f"{n_entries}-{number}", "before": mine.get(number), "is_current": number == current,
                "following": self.task.keys[following[number]],
                "rank": self.task.documents[number].position if self.setting("show_rank") else None,
            }
            for number in shown
        ]  # fmt: skip
        values = self._asked(self.task.documents[shown[0]].query)
        if not self.is_list:
            return {"template": "grade_question.html", **values, **rows[0], "is_change": is_asked}
        return {
            "template": "grade_list.html", **values, "rows": rows, "item": self.task.keys[shown[0]],
            "n_done": len(shown) - len(waiting), "is_done": not waiting,
        }  # fmt: skip

    def _asked(self, number: int) -> dict[str, Any]:
        """Return what pages show of a query, and the scale."""
        query, scale = self.task.queries[number], self.session.scale
        return {
            "query": clean(query.text), "need": rich(query.need),
            "grades": [
                {"grade": grade, "label": label, "key": str(grade) if grade < 10 else ""}
                for grade, label in zip(scale.grades, scale.labels, strict=True)
            ],
            "ask": self.setting("question"), "guidelines": rich(self.setting("guidelines")),
        }  # fmt: skip

    def save(self, judge: str, form: Mapping[str, str]) -> SaveResult:
        number = self._number(form.get("item", ""))
        action, grade = form.get("action", ""), ""
        if action.startswith("grade-"):
            action, grade = "grade", action.removeprefix("grade-")
        if action == "next" and self.is_list:
            with self.lock:
                after = self.session.list_after(judge, number)
            return SaveResult(True, self.task.keys[after[0].number] if after else None)
        if action not in ("grade", "unrateable", "later"):
            raise InputError("the form has no answer; choose a grade.")
        by = "change" if form.get("change") else self.session.order
        saved = self._store(judge, number, action, grade, form, by)
        return saved._replace(item=form.get("following") or form["item"]) if self.is_list else saved

    def settle(self, judge: str, form: Mapping[str, str]) -> SaveResult:
        return self._store(judge, self._number(form.get("item", "")), "settle", form.get("grade", ""), form, "conflict")

    def last_answer(self, judge: str) -> tuple[str, GradingEntry] | None:
        last = self.session.last(judge)
        return None if last is None else (self.task.keys[last], self._entry(last, "undo"))

    def undo(self, judge: str, form: Mapping[str, str]) -> SaveResult:
        with self.lock:
            last = self.session.last(judge) if self.is_list else None
        saved = super().undo(judge, form)
        return saved._replace(item=self.task.keys[last]) if saved.is_new and last is not None else saved

    def history(self, judge: str) -> list[dict[str, Any]]:
        with self.lock:
            recent = self.session.recent(judge)
        labels = dict(zip(self.session.scale.grades, self.session.scale.labels, strict=True))
        rows = []
        for number, item in recent:
            document = self.task.documents[number]
            title, query = self._title(number), self.task.queries[document.query].text
            rows.append(
                {
                    "query": one_line(query, 120), "title": title, "action": item.action, "grade": item.grade,
                    "label": labels.get(item.grade, "") if item.grade is not None else "", "note": item.text,
                    "item": self.task.keys[number], "text": f"{query} {title} {document.id} {item.text}",
                }
            )  # fmt: skip
        return rows

    def progress(self, judge: str) -> dict[str, Any]:
        with self.lock:
            mine = self.session.judges.get(judge, {})
            return {
                "answered": sum(item.action != "later" for item in mine.values()), **self.session.counts,
                "n_entries": self.counts.get(judge, 0), "can_undo": self.session.last(judge) is not None,
            }  # fmt: skip

    def overview(self) -> dict[str, Any]:
        with self.lock:
            final, grades, conflicts = self.session.final(), self.session.grades(), self.session.conflicts()
            counts = self.session.counts
            if self._alpha is None or self._alpha[0] != self.last:
                self._alpha = (self.last, alpha_interval([list(item.values()) for item in grades]))
        queries: list[dict[str, Any]] = [
            {"text": one_line(item.text, 120), "documents": 0, "graded": 0, "sum": 0.0} for item in self.task.queries
        ]
        for document, grade in zip(self.task.documents, final.tolist(), strict=True):
            row = queries[document.query]
            row["documents"] += 1
            if grade == grade:
                row["graded"] += 1
                row["sum"] += grade
        return {
            "template": "grade_overview.html", **counts, "n_queries": len(queries), "queries": queries[:_SHOWN],
            "job": training.job_of(self.store, self.project.id), "result": self._last_training(),
            "alpha": self._alpha[1], "scale": self.session.scale, "n_conflicts": len(conflicts),
            "conflicts": [
                {
                    "item": self.task.keys[number], "title": self._title(number), "number": number,
                    "query": one_line(self.task.queries[self.task.documents[number].query].text, 120),
                    "grades": grades[number], "lead": self._row(number)["lead"],
                }
                for number in conflicts[:_SHOWN]
            ],
        }  # fmt: skip

    @property
    def exports(self) -> Mapping[str, Export]:

        def locked(file: GradingExport) -> Callable[[], str]:
            def content() -> str:
                with self.lock:
                    return file.make(self.session, self.project.name, self.setting("index"))

            return content

        result = training.last_result(self.store, self.project.id)
        matches: dict[str, Export] = {
            name: Export(file.label, file.suffix, file.media_type, locked(file)) for name, file in EXPORTS.items()
        }
        matches["features"] = Export(
            "All documents with features and final grades (CSV)", "features.csv", "text/csv", self._table
        )
        if result is not None and result["has_model"]:
            label = "Recommended model (safetensors)"
            matches["model"] = Export(label, "model.safetensors", "application/octet-stream", self._model)
        return matches

    def _table(self) -> str:
        features = self.features  # may take seconds, so before the lock
        with self.lock:
            return as_features(self.session, features)

    def _model(self) -> bytes:
        return (self.store.file(self.project.id, training.MODEL) or ("", b""))[1]

    def train(self) -> None:
        """Compare rankers on the grades so far, in the background; raise `InputError` if there are too few."""
        with self.lock:
            y, n_answers = self.session.final(), self.session.n_answers
        reason = training.too_few(y, np.array([document.query for document in self.task.documents]))
        if reason:
            raise InputError(reason)
        rows = [(self.task.queries[document.query].id, document.id) for document in self.task.documents]
        training.start(
            self.store, self.project.id,
            lambda job: training.compare_rankers(job, self.project.name, self.features, y, rows, n_answers),
        )  # fmt: skip

    @cached_property
    def features(self) -> GradingFeatures:
        """Features of all documents; computing them may take seconds."""
        return grading_features(self.task, use_texts=self.setting("use_texts"))

    def _last_training(self) -> dict[str, Any] | None:
        result = training.last_result(self.store, self.project.id)
        return None if result is None else {**result, "n_new": max(0, self.session.n_answers - result["n_answers"])}

    def check_settings(self, settings: Mapping[str, Any]) -> None:
        scale = GradingScale.of_lines(settings["scale"])
        if len(scale.grades) > 11:
            raise InputError(f"the scale has {len(scale.grades)} grades; 11 is the most.")
        with self.lock:
            given = {item.grade for mine in self.session.judges.values() for item in mine.values()}
            given |= set(self.session.settled.values())
        lost = sorted(grade for grade in given if grade is not None and grade not in scale.grades)
        if lost:
            raise InputError(f"judges gave the grade {lost[0]}, which the new scale lacks; keep it in the scale.")

    def card(self, number: int) -> dict[str, Any]:
        fields = dict(self.task.documents[number].fields)
        fields.pop(title_column(fields) or "", None)
        return {"title": self._title(number), **card(fields, self.images, hidden=self.task.columns)}

    def _row(self, number: int) -> dict[str, Any]:
        """Return what a list shows of a document: its first text, or the beginning of it."""
        card = self.card(number)
        fields = self.task.documents[number].fields
        first = fields[card["texts"][0][0]] if card["texts"] else ""
        if len(first) <= _SNIPPET:
            return {**card, "lead": rich(first), "texts": card["texts"][1:]}
        return {**card, "lead": Markup("<p>{}</p>").format(one_line(first, _SNIPPET))}

    def _learn(self) -> None:
        if self.session.order != "model":
            return
        with self.lock:
            y = self.session.final()
        ahead = self.session.suggest(y)
        with self.lock:
            self.session.install(ahead)

    def _title(self, number: int) -> str:
        fields = self.task.documents[number].fields
        column = title_column(fields)
        return one_line(fields[column] if column else self.task.documents[number].id)

    def _number(self, item: str) -> int:
        number = self.task.number.get(item)
        if number is None:
            raise InputError("this project does not have the document of the form; open the project again.")
        return number

    def _store(self, judge: str, number: int, action: str, grade: str, form: Mapping[str, str], by: str) -> SaveResult:
        note = clean(form.get("note", "")).strip()[:MAX_CHARACTERS]
        entry = self._entry(number, action, grade, note, by)
        return self.append(judge, *self.completed(entry), form.get("client_id", ""))

    def _entry(self, number: int, action: str, *more: str) -> GradingEntry:
        document = self.task.documents[number]
        return GradingEntry(action, self.task.queries[document.query].id, document.id, *more)
