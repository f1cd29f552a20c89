"""`python -m corank` is the command `corank`."""

from __future__ import annotations

import os
import signal
from typing import Any


def main() -> None:
    """Run the command line; Ctrl-C during its imports ends it with one sentence and exit code 130."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:  # not in the background, where Ctrl-C is ignored
        # an exception in the middle of an import may be swallowed, or leave a traceback
        signal.signal(signal.SIGINT, _end)
    from corank.cli import main as run

    signal.signal(signal.SIGINT, before)
    run()


def _end(*_: Any) -> None:
    os.write(2, b"corank: interrupted before it began.\n")
    os._exit(130)


if __name__ == "__main__":
    main()
