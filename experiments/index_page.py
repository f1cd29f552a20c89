"""One page of all experiments: findings, tables and commands, and those that could not run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from corank.comparison.report import Block, Document, PageBlock, Report, code, collapsed, paragraph, part
from corank.data.durable.atomic import atomic_file
from corank.tables import ReportTable
from experiments import about


@dataclass(frozen=True)
class ExperimentRun:
    """
    One experiment, run or not.

    name: one of `EXPERIMENTS`.
    command: command that runs it.
    folder: folder of its report and images, relative to the page.
    report: its result; None if it was not run.
    reason: why it was not run.
    """

    name: str
    command: str
    folder: str
    report: Report | None = None
    reason: str = ""

    @property
    def section(self) -> Block:
        """Its section of the page."""
        blocks: list[PageBlock] = [code(self.command)]
        if self.report is None:
            return part(self.name, self.name, [*blocks, paragraph(f"Not run: {self.reason}")])
        shown = self.report.blocks(f"{self.folder}/")
        # tables may be long, so they are collapsed
        blocks += [collapsed(block.title, block) if isinstance(block, ReportTable) else block for block in shown]
        return part(self.name, self.report.title, blocks)


def write_index(runs: Sequence[ExperimentRun], folder: Path, stem: str) -> tuple[Path, Path]:
    """
    Write the page as HTML and as Markdown, replacing those of an earlier run; return the two files.

    folder: an existing folder that contains those of the experiments.
    stem: name of both files.
    """
    document = Document("Experiments", [*_opening(runs), *(item.section for item in runs)])
    texts = {f"{stem}.html": document.html(), f"{stem}.md": document.markdown()}
    for name, text in texts.items():
        with atomic_file(folder / name, overwrite=True) as scratch:
            scratch.write_text(text, encoding="utf-8")
    html, markdown = (folder / name for name in texts)
    return html, markdown


def _opening(runs: Sequence[ExperimentRun]) -> list[PageBlock]:
    """Return the number of experiments that were run, and a table of all."""
    rows = tuple((item.name, about(item.name), "run" if item.report else f"not run: {item.reason}") for item in runs)
    n = sum(item.report is not None for item in runs)
    table = ReportTable("All experiments", ("experiment", "question", "state"), rows)
    return [paragraph(f"{n} of {len(runs)} experiments were run.", "verdict"), table]
