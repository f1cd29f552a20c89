"""What the keys of `corank screen` do, and the parts of its screens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Thread
from typing import TYPE_CHECKING, Any

from corank.console import printable
from corank.errors import InputError
from corank_lab.cli.screening.view import (
    DONE,
    Highlights,
    ListScreen,
    View,
    details_of,
    draw,
    entry_words,
    lay_out,
    record_foot,
    record_name,
    show_pages,
    texts,
    turned,
)
from corank_lab.cli.terminal import Ask
from corank_lab.screening import Screening, ScreeningProgress
from corank_lab.screening.model import similar_records, telling_words
from corank_lab.screening.team import Adjudication

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

HELP = """\
r  relevant: include the record
n  not relevant: exclude it without a reason
1-9  exclude it for a reason; --reason 'wrong population' defines them
l  put the record aside until no other is left
u  undo the last answer
o  write a note
g  tag the record; tags are saved with the answer
d  the record is a duplicate of another one
s  the records judged together are not duplicates: separate them from the next start on
h  history: list, search and change earlier answers
t  highlight the words by which relevant records differ from the others read
p  progress in full
space, b  next and previous page of a long abstract; arrows too
q  quit; all answers are saved"""
"""All keys."""
BEGIN = "enter begin   q quit"
ANY = ("\n", "\r")
"""Keys that begin the reading."""
TALL = 30
"""Number of lines from which a terminal shows the whole forecast with every record."""
N_SIMILAR = 9
"""Number of records that are offered as the original of a duplicate."""


class Reading:
    """
    A session on a terminal, the record on its screen, and the actions of keys.

    ask: reads keys and lines of a terminal; None if keys are lines of standard input.
    """

    def __init__(
        self,
        session: Screening | Adjudication,
        console: Console,
        ask: Ask | None,
        reasons: tuple[str, ...],
        highlights: Highlights,
    ) -> None:
        self.session: Any = session
        self.console, self.ask, self.reasons, self.highlights = console, ask, reasons, highlights
        self.record: int | None = None
        self.message = ""
        self.tags: list[str] = []
        self.is_over = False
        self._is_telling = self._has_changed = self._is_new = False
        self._page, self._n_pages = 0, 1
        self._learning: Thread | None = None
        self._is_screening = hasattr(session, "prefetch")

    def open(self, record: int | None, message: str = "") -> None:
        """Show another record; fit the model for both answers while it is read."""
        self.record, self.message = record, message
        self.tags = [*self.session.tags.get(record, ())]
        self._is_new, self._page = True, 0
        prefetch = getattr(self.session, "prefetch", None)
        if self.ask is not None and record is not None and prefetch is not None:
            self._learning = Thread(target=prefetch, args=(record,))
            self._learning.start()

    def begin(self, notices: Sequence[str]) -> bool:
        """Show what was found in the files, and on a terminal wait for a key; return whether to continue."""
        if self.ask is None or not self.console.is_terminal:
            for line in notices:
                self.console.print(printable(line))
            return True
        view = View("files", texts(["What was read"], "bold")[0], [], texts(notices), texts([BEGIN], "dim"))
        return show_pages(view, self.console, self.ask, ANY) not in DONE

    def settle(self) -> None:
        """Wait until the model is fitted, before answers change."""
        if self._learning is not None:
            self._learning.join()
            self._learning = None

    def turn(self, key: str) -> None:
        self._page = turned(self._page, key, self._n_pages)

    def show(self) -> None:
        """Draw the record on a terminal; elsewhere print it once, and each message once."""
        assert self.record is not None
        if self.ask is not None and self.console.is_terminal:
            shown, self._n_pages = lay_out(self.view(), self._page, self.console)
            draw(shown, self.console)
        else:
            view = self.view() if self._is_new else None
            for part in [] if view is None else [view.name, view.title, *view.details, *view.body, "", *view.below]:
                self.console.print(part)
            if view is None and self.message:
                self.console.print(printable(self.message))
        self._is_new, self.message = False, ""

    def apply(self, action: str, text: str) -> None:
        if action == "turn":
            self.turn(text)
        elif action == "redraw":
            return
        elif action in ("duplicate", "separate", "telling", "progress") and not self._is_screening:
            self.message = "This key has no meaning while conflicts are settled."
        else:
            getattr(self, f"_{action}")(text)

    def _relevant(self, _: str) -> None:
        self._answer(True)

    def _not(self, reason: str) -> None:
        self._answer(False, reason)

    def _reason(self, digits: str) -> None:
        if (reason := self._reason_of(digits)) is not None:
            self._answer(False, reason)

    def _reason_of(self, digits: str) -> str | None:
        if 0 < int(digits) <= len(self.reasons):
            return self.reasons[int(digits) - 1]
        self.message = f"There is no reason {digits}; define reasons with --reason 'wrong population' --reason ..."
        return None

    def _answer(self, relevant: bool, reason: str = "") -> None:
        self.settle()
        self.session.answer(self.record, relevant, reason=reason, tags=self.tags)
        self.open(self.session.next())

    def _later(self, _: str) -> None:
        self.settle()
        self.session.later(self.record, tags=self.tags)
        self.open(self.session.next())

    def _undo(self, _: str) -> None:
        self.settle()
        last = self.session.undo()
        if last is None:
            self.message = "There is no answer to undo."
        elif last in self.session.entries and self.session.entries[last].action != "later":
            title = self.session.records.titles[last]
            self.message = f"The earlier answer holds again: {entry_words(self.session.entries[last])}: {title}"
        else:
            self.open(last)

    def _note(self, text: str) -> None:
        text = text or (self.ask("note: ").strip() if self.ask else "")
        self.message = "The note is saved." if text else "The note is empty."
        if text:
            self.settle()
            self.session.note(self.record, text)

    def _tag(self, text: str) -> None:
        text = text or (self.ask("tags, separated by commas: ") if self.ask else "")
        self.tags = list(dict.fromkeys(filter(None, map(str.strip, text.split(",")))))
        self.message = f"tags: {', '.join(self.tags) or 'none'}; they are saved with the answer"

    def _telling(self, _: str) -> None:
        self._is_telling = not self._is_telling
        if self.ask is None:
            self._is_telling = False
            self.message = self._telling_line(self._telling_words())

    def _progress(self, _: str) -> None:
        self._page_of("progress", self.state())

    def _help(self, _: str) -> None:
        listed = [f"{number}  exclude: {reason}" for number, reason in enumerate(self.reasons, 1)]
        self._page_of("keys", [*HELP.splitlines(), *listed])

    def _page_of(self, name: str, shown: list[str]) -> None:
        """Show a page of text until a key is pressed; elsewhere print it."""
        if self.ask is None:
            self.message = "\n".join(shown)
            return
        view = View("corank screen", texts([name], "bold")[0], [], texts(shown), texts(["q back"], "dim"))
        self.is_over = show_pages(view, self.console, self.ask, ("\n", "\r", "?", "p")) == "quit"

    def _separate(self, _: str) -> None:
        self.settle()
        try:
            self.session.distinct(self.record)
        except InputError:
            self.message = "This record has no duplicates."
        else:
            self.message = "They are separate records from the next start on."

    def _duplicate(self, text: str) -> None:
        of = self._original(text)
        if of is not None:
            self.settle()
            self.session.duplicate(self.record, of)
            self.open(self.session.next())

    def _original(self, text: str) -> int | None:
        records = self.session.records
        if self.ask is None:
            result = self.session.unique.find(text) if text else None
            self.message = "" if result is not None else f"There is no record {text!r}; write duplicate and an id."
            return None if result is None or result == self.record else int(result)
        assert self.record is not None
        numbers, listed = (
            similar_records(self.session.views, self.record, n=N_SIMILAR),
            ListScreen(self.console, self.ask),
        )
        heading = "This record is a duplicate of ... (similar records)"
        while True:
            rows = [f"{records.titles[number]} ({records.ids[number]})" for number in numbers]
            key = listed.choose(
                heading, rows, ("/", "\n", "\r"), self._feet(numbers),
                "enter choose   / search all titles   q back",
            )  # fmt: skip
            if key in DONE:
                self.is_over = key == "quit"
                return None
            if key == "/":
                words = self.ask("words of the title: ").casefold().split()
                titles = enumerate(records.titles)
                numbers = [i for i, title in titles if all(word in title.casefold() for word in words)]
                numbers = [i for i in numbers if i != self.record][:1000]
                heading = f"This record is a duplicate of ... ({len(numbers)} found)"
            elif numbers:
                return numbers[listed.at]

    def _history(self, search: str) -> None:
        records, notes = self.session.records, self.session.notes
        if self.ask is None:
            self.message = "\n".join(
                f"{records.ids[number]} {entry_words(entry, notes.get(number, ''))} | {records.titles[number]}"
                for number, entry in self.session.history(search)
            )
            return
        listed = ListScreen(self.console, self.ask)
        digits = [str(number) for number in range(1, len(self.reasons) + 1)]
        while True:
            result = self.session.history(search)
            rows = [f"{e.time[:16].replace('T', ' '):16} {entry_words(e):9} {records.titles[n]}" for n, e in result]
            heading = f"history: {len(result)} answer{'s' * (len(result) != 1)}" + (
                f" with {search!r}" if search else ""
            )
            key = listed.choose(
                heading, rows, ("/", "\n", "\r", "r", "n", "o", *digits),
                self._feet([number for number, _ in result]),
                "enter show   r relevant   n not   1-9 reason   o note   / search   q back",
            )  # fmt: skip
            if key in DONE:
                self.is_over = key == "quit"
                return
            if key == "/":
                search, listed.at = self.ask("search: "), 0
            elif result:
                self._change_listed(result[listed.at][0], key)
                listed.at = 0 if self._has_changed else listed.at  # the last change comes first
                if self.is_over:
                    return

    def _feet(self, numbers: list[int]) -> Callable[[int], list[str]]:
        """Return the lines of a list about the record at the cursor, by its place."""

        def foot(at: int) -> list[str]:
            entry = self.session.entries.get(numbers[at])
            answer = entry_words(entry, self.session.notes.get(numbers[at], "")) if entry else ""
            return record_foot(self.session.records, numbers[at], answer)

        return foot

    def _change_listed(self, number: int, key: str) -> None:
        assert self.ask is not None
        self._has_changed = False
        if key in ("\n", "\r"):
            digits = [str(number) for number in range(1, len(self.reasons) + 1)]
            view = self._view_of(number, texts(["r relevant   n not   1-9 reason   o note   q back"], "dim"))
            key = show_pages(view, self.console, self.ask, ("r", "n", "o", "\n", "\r", *digits))
        self.is_over = key == "quit"
        if key == "o":
            text = self.ask("note: ").strip()
            if text:
                self.settle()
                self.session.note(number, text)
        elif key in ("r", "n") or key.isdigit():
            self._change_to(number, key == "r", self.reasons[int(key) - 1] if key.isdigit() else "")

    def _change(self, text: str) -> None:
        """Change an answer by id, in lines of standard input."""
        name, _, rest = text.partition(" ")
        action, _, reason = rest.strip().partition(" ")
        number = self.session.unique.find(name)
        if number is None or number not in self.session.entries or action not in ("relevant", "not", "r", "n"):
            self.message = f"{text!r} is not a change; write change, the id of an answered record, and relevant or not."
            return
        self._change_to(number, action[0] == "r", reason.strip())
        self.message = f"changed {name}: {entry_words(self.session.entries[number])}"

    def _change_to(self, number: int, relevant: bool, reason: str) -> None:
        self.settle()
        self._has_changed = True
        tags = self.session.entries[number].tags
        self.session.change(number, relevant, reason=reason, tags=tags)
        if number == self.record:  # it was put aside, and shown again
            self.open(self.session.next())

    def view(self) -> View:
        assert self.record is not None
        state = self.state()
        if self.ask is not None and self.console.height < TALL:
            state = state[:2]  # p shows the rest
        below = texts([*state, *filter(None, [self.message])])
        return self._view_of(self.record, [*below, *texts([self.keys_line()], "dim")], is_present=True)

    def _view_of(self, number: int, below: list[Text], *, is_present: bool = False) -> View:
        records, session = self.session.records, self.session
        words = self._telling_words() if is_present and self._is_telling else []
        marks = self.highlights
        if words:
            wanted = tuple(word for word, weight in words if weight > 0)
            unwanted = tuple(word for word, weight in words if weight < 0)
            marks = Highlights(wanted, unwanted)
        body = texts([self._telling_line(words)] if is_present and self._is_telling else [], "italic")
        body += [marks.apply(text) for text in texts((records.abstracts[number] or "(no abstract)").splitlines())]
        keywords = "; ".join(records.details[number].keywords)
        body += [marks.apply(text) for text in texts([f"keywords: {keywords}"] if keywords else [], "italic")]
        tags = self.tags if is_present else session.entries[number].tags
        note = session.notes.get(number, "")
        body += texts([*([f"note: {note}"] if note else []), *([f"tags: {', '.join(tags)}"] if tags else [])], "italic")
        body += texts([*self._verdicts(number), *self._duplicates(number)], "italic")
        title = marks.apply(texts([records.titles[number] or "(no title)"], "bold")[0])
        details = texts(details_of(records.details[number]), "dim")
        return View(record_name(records, number), title, details, body, below)

    def _duplicates(self, number: int) -> list[str]:
        everything, (_, *others) = self.session.unique.everything, self.session.unique.members(number)
        if not others:
            return []
        lines = [f"judged together with {len(others)} duplicate{'s' * (len(others) > 1)}; s separates them:"]
        for other in others:
            about = " · ".join(details_of(everything.details[other]))
            lines.append(f"  {everything.titles[other]} ({' · '.join(filter(None, [everything.ids[other], about]))})")
        evidence = self.session.unique.evidence(number)
        return [*lines, f"  evidence: {'; '.join(evidence)}"] if evidence else lines

    def _verdicts(self, number: int) -> list[str]:
        if self._is_screening:
            return []
        return [
            f"{verdict.judge}: {entry_words(verdict.entry, verdict.note)}" for verdict in self.session.verdicts(number)
        ]

    def _telling_words(self) -> list[tuple[str, float]]:
        assert self.record is not None
        records = self.session.records
        text = f"{records.titles[self.record]} {records.abstracts[self.record]}"
        return telling_words(self.session.views, text, *self.session.judged, n=12)

    def _telling_line(self, words: list[tuple[str, float]]) -> str:
        signed = ", ".join(f"{'+' if weight > 0 else '-'}{word}" for word, weight in words)
        return f"telling words: {signed or 'none before there are answers of both kinds'}"

    def state(self) -> list[str]:
        if self._is_screening:
            progress = self.session.progress()
            return [summary(progress), *progress.forecast]
        left, all_ = len(self.session.left), len(self.session.conflicts)
        return [f"{left} of {all_} conflict{'s' * (all_ != 1)} left."]

    def ending(self) -> str:
        """Say why no record is shown."""
        if not self._is_screening:
            return "All conflicts are settled."
        elsewhere = self.session.progress().elsewhere
        if not elsewhere:
            return "All records are read."
        return f"No record is left for you; other judges are reading {elsewhere} or have put them aside."

    def keys_line(self) -> str:
        """Return the most important keys, as many as fit."""
        keys = ["r relevant", "n not", *(["1-9 reason"] if self.reasons else []), "l later", "u undo"]
        keys += ["h history", "o note", "g tag", "t telling"]
        width = self.console.width if self.ask is not None else 80
        while len(line := "   ".join([*keys, "? help", "q quit"])) > width and len(keys) > 2:
            keys.pop()
        return line


def summary(progress: ScreeningProgress) -> str:
    """Describe the progress in a line or two."""
    text = f"found {progress.found} relevant, read {progress.read} of {progress.n}"
    more = {"put aside": progress.aside, "with other judges": progress.elsewhere}
    text += "".join(f", {count} {what}" for what, count in more.items() if count)
    if progress.evidence is None and progress.to_sample:
        text += f"; {progress.to_sample} random records to read until the next test"
    return f"{text}. {progress.advice}".strip()
