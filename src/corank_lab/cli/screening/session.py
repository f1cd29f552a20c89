"""Begin a session of `corank screen`, on the terminal or on a page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import typer

from corank.cli import make_console
from corank.console import printable, printable_console
from corank.data import explain_write_errors, read_regular, read_utf8
from corank.errors import InputError, import_extra
from corank_lab.cli.screening.actions import Reading
from corank_lab.cli.screening.view import Highlights
from corank_lab.cli.terminal import Ask, has_terminal, lines, terminal
from corank_lab.database.database import Database
from corank_lab.database.journal import NAME, journal_paths
from corank_lab.records.records import Records, read_records, summarise
from corank_lab.screening import Screening, ScreeningAnswers, ScreeningJournal, UniqueRecords
from corank_lab.screening.answers import LABEL, ScreeningEntry
from corank_lab.screening.project import (
    DEFAULT_PLAN,
    ScreeningPlan,
    keep_prior,
    plan_changes,
    read_reasons,
    split_words,
    stored_options,
)
from corank_lab.screening.stopping.urns import require_richness
from corank_lab.screening.team import KNOWN, Adjudication, label_answers, unique_records

if TYPE_CHECKING:  # it imports rapidfuzz
    from corank_lab.records.duplicates import DuplicateGroups


KEYS = {
    "r": "relevant", "n": "not", "l": "later", "u": "undo", "o": "note", "g": "tag", "d": "duplicate",
    "s": "separate", "h": "history", "t": "telling", "p": "progress", "?": "help", "q": "quit",
}  # fmt: skip
PAGING = (" ", "b", "page down", "page up", "up", "down", "left", "right")
NAMED = {
    "\x1b[A": "up", "\x1bOA": "up", "\x1b[B": "down", "\x1bOB": "down", "\x1b[C": "right", "\x1bOC": "right",
    "\x1b[D": "left", "\x1bOD": "left", "\x1b[5~": "page up", "\x1b[6~": "page down", "\x1b[H": "home",
    "\x1b[F": "end", "\x1b[1~": "home", "\x1b[4~": "end", "\x1b": "escape",
}  # fmt: skip
"""Names of arrow keys and the like, by what a terminal sends."""
LISTED = 20
"""Number of answers without a record that are listed."""
PriorFiles = tuple[Sequence[Path], str | None]
"""Files of old reviews, and the name of a column of probabilities; None for what the project keeps."""


def read(
    files: ScreeningFiles,
    judge: str,
    given: Mapping[str, Any],
    prior: PriorFiles,
    *,
    known: Sequence[str],
    ignore_labels: bool,
    overlap: float | None,
) -> None:
    """Read records on the terminal, by the settings of the project; those given now are stored."""
    has_terminal()  # before anything is written
    n_labelled, notices = _n_labelled(files), []
    if n_labelled == len(files.records) and not ignore_labels:
        ignore_labels = True
        notices.append("All records have a label. corank screen replay replays them.")
    with printable_console(err=True).status(f"comparing {len(files.records)} records"):
        files.groups  # noqa: B018
    files.require_richness(given)
    # labels are entries of the judge
    with files.journal(judge, **new_settings(given, use_labels=False)) as (journal, remarks):
        is_first, unique = not journal.entries, files.unique(journal)
        notices += store_settings(journal, unique.unique, given, prior)
        assert journal.project is not None
        options, more = stored_options(journal.store, journal.project, unique.unique)
        with printable_console(err=True).status(f"comparing {len(unique.unique)} records"):
            screening = Screening(
                unique, journal=journal, known=known, labels=not ignore_labels, share=overlap is not None,
                overlap=overlap or 0.0, **options,
            )  # fmt: skip
            screening.topic = str(journal.settings.get("topic", ""))
            screening.prepare()
        notices += [*more, *remarks, *_unmatched(screening.unmatched)]
        notices += _about(screening, n_labelled, ignore_labels, is_first)
        read_all(screening, **_shown(journal), notices=notices)
        plan = ScreeningPlan.stored(journal.settings)
    saved = f"Your answers are saved in {files.database}. Run the same command to continue."
    make_console().print(f"{saved}\nPlan of the project: {plan}.")


def adjudicate(files: ScreeningFiles, judge: str) -> None:
    """Settle conflicts on the terminal."""
    has_terminal()
    _, judges = files.judged
    with files.journal(judge) as (journal, _):
        session = Adjudication(files.unique(journal), journal)
        if session.next() is None:
            n = len(session.conflicts)
            sentence = f"All {n} conflicts are settled." if n else f"The judges {', '.join(judges)} have no conflict."
            make_console().print(sentence)
            return
        read_all(session, **_shown(journal))
    make_console().print(f"Your answers are saved in {files.database}.")


def _shown(journal: ScreeningJournal) -> dict[str, Any]:
    """Return reasons and highlighted words of the project, as `read_all` takes them."""
    settings = journal.settings
    wanted, unwanted = (split_words(str(settings.get(name, ""))) for name in ("highlight", "highlight_against"))
    reasons = read_reasons(str(settings.get("reasons", "")).splitlines())
    return {"reasons": reasons, "highlights": Highlights(wanted, unwanted)}


def read_all(
    session: Screening | Adjudication, *, reasons: Sequence[str], highlights: Highlights, notices: Sequence[str] = ()
) -> None:
    """
    Show records and record answers until all are read or the reader quits.

    A record is shown when the last answer is on the disk. While it is read, the model is fitted for both answers, so
    that the next one shows at once. If standard input is not a terminal, each of its lines is a key or its word, some
    with a text: ``note TEXT``, ``not REASON``, ``tag A, B``, ``duplicate ID``, ``change ID relevant``.
    """
    is_terminal, console = has_terminal(), make_console()
    with terminal(NAMED) if is_terminal else lines() as ask:
        reading = Reading(session, console, ask if is_terminal else None, tuple(reasons), highlights)
        if notices and not reading.begin(notices):
            return
        reading.open(session.next())
        with suppress(KeyboardInterrupt):  # Ctrl-C while the screen is drawn quits, as while a key is read
            while reading.record is not None:
                reading.show()
                action, text = _action(ask, reading, is_terminal)
                if action == "quit":
                    break
                reading.apply(action, text)
                if reading.is_over:
                    break
        reading.settle()
    if is_terminal and console.is_terminal:
        console.clear()
    if reading.record is None:
        console.print(reading.ending())
    for line in reading.state():
        console.print(line)


def _action(ask: Ask, reading: Reading, is_terminal: bool) -> tuple[str, str]:
    """Read keys until one is valid; return the action, and its text."""
    while True:
        key = ask()
        if key in PAGING and is_terminal:
            return "turn", key
        word, _, text = key.strip().partition(" ")
        action = KEYS.get(word.lower(), word.lower())
        if action == "escape":
            return "redraw", ""
        if action.isascii() and action.isdigit():
            return "reason", action
        if action in KEYS.values() or (action == "change" and not is_terminal):
            return action, text.strip()
        problem = f"{word!r} is not a key. Press ? for all keys." if is_terminal else f"{word!r} is not a key."
        reading.message = problem
        reading.show()
        if not is_terminal:
            reading.console.print(reading.keys_line())


def _n_labelled(files: ScreeningFiles) -> int:
    return int(np.count_nonzero(~np.isnan(files.records.labels)))


def _unmatched(entries: Sequence[ScreeningEntry]) -> list[str]:
    if not entries:
        return []
    n = len(entries)
    lines = [f"{n} answer{'s' * (n > 1)} of the journal name no record of these files; they stay in the journal:"]
    lines += [f"  {entry.action} {entry.id} {entry.title or '(no title)'}" for entry in entries[:LISTED]]
    return [*lines, f"  and {n - LISTED} more"] if n > LISTED else lines


def _about(screening: Screening, n_labelled: int, ignore_labels: bool, is_first: bool) -> list[str]:
    unique, lines = screening.unique, []
    if is_first:
        matched = unique.reference_counts
        summary = summarise(unique.everything, unique.groups, matched.n_matched_inside if matched else None)
        table = summary.table()
        for row in table.rows:
            counts = zip(row[2:], table.columns[2:], strict=True)
            name = f"{row[0]} ({row[1]})" if row[1] else f"{row[0]}"
            lines.append(f"{name}: {', '.join(f'{count} {column}' for count, column in counts)}")
        lines += summary.sentences()
    if n_labelled:
        how = "ignored" if ignore_labels else "used as known answers; --ignore-labels ignores them"
        lines.append(f"{n_labelled} labels of the file are {how}.")
    return lines


REFUSED = {
    "title": "name the column title in the file", "text": "name the column abstract in the file",
    "known": "include the records on the page, which finds them by their ids",
    "answers": "the database corank.db next to the file keeps them",
    "overlap": "set the number of readers on the page", "keep_duplicates": "separate duplicates on the page",
}  # fmt: skip
"""Options of `screen read` that pages do not have, and what to do instead."""


def require_possible(**given: Any) -> None:
    """Raise `InputError` for an option that pages do not have."""
    for name, instead in REFUSED.items():
        if given[name]:
            raise InputError(f"--{name.replace('_', '-')} does not work with --page: {instead}; or leave --page out.")


def read_on_page(
    paths: Sequence[Path], judge: str, given: Mapping[str, Any], prior: PriorFiles = ((), None), *, port: int = 0
) -> None:
    """Serve the project of these files, which is made at the first time, and open its page."""
    from corank_lab.cli.lab import run_server

    for module in ("starlette", "uvicorn", "jinja2", "python_multipart"):
        import_extra(module, "lab")
    for path in paths:
        if not path.is_file():
            raise InputError(f"{path} is not a file; pass a file of records.")
    settings = read_settings(given)
    ScreeningFiles(tuple(paths), None, is_grouped=True).require_richness(given)

    def begin(store: Database) -> str:
        return open_project(store, paths, settings, prior)

    folder = paths[0].absolute().parent
    run_server(folder, port, "127.0.0.1", (), None, judge, no_browser=False, begin=begin)


def read_settings(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that are given, as the pages read them; raise `InputError` if one is not allowed."""
    from corank_lab.pages.screening import ScreenWorkspace

    known = {setting.name: setting for setting in ScreenWorkspace.settings}
    return {name: known[name].require(value) for name, value in given.items() if value is not None}


