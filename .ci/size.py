"""Print lines and modules of each folder beside the budget in CONTRIBUTING.md; an exceeded budget is no error."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def measure(folder: Path, pattern: str) -> tuple[int, int]:
    """Return lines of modules and stubs, and the number of modules."""
    files = [path for end in ("py", "pyi") for path in folder.glob(f"{pattern}.{end}")]
    return sum(len(path.read_bytes().splitlines()) for path in files), sum(path.suffix == ".py" for path in files)


def main() -> None:
    """Print the table."""
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([\w/]+)` \| ([\d,]+) \| ([\d,]+) \|", page, flags=re.MULTILINE)
    budget = {name: (int(lines.replace(",", "")), int(modules.replace(",", ""))) for name, lines, modules in rows}
    sizes = {}
    for package in ("corank", "corank_lab"):
        source = ROOT / "src" / package
        sizes[package] = measure(source, "**/*")
        for folder in sorted(path for path in source.iterdir() if (path / "__init__.py").is_file()):
            sizes[f"{package}/{folder.name}"] = measure(folder, "**/*")
        if package == "corank":
            sizes["corank/*"] = measure(source, "*")
    print(f"{'folder':<26}{'lines':>8}{'budget':>8}{'modules':>9}{'budget':>8}")
    for name, size in sizes.items():
        limits = budget.get(name, ("-", "-"))
        over = " over" if name in budget and (size[0] > budget[name][0] or size[1] > budget[name][1]) else ""
        print(f"{name:<26}{size[0]:>8}{limits[0]:>8}{size[1]:>9}{limits[1]:>8}{over}")
    print(f"{'all':<26}{sum(sizes[name][0] for name in ('corank', 'corank_lab')):>8}")


if __name__ == "__main__":
    main()
