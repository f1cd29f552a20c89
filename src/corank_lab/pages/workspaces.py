"""
Projects in memory: what is judged, all answers, and the last model.

A workspace follows the store: before it is used, it reads the answers that are new, whichever process stored them.
Models learn in a thread of their own, one per project, so that no question waits for one.
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from statistics import median
from typing import Any, ClassVar, NamedTuple

from corank import __version__
from corank.errors import InputError
from corank_lab.database.database import ANY_NUMBER, ClaimableItem, Database, Project, StoredAnswer
from corank_lab.database.journal import JournalEntry, entry_values, project_logs
from corank_lab.database.schema import utc_now
from corank_lab.pages.markup import clean
from corank_lab.pages.uploads import Upload

MAX_WORKSPACES = 30
PAUSE_SECONDS = 600  # a longer time between two answers of a judge is a pause, and does not count as time per answer
MAX_CHARACTERS = 10_000
MAX_REST_SECONDS = 5.0  # longest pause between two fits of a model, in seconds


@dataclass(frozen=True)
class Setting:
    """An option of a project that the owner may change."""

    name: str  # key of the settings
    default: Any  # value of a new project
    kind: str  # "number", "share", "text", "lines", "choice" or "flag"
    label: str
    help: str
    low: float = 0.0  # low, high: limits of a number
    high: float = 1.0
    choices: Mapping[str, str] = field(default_factory=dict)  # names of the choices and their labels

    def read(self, text: str | None) -> Any:
        if self.kind == "flag":
            return text is not None
        value: Any = clean(text or "").strip()
        if self.kind in ("number", "share"):
            try:
                number = float(value)
            except ValueError:
                raise InputError(f"{self.name} is {value!r}; write a number.") from None
            value = number / 100 if self.kind == "share" else int(number) if number.is_integer() else number
        return self.require(value)

    def require(self, value: Any) -> Any:
        """Return a value; raise `InputError` if it is not allowed."""
        if self.allows(value):
            return value
        if self.kind in ("text", "lines"):
            raise InputError(f"a text has {len(value)} characters; the limit is {MAX_CHARACTERS}.")
        if self.kind == "choice":
            raise InputError(f"{self.name} is {value!r:.100}; choose one of {', '.join(self.choices)}.")
        raise InputError(f"{self.name} is {value}; write a number from {self.low:g} to {self.high:g}.")

    def allows(self, value: Any) -> bool:
        """Return whether a stored value is one that `read` may have returned."""
        if self.kind == "flag":
            return isinstance(value, bool)
        if self.kind in ("text", "lines"):
            return isinstance(value, str) and len(value) <= MAX_CHARACTERS
        if self.kind == "choice":
            return value in self.choices
        return isinstance(value, int | float) and not isinstance(value, bool) and self.low <= value <= self.high


QUESTION = Setting(
    "question", "", "text", "Question", "Shown to judges with every question. Empty: the usual question."
)
GUIDELINES = Setting(
    "guidelines", "", "lines", "Guidelines",
    "Shown to judges on request. **bold**, *emphasis*, lists with - and links work.",
)  # fmt: skip


def require_time(time: str, where: str) -> str:
    """Return the time of an answer, empty if unknown; raise `InputError` if pages cannot show it."""
    try:
        if time:
            datetime.fromisoformat(time).astimezone(UTC)
    except (ValueError, OverflowError):
        raise InputError(f"{where}: the time is {time!r:.40}; expected one such as 2026-01-31T12:00:00Z.") from None
    return time


class Export(NamedTuple):
    """A file that the owner may save."""

    label: str  # of its link
    suffix: str  # end of its name
    media_type: str  # for the browser
    content: Callable[[], str | bytes]  # makes the text or bytes


class SaveResult(NamedTuple):
    """Result of an answer."""

    is_new: bool  # false if it had been stored before
    item: str | None = None  # question to show next; None for the one that is due


@dataclass(frozen=True)
class NewProject:
    """What an upload becomes."""

    settings: Mapping[str, Any]  # besides the defaults
    payload: Any  # what is judged, as JSON values
    # answers that the files hold: judge, item and entry
    answers: Sequence[tuple[str, str, Mapping[str, Any]]] = field(default_factory=list)
    # media type and content of files that are kept, by name
    files: Mapping[str, tuple[str, bytes]] = field(default_factory=dict)


class Workspace(ABC):
    """One project in memory. Subclasses are the kinds of work."""

    kind: ClassVar[str]
    title: ClassVar[str]
    entry: ClassVar[type[JournalEntry]]  # class of the answers
    settings: ClassVar[tuple[Setting, ...]]
    pages: ClassVar[Mapping[str, str]] = {}
    """Further pages of the owner: their addresses behind that of the project, and their names."""

    def __init__(self, store: Database, project: Project) -> None:
        self.store, self.project = store, project
        self.lock = threading.RLock()
        self.last = 0
        self.times: dict[str, list[str]] = {}
        self.counts: dict[str, int] = {}  # entries of each judge, with notes and undos
        self.background = Background(self._learn)

    @classmethod
    @abstractmethod
    def create(cls, upload: Upload) -> NewProject:
        """Read uploaded files; raise `InputError` if they cannot be judged in this way."""

    @abstractmethod
    def apply(self, answer: StoredAnswer) -> None:
        """Take an answer of the store into account."""

    @abstractmethod
    def completed(self, entry: Any) -> tuple[str, JournalEntry]:
        """Return the item of an entry that another program wrote, and the entry; raise if the project lacks it."""

    @abstractmethod
    def question(self, judge: str, item: str | None = None) -> dict[str, Any] | None:
        """Return the values of the page with the judge's next question; None if there is none."""

    @abstractmethod
    def save(self, judge: str, form: Mapping[str, str]) -> SaveResult:
        """Store the answer of a form."""

    @abstractmethod
    def last_answer(self, judge: str) -> tuple[str, JournalEntry] | None:
        """Return the item of the last answer of a judge, and the entry that withdraws it; None without an answer."""

    def undo(self, judge: str, form: Mapping[str, str]) -> SaveResult:
        """Withdraw the last answer of a judge, whose question is asked again."""
        with self.lock:
            last = self.last_answer(judge)
        if last is None:
            return SaveResult(False)
        saved = self.append(judge, *last, form.get("client_id", ""))
        if saved.is_new:
            self.store.claim(self.project.id, judge, [ClaimableItem(last[0], ANY_NUMBER)], self.last)
        return saved

    def settle(self, judge: str, form: Mapping[str, str]) -> SaveResult:
        """Store the owner's decision about an item on which judges disagree."""
        raise InputError("projects of this kind have no conflicts to settle.")

    def check_settings(self, settings: Mapping[str, Any]) -> None:  # noqa: B027
        """Raise `InputError` if settings contradict each other or the answers so far."""

    @abstractmethod
    def history(self, judge: str) -> list[dict[str, Any]]:
        """Return the answers of a judge, the newest first."""

    def unanswered(self, judge: str) -> list[dict[str, Any]]:
        """Return what a judge has not answered, if this kind of work lets judges look for it."""
        return []

    @abstractmethod
    def progress(self, judge: str) -> dict[str, Any]:
        """Return counts for the head of a judge's page."""

    @abstractmethod
    def overview(self) -> dict[str, Any]:
        """Return the values of the owner's page."""

    @property
    @abstractmethod
    def exports(self) -> Mapping[str, Export]:
        """Files to save, by name."""

    @abstractmethod
    def _learn(self) -> None:
        """Learn from all answers; runs in the background."""

    def open_everything(self) -> None:
        """Compute what all pages and files of the project show; raise if one of them fails."""
        for setting in self.settings:
            if not setting.allows(value := self.setting(setting.name)):
                raise InputError(f"its setting {setting.name} is {value!r:.40}, which is not allowed.")
        self.check_settings({setting.name: self.setting(setting.name) for setting in self.settings})
        self.refresh()
        for judge, times in self.times.items():
            for given in times:
                require_time(given, f"an answer of {judge!r:.40}")
        self._learn()
        self.overview()
        for judge in ("me", *self.counts):
            self.progress(judge)
            self.seconds_per_answer(judge)
            self.history(judge)
            self.unanswered(judge)
            self.question(judge)
        for export in self.exports.values():
            with suppress(InputError):  # such as an export of nothing
                export.content()

    def all_lines(self) -> bytes:
        return b"".join(project_logs(self.store, self.project.id).values())

    def setting(self, name: str) -> Any:
        default = next(item.default for item in self.settings if item.name == name)
        return self.project.settings.get(name, default)

    @property
    def notice(self) -> str:
        """Return a sentence for the owner, above the overview; empty without one."""
        return ""

    def refresh(self) -> None:
        with self.lock:
            new = self.store.answers(self.project.id, after=self.last)
            for answer in new:
                self.apply(answer)
                if not answer.client_id.startswith("import-"):  # those of a file have no times
                    self.times.setdefault(answer.judge, []).append(answer.time)
                self.counts[answer.judge] = self.counts.get(answer.judge, 0) + 1
                self.last = answer.number
        if new:
            self.background.request()

    def append(
        self, judge: str, item: str, entry: JournalEntry, client_id: str, *, keep_hold: bool = False
    ) -> SaveResult:
        if not 0 < len(client_id) <= 200:
            raise InputError("the form lacks the id of its question; reload the page.")
        line = {**entry_values(entry), "time": utc_now(), "judge": judge, "version": __version__}
        _, is_new = self.store.append(self.project.id, judge, item, line, client_id, keep_hold=keep_hold)
        self.refresh()
        return SaveResult(is_new)

    def seconds_per_answer(self, judge: str) -> float | None:
        """Return the median time between two answers of a judge, without pauses."""
        times = [datetime.fromisoformat(item).timestamp() for item in self.times.get(judge, ())]
        gaps = [after - before for before, after in pairwise(times)]
        gaps = [gap for gap in gaps if 0 <= gap <= PAUSE_SECONDS]  # a clock may go back
        return median(gaps) if gaps else None


