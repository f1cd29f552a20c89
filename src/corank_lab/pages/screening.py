"""The workspace of screening: records one after another, the most likely relevant one next."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from corank.errors import InputError
from corank_lab.database.database import ClaimableItem, Database, Project, StoredAnswer
from corank_lab.database.journal import read_entry
from corank_lab.pages.markup import clean, curve, one_line, record_values, rich
from corank_lab.pages.screening_results import PARTS, Results, agreement_rows
from corank_lab.pages.uploads import Upload
from corank_lab.pages.workspaces import MAX_CHARACTERS, Export, NewProject, SaveResult, Setting, Workspace
from corank_lab.records.duplicates import find_duplicates, restore_duplicates
from corank_lab.records.records import Records, read_records, records_from_json
from corank_lab.screening.answers import ScreeningAnswers, ScreeningEntry
from corank_lab.screening.matching import UniqueRecords
from corank_lab.screening.model import similar_records, telling_words
from corank_lab.screening.prior import probability_columns
from corank_lab.screening.project import (
    SHARE_LIMITS,
    ScreeningPlan,
    keep_prior,
    plan_changes,
    read_reasons,
    split_words,
    stored_options,
)
from corank_lab.screening.screening import N_AHEAD, Screening
from corank_lab.screening.stopping.rules import (
    DEFAULT_RULE,
    REMOVED_RULES,
    STOPPING_RULES,
    TRADE,
    accepted_error,
    trade_words,
)
from corank_lab.screening.stopping.urns import percent, require_richness
from corank_lab.screening.team import RECORDS, records_hash, records_payload, unique_records

N_TELLING = 30
N_SIMILAR = 6
MAX_RECORDS = 200_000


class ScreenWorkspace(Workspace):  # noqa: D101
    __doc__ = Workspace.__doc__
    kind, title, entry = "screen", "Screen", ScreeningEntry
    pages: ClassVar = {"import": "Import", "conflicts": "Conflicts", "report": "Report"}
    settings = (
        Setting(
            "criteria", "", "lines", "Criteria",
            "Shown next to every record. **bold**, *emphasis*, lists with - and links work.",
        ),
        Setting(
            "reasons", "", "lines", "Reasons of exclusion",
            "One per line, at most nine; judges give them with the keys 1 to 9.",
        ),
        Setting(
            "topic", "", "lines", "Topic",
            "Description of relevant records, in words: prior knowledge, whose weight is learnt from the answers.",
        ),
        Setting(
            "highlight", "", "lines", "Words for inclusion",
            "Highlighted in green; separated by commas, * is any ending.",
        ),
        Setting(
            "highlight_against", "", "lines", "Words against inclusion",
            "Highlighted in red; separated by commas, * is any ending.",
        ),
        Setting(
            "readers", 1, "number", "Judges per record", "Number of judges who read each record of the shared part.",
            1, 50,
        ),
        Setting(
            "shared_records", 1.0, "share", "Shared part of the records (%)",
            "Share of records that several judges read; the others are read by one.",
        ),
        Setting(
            "rule", ScreeningPlan.rule, "choice", "Stopping rule",
            "When the pages advise to stop. Rules with a random sample prove or test the recall.",
            choices={name: rule.summary for name, rule in STOPPING_RULES.items()},
        ),
        Setting(
            "target", ScreeningPlan.target, "share", "Recall to reach (%)",
            "Share of the relevant records to be found.", *SHARE_LIMITS,
        ),
        Setting(
            "confidence", ScreeningPlan.confidence, "share", "Confidence (%)", trade_words(), *SHARE_LIMITS
        ),
        Setting(
            "richness", ScreeningPlan.richness, "number", "Random records first",
            "Number of random records to read before all others, to estimate how many are relevant.", 0, MAX_RECORDS,
        ),
        Setting(
            "seed", ScreeningPlan.seed, "number", "Random seed", "Draws the random samples. Fix it before reading.",
            0, 2**32,
        ),
        Setting(
            "use_labels", True, "flag", "Use labels of the files as known answers",
            "Records with a label are not shown to judges then.",
        ),
    )  # fmt: skip

    def __init__(self, store: Database, project: Project) -> None:
        super().__init__(store, project)
        result = store.payload(project.id)
        self.everything = records_from_json(result["records"])
        self.groups = restore_duplicates(self.everything, result["pairs"])
        self.log: list[tuple[str, ScreeningEntry]] = []
        self.results = Results(self)
        self._shown: dict[tuple[str, int], ScreeningEntry] = {}
        self._is_split = False
        self.words = {
            "for": split_words(self.setting("highlight")), "against": split_words(self.setting("highlight_against")),
        }  # fmt: skip
        self.session = self._session()
        self.background.request()

    @classmethod
    def create(cls, upload: Upload) -> NewProject:
        """Read files of records, and find duplicates."""
        if not upload.tables:
            raise InputError("found no records; send a file such as .ris, .nbib, .bib, .csv, .xlsx or .xml.")
        upload.report("read", 0.0)
        with upload.on_disk() as paths:
            records = _renamed(read_records(*paths), [file.name for file in upload.tables])
        if not 1 <= len(records) <= MAX_RECORDS:
            raise InputError(f"found {len(records)} records; from 1 to {MAX_RECORDS:,} can be screened.")
        groups = find_duplicates(records, report=lambda share: upload.report("duplicates", 0.2 + 0.7 * share))
        files = {
            f"{RECORDS}{number}/{path.name}": ("application/octet-stream", file.content)
            for number, (path, file) in enumerate(zip(paths, upload.tables, strict=True))
        }
        is_labelled = bool(np.isnan(records.labels).any())
        settings = {"use_labels": is_labelled, "files": records_hash(records), "file": records.sources[0].name}
        return NewProject(settings, records_payload(UniqueRecords(records, groups)), files=files)

    def setting(self, name: str) -> Any:
        """Return the value of a setting; the default rule in place of a removed one."""
        value = super().setting(name)
        return DEFAULT_RULE if name == "rule" and value in REMOVED_RULES else value

    @property
    def notice(self) -> str:
        """Say what the project keeps and cannot be used: a removed rule, or a column of probabilities."""
        return " ".join(self.remarks)

    @property
    def any_judge(self) -> str:
        """Name of a judge of the project, for figures without any answer."""
        return next(iter(self.counts), "me")

    @property
    def reasons(self) -> list[str]:
        """Reasons of exclusion, for the keys 1 to 9."""
        return read_reasons(self.setting("reasons").splitlines())

    def known_before(self) -> dict[str, Any]:
        """Return what the form of prior knowledge shows, and the errors that a user may accept."""
        settings, confidence = self.project.settings, self.setting("confidence")
        levels = {level.confidence: (percent(level.read), percent(level.worst_group)) for level in TRADE}
        return {
            "topic": self.setting("topic"), "prior": one_line(str(settings.get("prior", "")), 300),
            "columns": probability_columns(self.everything), "column": str(settings.get("probability", "")),
            "errors": [
                (f"{100 * value:g}", accepted_error(value), levels.get(value), value == confidence)
                for value in sorted({*levels, confidence})
            ],
        }  # fmt: skip

    def know_before(self, form: Mapping[str, str], upload: Upload) -> dict[str, Any]:
        """Keep the prior knowledge of a form, and return the settings that change."""
        wanted = {setting.name: setting for setting in self.settings}
        topic = wanted["topic"].read(form.get("topic"))
        confidence = wanted["confidence"].read(form.get("confidence"))
        plan_changes(self.project.settings, {"confidence": confidence}, (entry for _, entry in self.log))
        reviews = None
        if upload.tables:
            with upload.on_disk() as paths:
                reviews = _renamed(read_records(*paths), [file.name for file in upload.tables])
        settings = keep_prior(self.store, self.project, self.everything, reviews, form.get("probability", ""))
        forgotten = {"prior": ""} if form.get("forget") and reviews is None else {}
        return {"topic": topic, "confidence": confidence, **settings, **forgotten}

    def apply(self, answer: StoredAnswer) -> None:
        """Take an answer of the store into account."""
        entry = read_entry(ScreeningEntry, answer.entry, f"answer {answer.number}")
        if not entry.time:
            entry = replace(entry, time=answer.time)
        self.log.append((answer.judge, entry))
        self._is_split |= entry.action == "distinct"
        self.session.add(answer.judge, entry)

    def refresh(self) -> None:
        """Read the answers that are new; groups that were separated are made anew."""
        super().refresh()
        with self.lock:
            if not self._is_split:
                return
            self._is_split = False
            self.session = self._session()
            for judge, entry in self.log:
                self.session.add(judge, entry)
        self.background.request()

    def completed(self, entry: ScreeningEntry) -> tuple[str, ScreeningEntry]:
        """Return the record of an entry of `corank screen`."""
        unique = self.session.unique
        number = unique.find(entry.id, entry.keys, entry.title) if entry.id else None
        if number is None:
            if entry.id:
                raise InputError(f"{entry.place}: the project has no record {entry.id!r:.80}; check the file.")
            return "", entry
        return self.session.records.ids[number], entry if entry.keys else entry.about(unique, number)

    def question(self, judge: str, item: str | None = None) -> dict[str, Any] | None:
        """Return a record."""
        is_change = item is not None
        number = self._number(item) if item is not None else self._next(judge)
        if number is None:
            return None
        with self.lock:
            session, mine = self.session, self.session.answers_of(judge)
            before, note, tags = mine.current.get(number), mine.notes.get(number, ""), mine.tags.get(number, ())
            is_unread = is_change and number not in mine.relevant
            if is_unread and session.team.is_sampled:
                raise InputError("the random sample is being read; other records can be opened when it is finished.")
            if not is_change:
                self._shown[judge, number] = session.why(number, judge)
            judged, n_entries = session.judged, self.counts.get(judge, 0)
        words = dict(self.words)
        if session.views is not None:
            text = f"{session.records.titles[number]} {session.records.abstracts[number]}"
            told = telling_words(session.views, text, *judged, n=N_TELLING)
            words["tellfor"] = [word for word, weight in told if weight > 0]
            words["tellagainst"] = [word for word, weight in told if weight < 0]
        return {
            "template": "screen_question.html", "record": record_values(session.unique, number, words),
            "item": session.records.ids[number], "client_id": f"{n_entries}-{number}", "is_change": is_change,
            "is_unread": is_unread, "before": before, "note": note, "tags": tags,
            "reasons": list(enumerate(self.reasons, 1)),
            "criteria": rich(self.setting("criteria")), "state": session.advice,
            "has_words": bool(words.get("tellfor") or words.get("tellagainst")),
        }  # fmt: skip

    def similar(self, judge: str, item: str) -> dict[str, Any]:
        """Return the records most similar to a record, of which it may be a duplicate."""
        number, session = self._number(item), self.session
        result = similar_records(session.views, number, n=N_SIMILAR) if session.views is not None else []
        with self.lock:
            is_change, n_entries = number in session.answers_of(judge).relevant, self.counts.get(judge, 0)
        return {
            "title": one_line(session.records.titles[number]), "item": session.records.ids[number],
            "is_change": is_change, "client_id": f"{n_entries}-{number}",
            "similar": [record_values(session.unique, entry, {}) for entry in result],
        }  # fmt: skip

    def save(self, judge: str, form: Mapping[str, str]) -> SaveResult:
        """Store the answer of a form, and the note if it was changed."""
        number = self._number(form.get("item", ""))
        action, client_id = form.get("action", ""), form.get("client_id", "")
        with self.lock:
            mine, id = self.session.answers_of(judge), self.session.records.ids[number]
            is_answered, note = number in mine.relevant, mine.notes.get(number, "")
            why = self._shown.get((judge, number)) or self.session.why(number, judge)
        is_change = bool(form.get("change"))
        if is_answered and not is_change:
            return SaveResult(False)
        if is_change:
            why = ScreeningEntry("", by="history" if is_answered else "search")
        entry = replace(why, action=action, id=id, tags=_tags(form.get("tags", "")))
        if action.startswith("not-"):
            entry = replace(entry, action="not", reason=self._reason(action.removeprefix("not-")))
        elif action == "duplicate":
            other = self._number(form.get("of", ""))
            if other == number:
                raise InputError("a record cannot be a duplicate of itself; choose another record.")
            entry = replace(entry, of=self.session.records.ids[other])
        elif action not in ("relevant", "not", "later"):
            raise InputError("the form has no answer; choose include, exclude or put aside.")
        remark = clean(form.get("note", note)).strip()[:MAX_CHARACTERS]
        if remark != note:
            self._store(judge, number, ScreeningEntry("note", id, text=remark), f"{client_id}-note", keep_hold=True)
        saved = self._store(judge, number, entry, client_id)
        self._shown.pop((judge, number), None)
        return saved

    def last_answer(self, judge: str) -> tuple[str, ScreeningEntry] | None:
        """Return the record of the last answer, and the entry that withdraws it."""
        last = self.session.answers_of(judge).last
        if last is None:
            return None
        id = self.session.records.ids[last]
        return id, self._whole(last, ScreeningEntry("undo", id))

    def settle(self, judge: str, form: Mapping[str, str]) -> SaveResult:
        """Settle a conflict of judges, or open a settled one again; or separate records that are not duplicates."""
        number, action = self._number(form.get("item", "")), form.get("action", "")
        id = self.session.records.ids[number]
        client_id = form.get("client_id", "")
        with self.lock:
            is_conflict = number in self.session.unsettled
        if action == "distinct":
            first, *others = (self.everything.ids[member] for member in self.session.unique.members(number))
            saved = SaveResult(False)  # without duplicates, such as those that were separated before
            for i, other in enumerate(others):
                saved = self._store(judge, number, ScreeningEntry("distinct", first, of=other), f"{client_id}-{i}")
            return saved
        entry = ScreeningEntry(action, id, "adjudication", tags=_tags(form.get("tags", "")))
        if action == "reopen":
            entry = ScreeningEntry("undo", id, "adjudication")
            judges = self.session.judges.items()
            judge = next((name for name, answers in judges if number in answers.adjudicated), judge)
        elif action.startswith("not-"):
            entry = replace(entry, action="not", reason=self._reason(action.removeprefix("not-")))
        elif action not in ("relevant", "not"):
            raise InputError("the form has no answer; choose include or exclude.")
        if action != "reopen" and not is_conflict:
            return SaveResult(False)
        return self._store(judge, number, entry, client_id)

    def check_settings(self, settings: Mapping[str, Any]) -> None:
        """Raise if there are more reasons than keys or too few records, or if a random sample has begun otherwise."""
        read_reasons(settings["reasons"].splitlines())
        require_richness(int(settings["richness"]), len(self.session.records))
        plan_changes(self.project.settings, settings, (entry for _, entry in self.log))

    def history(self, judge: str) -> list[dict[str, Any]]:
        """Return the answers of a judge, the newest first."""
        with self.lock:
            session, mine = self.session, self.session.answers_of(judge)
            rows = []
            for number, entry in mine.search():
                row, note = self._row(session.unique, number), mine.notes.get(number, "")
                text = " ".join([row["text"], entry.reason, *entry.tags, note])
                more = {"action": entry.action, "reason": entry.reason, "tags": entry.tags, "note": note}
                rows.append({**row, **more, "time": entry.time, "text": text})
        return rows

    def unanswered(self, judge: str) -> list[dict[str, Any]]:
        """Return the records that a judge has not answered, in the order of the files."""
        with self.lock:
            session, mine = self.session, self.session.answers_of(judge)
            numbers = [number for number in range(len(session.records)) if number not in mine.relevant]
        return [self._row(session.unique, number) for number in numbers]

    def progress(self, judge: str) -> dict[str, Any]:
        """Return counts for the head of a judge's page."""
        with self.lock:
            mine = self.session.answers_of(judge)
            return {
                "answered": len(self.session.answers_of(judge).relevant), "found": mine.n_found,
                "aside": len(mine.later), "finished": self.session.n_finished, "n": len(self.session.records),
                "n_entries": self.counts.get(judge, 0), "can_undo": mine.last is not None,
                "since": _since(mine) if mine.finds else None,
            }  # fmt: skip

    def overview(self) -> dict[str, Any]:
        """Return counts, curve, forecast and agreement."""
        with self.lock:
            session, team = self.session, self.session.team
            n = len(session.records)
            result = {
                "template": "screen_overview.html", "n": n, "read": len(team.relevant), "relevant": team.n_found,
                "finished": session.n_finished, "unread": n - len(team.relevant), "known": len(team.beforehand),
                "n_files": len(self.everything.sources), "n_everything": len(self.everything),
                "n_duplicates": len(self.everything) - n, "state": session.advice,
                "n_conflicts": len(session.unsettled), "target": session.rule.target,
                "curve": curve(
                    list(team.finds), len(team.ranked), session.rule.n, team.n_known, session.advice.figures
                ),
                "since": _since(team),
            }  # fmt: skip
        agreement = self.results.agreement()
        pairs = [row for row in agreement_rows(agreement) if row["question"] == "included"]
        return {**result, "pairs": pairs, "export_rows": PARTS}

    @property
    def exports(self) -> Mapping[str, Export]:
        """Files to save, by name."""
        return self.results.exports

    def _learn(self) -> None:
        session = self.session
        session.prepare()
        with self.lock:
            judged, plan = session.judged, session.plan_advice()
        scores = session.fit(judged)
        with self.lock:
            session.install(scores)
        advice = plan()
        with self.lock:
            session.advice = advice

    def _session(self) -> Screening:
        unique = unique_records(self.everything, self.groups, [entry for _, entry in self.log])
        options, self.remarks = stored_options(self.store, self.project, unique.unique)
        session = Screening(
            unique, share=True, readers=int(self.setting("readers")), overlap=self.setting("shared_records"), **options
        )
        session.topic = self.setting("topic")
        if self.setting("use_labels"):
            session.use_labels()
        return session

    def _next(self, judge: str) -> int | None:
        """Hold the next record for a judge: the one that the judge holds already, else the best free one."""
        held = self.store.held_by(self.project.id, judge)
        for most in (N_AHEAD, None):
            with self.lock:
                result, seen = self.session.open_for(judge, most), self.last
                ids = self.session.records.ids
                kept = self._held(judge, held) if held is not None else None
            candidates = [ClaimableItem(ids[item.number], item.slots) for item in result]
            if kept is not None:  # the same question until it is answered
                candidates.insert(0, kept)
            claimed = self.store.claim(self.project.id, judge, candidates, seen) if candidates else None
            if claimed is not None:
                return self._number(claimed)
            if len(result) < N_AHEAD:
                return None
        return None

    def _held(self, judge: str, held: str) -> ClaimableItem | None:
        number = self.session.unique.find(held)
        slots = 0 if number is None else self.session.slots_for(judge, number)
        return None if number is None or not slots else ClaimableItem(self.session.records.ids[number], slots)

    def _number(self, item: str) -> int:
        number = self.everything.number.get(item)
        if number is None:
            raise InputError("this project does not have the record of the form; open the project again.")
        return self.session.unique.place(number)

    @staticmethod
    def _row(unique: UniqueRecords, number: int) -> dict[str, Any]:
        """Return a record for a list; `text` is what a search looks at."""
        records, details = unique.unique, unique.unique.details[number]
        about = [str(details.year or ""), one_line("; ".join(details.authors), 80), one_line(details.journal)]
        parts = (records.titles[number], records.abstracts[number], records.ids[number], details.doi, *details.authors)
        return {
            "title": one_line(records.titles[number]) or records.ids[number], "action": "", "reason": "", "tags": (),
            "about": " · ".join(filter(None, about)), "note": "", "time": "", "item": records.ids[number],
            "text": " ".join((*parts, *details.keywords)),
        }  # fmt: skip

    def _reason(self, key: str) -> str:
        if not re.fullmatch(r"[1-9]", key) or int(key) > len(self.reasons):
            raise InputError("the project does not have the reason of the form; reload the page.")
        return self.reasons[int(key) - 1]

    def _store(
        self, judge: str, number: int, entry: ScreeningEntry, client_id: str, *, keep_hold: bool = False
    ) -> SaveResult:
        id = self.session.records.ids[number]
        return self.append(judge, id, self._whole(number, entry), client_id, keep_hold=keep_hold)

    def _whole(self, number: int, entry: ScreeningEntry) -> ScreeningEntry:
        return replace(entry.about(self.session.unique, number), records=self.session.unique.hash)


def _since(answers: ScreeningAnswers) -> int:
    """Number of records read after the last relevant one, in the order of the ranking."""
    return len(answers.ranked) - (answers.finds[-1] if answers.finds else 0)


def _tags(text: str) -> tuple[str, ...]:
    """Return tags that commas separate."""
    result = (one_line(part, 60) for part in clean(text)[:2000].split(","))
    return tuple(dict.fromkeys(item for item in result if item))


def _renamed(records: Records, names: Sequence[str]) -> Records:
    """Return records whose sources have the names of the uploaded files instead of those on the server's disk."""
    times: Counter[str] = Counter()
    given = {}
    for source, name in zip(records.sources, names, strict=True):
        times[name] += 1
        given[source.name] = name if times[name] == 1 else f"{name} ({times[name]})"
    details = [replace(detail, source=given.get(detail.source, detail.source)) for detail in records.details]
    return replace(records, details=details, sources=[replace(item, name=given[item.name]) for item in records.sources])
