"""Every experiment in one page: what was found, its tables, and the command of each; what could not be run is named."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from corank.data.durable.atomic import atomic_file
from corank.evaluation.report import Report
from corank.evaluation.report.blocks import Code, Details, PageBlock, Paragraph, Section
from corank.evaluation.report.page import page
from corank.tables import ReportTable
from experiments import about


@dataclass(frozen=True)
class Ran:
    """
    One experiment, run or not.

    name: one of `EXPERIMENTS`.
    command: what runs it alone.
    folder: where its report and pictures are, as the page sees it.
    report: what it found; None where it was not run.
    reason: why it was not run, a sentence.
    """

    name: str
    command: str
    folder: str
    report: Report | None = None
    reason: str = ""

    @property
    def section(self) -> Section:
        """What the page shows of it."""
        blocks: list[PageBlock] = [Code(self.command)]
        if self.report is None:
            return Section(self.name, self.name, [*blocks, Paragraph(f"Not run: {self.reason}")])
        told = self.report.blocks(f"{self.folder}/")
        # tables may be long: findings and pictures are seen at once, tables when they are opened
        blocks += [Details(block.title, block) if isinstance(block, ReportTable) else block for block in told]
        return Section(self.name, self.report.title, blocks)


def write_every(ran: Sequence[Ran], folder: Path, stem: str) -> tuple[Path, Path]:
    """
    Write the page, and the same as Markdown, in the place of those of an earlier run.

    ran: the experiments, in the order of the page.
    folder: an existing folder, which holds those of the experiments.
    stem: name of both files.
    Returns: the two files.
    """
    title = "Experiments"
    opening = _opening(ran)
    sections = [one.section for one in ran]
    links = [(one.anchor, one.name) for one in sections]
    texts = {
        f"{stem}.html": page(title, "\n".join(block.html() for block in [*opening, *sections]), links),
        f"{stem}.md": "\n\n".join([f"# {title}", *(block.markdown() for block in [*opening, *sections])]) + "\n",
    }
    for name, text in texts.items():
        with atomic_file(folder / name, overwrite=True) as scratch:
            scratch.write_text(text, encoding="utf-8")
    html, markdown = (folder / name for name in texts)
    return html, markdown


def _opening(ran: Sequence[Ran]) -> list[PageBlock]:
    """How many were run, and what each is."""
    rows = tuple((one.name, about(one.name), "run" if one.report else f"not run: {one.reason}") for one in ran)
    n = sum(one.report is not None for one in ran)
    table = ReportTable("What each asks", ("experiment", "what it asks", "state"), rows)
    return [Paragraph(f"{n} of {len(ran)} experiments were run.", "verdict"), table]