class Background:
    """Runs a function in a thread when it is requested; requests during a run lead to one more run."""

    def __init__(self, work: Callable[[], None]) -> None:
        self._work = work
        self._lock = threading.Condition()
        self._is_requested = self._is_running = self._is_hurried = False
        self.error: Exception | None = None

    def request(self) -> None:
        with self._lock:
            self._is_requested = True
            if self._is_running:
                return
            self._is_running = True
        threading.Thread(target=self._run, name="corank-model", daemon=True).start()

    def wait(self, seconds: float = 60.0) -> None:
        """Wait until all requests are done; for tests and exports."""
        with self._lock:
            self._is_hurried = True
            self._lock.notify_all()
            self._lock.wait_for(lambda: not self._is_running, seconds)
            self._is_hurried = False

    def _run(self) -> None:
        while True:
            with self._lock:
                if not self._is_requested:
                    self._is_running = False
                    self._lock.notify_all()
                    return
                self._is_requested = False
            began = time.monotonic()
            try:
                self._work()
                self.error = None
            except Exception as error:  # the last model stays
                self.error = error
            # rest as long as the work took, so that questions get at least half of a processor
            with self._lock:
                self._lock.wait_for(lambda: self._is_hurried, min(time.monotonic() - began, MAX_REST_SECONDS))


class Workspaces:
    """The workspaces that are in use."""

    def __init__(self, store: Database, kinds: Mapping[str, type[Workspace]]) -> None:
        self._store, self.kinds = store, kinds
        self._lock = threading.Lock()
        self._opening: dict[str, threading.Lock] = {}
        self._open: OrderedDict[str, Workspace] = OrderedDict()

    def forget(self, project: str) -> None:
        with self._lock:
            self._open.pop(project, None)
            self._opening.pop(project, None)

    def get(self, project: Project) -> Workspace:
        if project.kind not in self.kinds:
            raise InputError(f"this corank cannot open projects of the kind {project.kind!r}; install a newer version.")
        with self._lock:
            opening = self._opening.setdefault(project.id, threading.Lock())
        with opening:  # a large project is read once
            with self._lock:
                result = self._open.get(project.id)
            if result is None or result.project != project:
                result = self.kinds[project.kind](self._store, project)
                result.refresh()
                with self._lock:
                    self._open[project.id] = result
                    self._open.move_to_end(project.id)
                    while len(self._open) > MAX_WORKSPACES:
                        self._open.popitem(last=False)
        result.refresh()
        return result
