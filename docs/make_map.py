"""Update the list of modules in docs/map.md from the source; the text above the list is kept."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parent.parent
MAP = ROOT / "docs" / "map.md"
LINE = "## Every module\n"


def modules() -> str:
    """Return one line a module, folder by folder: its path and the first sentence of its docstring."""
    source = ROOT / "src" / "corank"
    lines = []
    for folder in [source, *sorted(path for path in source.rglob("*") if (path / "__init__.py").is_file())]:
        files = [path for path in sorted(folder.glob("*.py")) if path.name != "__init__.py"]
        text = ast.get_docstring(ast.parse((folder / "__init__.py").read_text(encoding="utf-8"))) or ""
        lines.append(f"\n### {folder.relative_to(source.parent)}/\n\n{text.splitlines()[0] if text else ''}\n")
        for path in files:
            summary = (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").splitlines()
            lines.append(f"- `{path.name}`: {summary[0] if summary else ''}")
    return "\n".join(lines) + "\n"


def full_map() -> str:
    """Return the text that docs/map.md should have."""
    return MAP.read_text(encoding="utf-8").split(LINE)[0] + LINE + modules()


if __name__ == "__main__":
    MAP.write_text(full_map(), encoding="utf-8")
