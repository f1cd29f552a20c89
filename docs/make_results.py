"""
Write docs/results.md: what every experiment found, with the commands that made its figures.

Pages of docs/experiments hold the tables of full runs. Of each, this takes the title, the commands, and what stands
under "How to read it", word for word: no figure is copied by hand, and none stands here without its command.
"""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).parent
RESULTS = DOCS / "results.md"
MARK = "**How to read it.**"
COMMAND = re.compile(r"(?:corank (?:compare|screen) |python -m experiments |python benchmarks/)\S+(?: \S+)*")
OPENING = """# Results

What was measured, page by page: the commands, and how the figures are to be read. The tables are on the pages
themselves. Data are found through `CORANK_DATA`; `python -m experiments.datasets` lists them. `python -m experiments
all` runs every experiment, `python -m experiments all --quick` a short version of each.

This page is written by `python docs/make_results.py` from `docs/experiments/`; a test fails when it is not up to date.
"""


def commands(page: str) -> list[str]:
    """Return the commands that a page names, in code or on lines of their own, each once."""
    spans = [" ".join(span.split()) for span in re.findall(r"`([^`]+)`", page)]
    lines = [line.strip() for line in re.findall(r"^    (\S.*)$", page, flags=re.MULTILINE)]
    return list(dict.fromkeys(text for text in (*lines, *spans) if COMMAND.fullmatch(text)))


def findings(page: str) -> str:
    """Return what stands under "How to read it", up to a heading, table, picture, or paragraph of the report."""
    if MARK not in page:
        return ""
    kept = []
    for block in re.split(r"\n{2,}", page.split(MARK, 1)[1].strip()):
        # paragraphs of reports are one long line; those that people wrote are not
        ends = block.startswith(("#", "|", "!", "    ")) or re.fullmatch(r"\*\*[^*]+\*\*", block)
        if ends or (len(block) > 200 and "\n" not in block):
            break
        kept.append(block)
    # seen from the folder above
    return re.sub(r"\]\((?!\w+:|#|/)", "](experiments/", "\n\n".join(kept))


def full_results() -> str:
    """Return the text that docs/results.md should have."""
    blocks = [OPENING.rstrip()]
    for path in sorted((DOCS / "experiments").glob("*.md")):
        page = path.read_text(encoding="utf-8")
        title = page.splitlines()[0].removeprefix("# ")
        blocks.append(f"## [{title}](experiments/{path.name})")
        named = commands(page)
        if named:
            blocks.append("\n".join(f"    {command}" for command in named))
        blocks.append(findings(page))
    return "\n\n".join(block for block in blocks if block) + "\n"


if __name__ == "__main__":
    RESULTS.write_text(full_results(), encoding="utf-8")
