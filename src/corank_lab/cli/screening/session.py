"""Begin a session of `corank screen`, on the terminal or on a page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from corank.cli import make_console
from corank.console import printable_console
from corank.data import explain_write_errors, read_regular, read_utf8
from corank.errors import InputError, import_extra
from corank_lab.cli.screening.pages import read_all
from corank_lab.cli.screening.view import Highlights
from corank_lab.cli.terminal import has_terminal
from corank_lab.database.database import Database
from corank_lab.database.journal import NAME, journal_paths
from corank_lab.records.records import Records, read_records, summarise
from corank_lab.screening import Screening, ScreeningAnswers, ScreeningJournal, UniqueRecords
from corank_lab.screening.answers import LABEL, ScreeningEntry
from corank_lab.screening.prior import keep_prior, kept_prior
from corank_lab.screening.team import KNOWN, Adjudication, label_answers, unique_records

if TYPE_CHECKING:  # it imports rapidfuzz
    from corank_lab.records.duplicates import DuplicateGroups


LISTED = 20
"""Number of answers without a record that are listed."""


def read(
    files: ScreeningFiles,
    judge: str,
    options: dict[str, Any],
    *,
    reasons: Sequence[str],
    reasons_file: Path | None,
    highlights: Highlights,
    ignore_labels: bool,
    overlap: float | None,
) -> None:
    """Read records on the terminal."""
    has_terminal()  # before anything is written
    n_labelled, notices = _n_labelled(files), []
    if n_labelled == len(files.records) and not ignore_labels:
        ignore_labels = True
        notices.append("All records have a label. corank screen replay replays them.")
    stopping = {name: options[name] for name in ("rule", "target", "confidence")}
    given_prior = options.pop("prior")
    settings = {**stopping, "topic": options["topic"] or "", "use_labels": False}  # labels are entries of the judge
    with printable_console(err=True).status(f"comparing {len(files.records)} records"):
        files.groups  # noqa: B018
    with files.journal(judge, **settings) as (journal, remarks):
        is_first, unique = not journal.entries, files.unique(journal)
        given = store_reasons(journal, reasons, reasons_file)
        store_prior(journal, unique.unique, *given_prior)
        assert journal.project is not None
        prior, remark = kept_prior(journal.store, journal.project, unique.unique)
        notices += [remark] if remark else []
        with printable_console(err=True).status(f"comparing {len(unique.unique)} records"):
            screening = Screening(
                unique, journal=journal, labels=not ignore_labels, share=overlap is not None, overlap=overlap or 0.0,
                prior=prior, **options,
            )  # fmt: skip
            screening.prepare()
        notices += [*remarks, *_unmatched(screening.unmatched), *_about(screening, n_labelled, ignore_labels, is_first)]
        read_all(screening, reasons=given, highlights=highlights, notices=notices)
    make_console().print(f"Your answers are saved in {files.database}. Run the same command to continue.")


def adjudicate(files: ScreeningFiles, judge: str, *, reasons: Sequence[str], highlights: Highlights) -> None:
    """Settle conflicts on the terminal."""
    has_terminal()
    judges = files.judges
    with files.journal(judge) as (journal, _):
        given = store_reasons(journal, reasons, None)
        session = Adjudication(files.unique(journal), journal)
        if session.next() is None:
            n = len(session.conflicts)
            sentence = f"All {n} conflicts are settled." if n else f"The judges {', '.join(judges)} have no conflict."
            make_console().print(sentence)
            return
        read_all(session, reasons=given, highlights=highlights)
    make_console().print(f"Your answers are saved in {files.database}.")


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
    "richness": "pass it without --page", "title": "name the column title in the file",
    "text": "name the column abstract in the file",
    "known": "include the records on the page, which finds them by their ids", "seed": "pages use 0",
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
    paths: Sequence[Path],
    judge: str,
    options: Mapping[str, Any],
    reasons: Sequence[str] = (),
    listed: Path | None = None,
    prior: tuple[Sequence[Path], str | None] = ((), None),
    *,
    port: int = 0,
) -> None:
    """Serve the project of these files, which is made at the first time, and open its page."""
    from corank_lab.cli.lab import run_server

    for module in ("starlette", "uvicorn", "jinja2", "python_multipart"):
        import_extra(module, "lab")
    for path in paths:
        if not path.is_file():
            raise InputError(f"{path} is not a file; pass a file of records.")
    lines = [*reasons, *(read_utf8(listed).splitlines() if listed is not None else ())]
    settings = read_settings({**options, "reasons": "\n".join(line for line in lines if line.strip())})

    def begin(store: Database) -> str:
        return open_project(store, paths, settings, prior)

    folder = paths[0].absolute().parent
    run_server(folder, port, "127.0.0.1", (), None, judge, no_browser=False, begin=begin)


def read_settings(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that are given, as the pages read them; raise `InputError` if one is not allowed."""
    from corank_lab.pages.screening import ScreenWorkspace

    known = {setting.name: setting for setting in ScreenWorkspace.settings}
    result = {name: known[name].require(value) for name, value in options.items() if value not in (None, "")}
    ScreenWorkspace.check_settings({name: item.default for name, item in known.items()} | result)
    return result


