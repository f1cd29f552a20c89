"""
Find phrases of the project's old dialect in source, documentation and messages.

    python docs/check_prose.py [FILE ...]

Each phrase has a plain replacement. A line that needs the phrase in its ordinary meaning is listed in `ALLOWED`.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CHECKED = ("src", "experiments", "docs", "examples", "benchmarks", "README.md", "CONTRIBUTING.md", "Makefile")

# phrase (a regular expression, any case) and what to write instead
PHRASES = {
    r"what came|nothing came|none came|\bno \w+ came\b": "say what was found or given",
    r"thro(?:w|ws|wn|wing) dice|\bdice\b|\bdie\b(?= of)": "random draws, rng, random seed",
    r"stands? there|stood there": "exists, is present",
    r"(?<!there )\bis no (?!longer|more|less|such|worse|better|need|guarantee|effect|difference|way\b)\w": "is not a",
    r"(?<!there )\bare no (?!longer|more|less|such|worse|better)\w": "are not, there are no",
    r"\bnothing is\b": "state the subject: no file is written",
    r"\bnobody\b": "no one, or name the actor",
    r"\bbeside(?!s)\b": "and, next to, in addition to, against",
    r"told apart|tells? apart": "distinguish",
    r"foretell|foretold": "predict, estimate",
    r"\bpassed over\b|\bpass over\b|\bpasses over\b": "ignore, skip",
    r"\bis told\b|\bare told\b|\bwas told\b|\bwere told\b": "receives, is given",
    r"\bdealt to\b|\bdeals? columns\b": "assigned, split",
    r"\bis asked to be\b|\bare asked to\b": "should, must",
    r"\bhanded on\b|\bhands on\b": "passes, forwards",
    r"\bin the place of\b": "instead of, replaces",
    r"\bthe house\b|\brooms?\b": "package, folder",
    r"\bknows? of\b": "has, contains",
    r"\bsays? of\b|\bsaid of\b": "states about, returns for",
    r"\bwhat it says\b": "its content, its text",
    r"\bcame out\b|\bcomes out\b": "results",
    r"\bas it comes\b|\bas they come\b": "with default parameters",
    r"\bgoes on\b|\bgo on\b|\bwent on\b": "continues",
    r"\bseen whole\b|\bby halves\b": "complete, completely",
    r"\bthings? that somebody\b|\bsomebody\b": "a person, a user, a judge",
    r"\bdear\b(?! reader)": "expensive",
    r"\bof others\b": "third-party, of other projects",
}

# (end of the path, part of the line): uses of a phrase in its ordinary meaning
ALLOWED: tuple[tuple[str, str], ...] = (
    ("docs/check_prose.py", ""),
    ("docs/tours/data-scientist.md", "room"),  # of flats
    ("docs/map.md", "passes over the examples"),  # epochs
)


def faults(path: Path) -> list[str]:
    """Return one line for each phrase found in a file."""
    name, text = path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")
    allowed = [part for end, part in ALLOWED if name.endswith(end)]
    lines, found = text.split("\n"), []
    for phrase, instead in PHRASES.items():
        for match in re.finditer(phrase, text, flags=re.IGNORECASE):
            number = text.count("\n", 0, match.start())
            if not any(part in lines[number] for part in allowed):
                found.append((match.start(), f"{name}:{number + 1}: {match[0]!r}: write {instead}"))
    return [message for _, message in sorted(found)]


def files() -> list[Path]:
    """Return the tracked text files that are checked."""
    listed = subprocess.run(["git", "ls-files", *CHECKED], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    kept = (".py", ".md", ".rst")
    return [ROOT / name for name in listed.splitlines() if name.endswith(kept) or name == "Makefile"]


if __name__ == "__main__":
    chosen = [Path(name).resolve() for name in sys.argv[1:]] or files()
    lines = [line for path in chosen if path.is_file() for line in faults(path)]
    print("\n".join(lines) or f"{len(chosen)} files are free of the listed phrases")
    sys.exit(bool(lines))