def open_project(
    store: Database, paths: Sequence[Path], given: Mapping[str, Any], prior: PriorFiles = ((), None)
) -> str:
    """Return the address of the project of these files; a new one begins with the summary of the import."""
    files = ScreeningFiles(tuple(paths), None, is_grouped=True)
    is_labelled = bool(np.isnan(files.records.labels).any())
    with files.journal(store=store, **new_settings(given, use_labels=is_labelled)) as (journal, _):
        for line in store_settings(journal, files.records, given, prior):
            typer.echo(printable(line), err=True)
        return f"/p/{journal.id}/{'import' if journal.is_new else 'judge'}"


def new_settings(given: Mapping[str, Any], *, use_labels: bool) -> dict[str, Any]:
    """Return the settings of a new project: the default plan, and what is given."""
    return {
        **vars(DEFAULT_PLAN), "use_labels": use_labels,
        **{name: value for name, value in given.items() if value is not None},
    }  # fmt: skip


def store_settings(
    journal: ScreeningJournal, records: Records, given: Mapping[str, Any], prior: PriorFiles = ((), None)
) -> list[str]:
    """Store the settings and the prior knowledge that are given in the project; say how its plan changed."""
    project, (reviews, column) = journal.project, prior
    assert project is not None
    changed, sentence = plan_changes(project.settings, given, (entry for _, entry in journal.log))
    plan = vars(DEFAULT_PLAN)
    changed |= {name: value for name, value in given.items() if name not in plan and value is not None}
    old = read_records(*reviews) if reviews else None
    changed |= keep_prior(journal.store, project, records, old, column)
    if any(project.settings.get(name) != value for name, value in changed.items()):
        journal.change_settings(**changed)
    return [sentence] if sentence else []


