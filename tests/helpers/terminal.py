"""Run a command on a pseudo-terminal: send keys, read the output."""

from __future__ import annotations

import os
import re
import select
import sys
import time


class OnTerminal:
    """Runs `python -m corank` with these words on a pseudo-terminal of so many columns and lines."""

    def __init__(self, *words, columns=80, lines=24):
        import pty

        self.said = b""
        self.child, self.handle = pty.fork()
        if self.child == 0:
            os.environ.update(COLUMNS=str(columns), LINES=str(lines), TERM="xterm")
            os.execv(sys.executable, [sys.executable, "-m", "corank", *map(str, words)])

    def type(self, keys):
        os.write(self.handle, keys)

    def wait_for(self, words, seconds=600):
        deadline, begin = time.monotonic() + seconds, len(self.said)
        while words not in self.said[begin:]:
            assert time.monotonic() < deadline, self.said[begin:]
            if select.select([self.handle], [], [], 1)[0]:
                self.said += os.read(self.handle, 1 << 16)

    def wait_for_end(self):
        try:
            self.wait_for(b"\0never printed")
        except OSError:  # the command has ended, and all it printed is read
            return

    def close(self):
        os.close(self.handle)
        os.waitpid(self.child, 0)

    @property
    def text(self):
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self.said.decode()).replace("\r", "")
