"""One page of HTML that holds its own style: readable on a phone, on paper, in the dark and by keyboard."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from corank._version import __version__
from corank.evaluation.report.style import COLOURS, PAGE, PLOT

# with it a browser refuses every request that the page could make
_SEAL = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def page(title: str, body: str, sections: Sequence[tuple[str, str]] = (), *, sealed: bool = False) -> str:
    """
    Put a page together.

    title: its heading.
    body: what stands below the heading, HTML.
    sections: anchor and name of the sections that links at the top lead to.
    sealed: whether browsers are told to load nothing; pictures that stand in files of their own would not be shown.
    Returns: the whole page.
    """
    links = "".join(f'<li><a href="#{anchor}">{escape(name)}</a></li>' for anchor, name in sections)
    # an icon of no bytes: browsers ask the server for one otherwise
    head = [
        '<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        *([f'<meta http-equiv="Content-Security-Policy" content="{_SEAL}">'] if sealed else []),
        f"<title>{escape(title)}</title>",
        '<link rel="icon" href="data:,">',
        f"<style>{COLOURS}{PAGE}{PLOT}</style>",
    ]
    lines = [
        "<!doctype html>",
        '<html lang="en">',
        "<head>",
        *head,
        "</head>",
        "<body>",
        '<a class="skip" href="#main">Skip to the content</a>',
        f"<header>\n<h1>{escape(title)}</h1>",
        *([f'<nav aria-label="Sections"><ul>{links}</ul></nav>'] if links else []),
        "</header>",
        f'<main id="main" tabindex="-1">\n{body}\n</main>',
        f"<footer>Made by corank {escape(__version__)}.</footer>",
        "</body>",
        "</html>",
    ]
    return "\n".join(lines) + "\n"


def section(anchor: str, name: str, *blocks: str) -> str:
    """
    Put a section together.

    anchor: what links lead to.
    name: its heading.
    blocks: HTML; empty ones are left out.
    Returns: the section, or nothing where no block is left.
    """
    kept = [block for block in blocks if block]
    if not kept:
        return ""
    heading = f'<h2 id="{anchor}-heading">{escape(name)}</h2>'
    return "\n".join([f'<section id="{anchor}" aria-labelledby="{anchor}-heading">', heading, *kept, "</section>"])


def details(summary: str, content: str) -> str:
    """
    Fold something away, which keys and paper open again.

    summary: what it is.
    content: HTML.
    Returns: a ``details`` element.
    """
    return f"<details>\n<summary>{escape(summary)}</summary>\n{content}\n</details>"