REASONS = "reasons.txt"
"""File of the reasons of exclusion in the folder in which version 0.2 kept the answers."""


@dataclass(frozen=True)
class ScreeningFiles:
    """The files that a command names."""

    paths: tuple[Path, ...]  # files of records
    answers: Path | None  # folder of the database; None means that of the first file
    is_grouped: bool  # whether duplicates are judged as one
    # columns of title and text that the user named, as `read_records` takes them
    columns: Mapping[str, str] = field(default_factory=dict)

    @property
    def database(self) -> Path:
        """The database, which need not exist."""
        return (self.paths[0].absolute().parent if self.answers is None else self.answers) / NAME

    @property
    def old_folder(self) -> Path:
        """Folder in which version 0.2 kept the answers; it need not exist."""
        return Path(f"{self.paths[0]}.{ScreeningJournal.folder}") if self.answers is None else self.answers

    @cached_property
    def records(self) -> Records:

        return read_records(*self.paths, **self.columns)

    @cached_property
    def groups(self) -> DuplicateGroups | None:
        """Groups of duplicates; None if every record is judged."""
        from corank_lab.records.duplicates import find_duplicates

        return find_duplicates(self.records) if self.is_grouped else None

    @cached_property
    def settings(self) -> Mapping[str, Any] | None:
        """The settings of the project of the files; None if there is none."""
        if not self.database.is_file():
            return None
        with ScreeningJournal(self.database) as journal:
            project = journal.find_records(self.records)
            return None if project is None else project.settings

    def plan(self, given: Mapping[str, Any]) -> ScreeningPlan:
        """Return the plan of the project; values that are given now are stored in it, and named."""
        settings = {name: value for name, value in given.items() if value is not None}
        if self.settings is not None and settings:
            with self.journal() as (journal, _):
                for line in store_settings(journal, self.records, settings):
                    typer.echo(printable(line), err=True)
        return ScreeningPlan.stored({**(self.settings or {}), **settings})

    @property
    def n_to_judge(self) -> int:
        return len(self.records) if self.groups is None else len(self.groups.representatives)

    def require_richness(self, given: Mapping[str, Any]) -> None:
        """Raise if a random sample is larger than the files, before anything is stored."""
        if given.get("richness") is not None:
            require_richness(given["richness"], self.n_to_judge)

    @contextmanager
    def journal(
        self, judge: str = "me", *, store: Database | None = None, **settings: Any
    ) -> Iterator[tuple[ScreeningJournal, list[str]]]:
        """Open the journal of a judge in the project of the files."""
        for path in self.paths:
            if path.is_dir():
                raise InputError(
                    f"{path} is a folder, which may change; make one file of it with `corank records {path} -o "
                    "documents.csv`, and pass that file."
                )
        unique = UniqueRecords(self.records, self.groups)
        with explain_write_errors(self.database):
            self.database.parent.mkdir(parents=True, exist_ok=True)
        with ScreeningJournal(store or self.database, judge) as journal:
            journal.begin(unique, {path.name: read_regular(path) for path in self.paths}, **settings)
            sentence = journal.import_old(self.old_folder)
            listed = self.old_folder / REASONS
            if listed.exists() and not journal.settings.get("reasons"):
                journal.change_settings(reasons="\n".join(read_reasons(read_utf8(listed).splitlines())))
            yield journal, [sentence] if sentence else []

    def unique(self, journal: ScreeningJournal) -> UniqueRecords:
        return unique_records(self.records, self.groups, [entry for _, entry in journal.log])

    @cached_property
    def judged(self) -> tuple[UniqueRecords, dict[str, ScreeningAnswers]]:
        """The records and the answers of each judge; raise if there are none."""
        judges: dict[str, ScreeningAnswers] = {}
        if self.settings is not None or journal_paths(self.old_folder):
            with self.journal() as (journal, _):
                unique, entries = self.unique(journal), journal.by_judge()
                judges = {judge: ScreeningAnswers(unique, listed) for judge, listed in entries.items()}
                # pages do not store labels as answers of a judge
                uses_labels = journal.settings.get("use_labels", True)
                if judges and uses_labels and all(entry.text != LABEL for _, entry in journal.log):
                    labels = label_answers(unique)
                    judges |= {KNOWN: labels} if labels.relevant else {}
        if not judges:
            name = self.paths[0]
            raise InputError(f"there are no answers for {name} yet; run corank screen {name} first.")
        return unique, judges
