"""
Build the wheel and the source distribution, install the wheel in a new environment, and run the README's blocks there.

`make package` calls it. The blocks run in an empty folder, with the `corank` and the Python of that environment.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BLOCK = re.compile(r"^```(sh|python)\n(.*?)^```$", flags=re.DOTALL | re.MULTILINE)


def run(*words: str | Path, **options: object) -> None:
    """Run a program; end with its output if it fails."""
    result = subprocess.run([*map(str, words)], capture_output=True, text=True, **options)  # type: ignore[call-overload]
    if result.returncode:
        sys.exit(f"{' '.join(map(str, words))[:300]}\n{result.stdout[-4000:]}\n{result.stderr[-4000:]}")


def main() -> None:
    """Build, install and run; the last line counts the blocks."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (extras,) = re.findall(r"pip install '\.\[([\w,]+)\]'", readme)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", place, ROOT)
        (wheel,) = place.glob("corank-*.whl")
        environment = place / "environment"
        venv.create(environment, with_pip=True)
        python = environment / "bin" / "python"
        run(python, "-m", "pip", "install", "--quiet", "hatchling", f"corank[{extras}] @ {wheel.as_uri()}")
        run(python, "-m", "hatchling", "build", "--target", "sdist", "--directory", place / "sdist", cwd=ROOT)
        run(
            python,
            "-m",
            "pip",
            "wheel",
            "--quiet",
            "--no-deps",
            "--wheel-dir",
            place / "again",
            *place.glob("sdist/*.tar.gz"),
        )
        (again,) = place.glob("again/*.whl")
        if again.name != wheel.name:
            sys.exit(f"the source distribution builds {again.name}, the clone {wheel.name}")
        empty = place / "empty"
        empty.mkdir()
        blocks = [(language, text) for language, text in BLOCK.findall(readme) if not text.startswith("make ")]
        for language, text in blocks:
            start = ["bash", "-euo", "pipefail", "-c"] if language == "sh" else [str(python), "-c"]
            run(*start, text, cwd=empty, env={"PATH": f"{environment / 'bin'}:/usr/bin:/bin", "HOME": folder})
    print(f"{wheel.name}: {len(blocks)} blocks of the README ran in a new environment")


if __name__ == "__main__":
    main()
