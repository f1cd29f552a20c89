"""List every module with the first line of its docstring; conf.py writes docs/map.md when it builds the site."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parent.parent


def modules() -> str:
    """Return one line a module, folder by folder: its path and the first sentence of its docstring."""
    source = ROOT / "src"
    lines = ["# Map of the code\n\nEvery module with the first line of its docstring."]
    for folder in sorted(path for path in source.rglob("*") if (path / "__init__.py").is_file()):
        files = [path for path in sorted(folder.glob("*.py")) if path.name != "__init__.py"]
        text = ast.get_docstring(ast.parse((folder / "__init__.py").read_text(encoding="utf-8"))) or ""
        lines.append(f"\n## {folder.relative_to(source)}/\n\n{text.splitlines()[0] if text else ''}\n")
        for path in files:
            summary = (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").splitlines()
            lines.append(f"- `{path.name}`: {summary[0] if summary else ''}")
    return "\n".join(lines) + "\n"