def open_project(
    store: Database,
    paths: Sequence[Path],
    settings: Mapping[str, Any],
    prior: tuple[Sequence[Path], str | None] = ((), None),
) -> str:
    """Return the address of the project of these files; a new one begins with the summary of the import."""
    from corank_lab.pages.screening import ScreenWorkspace

    known = {setting.name: setting for setting in ScreenWorkspace.settings}
    files = ScreeningFiles(tuple(paths), None, is_grouped=True)
    is_labelled = bool(np.isnan(files.records.labels).any())
    with files.journal(store=store, **{"use_labels": is_labelled, **settings}) as (journal, _):
        assert journal.project is not None
        stored = journal.project.settings
        changed = {
            name: value
            for name, value in settings.items()
            if value != known[name].default or not known[name].allows(stored.get(name, value))
        }
        if any(stored.get(name) != value for name, value in changed.items()):
            journal.change_settings(**changed)
        store_prior(journal, files.records, *prior)
        return f"/p/{journal.id}/{'import' if journal.is_new else 'judge'}"


REASONS = "reasons.txt"
"""File of the reasons of exclusion in the folder in which version 0.2 kept the answers."""
MAX_REASONS = 9


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

    @property
    def has_answers(self) -> bool:
        """Whether there is a project of the files, or a journal of version 0.2."""
        if journal_paths(self.old_folder):
            return True
        if not self.database.is_file():
            return False
        with ScreeningJournal(self.database) as journal:
            return journal.find_records(self.records) is not None

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
            assert journal.project is not None
            if listed.exists() and not journal.project.settings.get("reasons"):
                journal.change_settings(reasons="\n".join(_lines(read_utf8(listed))))
            yield journal, [sentence] if sentence else []

    def unique(self, journal: ScreeningJournal) -> UniqueRecords:
        return unique_records(self.records, self.groups, [entry for _, entry in journal.log])

    @cached_property
    def judged(self) -> tuple[UniqueRecords, dict[str, ScreeningAnswers]]:
        """The records and the answers of each judge; raise if there are none."""
        judges: dict[str, ScreeningAnswers] = {}
        if self.has_answers:
            with self.journal() as (journal, _):
                unique, entries = self.unique(journal), journal.by_judge()
                judges = {judge: ScreeningAnswers(unique, listed) for judge, listed in entries.items()}
                assert journal.project is not None
                # pages do not store labels as answers of a judge
                uses_labels = journal.project.settings.get("use_labels", True)
                if judges and uses_labels and all(entry.text != LABEL for _, entry in journal.log):
                    labels = label_answers(unique)
                    judges |= {KNOWN: labels} if labels.relevant else {}
        if not judges:
            name = self.paths[0]
            raise InputError(f"there are no answers for {name} yet; run corank screen {name} first.")
        return unique, judges

    @property
    def judges(self) -> dict[str, ScreeningAnswers]:
        return self.judged[1]


def store_reasons(journal: ScreeningJournal, given: Sequence[str], listed: Path | None) -> list[str]:
    """Return the reasons of exclusion: those given now, which are stored for later sessions, or the stored ones."""
    assert journal.project is not None
    stored = _lines(str(journal.project.settings.get("reasons", "")))
    reasons = [*given, *(_lines(read_utf8(listed)) if listed is not None else ())]
    reasons = list(dict.fromkeys(" ".join(reason.split()) for reason in reasons if reason.strip()))
    if len(reasons) > MAX_REASONS:
        raise InputError(f"there are {len(reasons)} reasons; the keys 1 to 9 allow {MAX_REASONS}, so merge some.")
    if reasons and reasons != stored:
        journal.change_settings(reasons="\n".join(reasons))
    return reasons or stored


def store_prior(journal: ScreeningJournal, records: Records, reviews: Sequence[Path], column: str | None) -> None:
    """Keep old reviews and the name of a column of probabilities in the project, for all sessions and the pages."""
    assert journal.project is not None
    settings = keep_prior(
        journal.store, journal.project, records, read_records(*reviews) if reviews else None, column
    )  # fmt: skip
    if any(journal.project.settings.get(name) != value for name, value in settings.items()):
        journal.change_settings(**settings)


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]
