"""`corank lab` as a process of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading


class ServerProcess:
    """
    A running server.

    folder: of the database.
    options: further words of the command.
    program: words before "lab".
    preexec_fn: called in the new process before the program starts.

    link: the owner's link.
    base: start of all addresses.
    """

    def __init__(self, folder, *options, port=0, program=(sys.executable, "-m", "corank"), preexec_fn=None):
        words = [*program, "lab", str(folder), "--no-browser", "--port", str(port), *options]
        environment = {**os.environ, "PYTHONUNBUFFERED": "1", "COLUMNS": "500"}
        self.process = subprocess.Popen(
            words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment, preexec_fn=preexec_fn
        )
        self.lines = []
        for line in self.process.stdout:
            self.lines.append(line)
            if found := re.search(r"(http://[^/]+)/enter\?token=\S+", line):
                self.link, self.base = found[0], found[1]
                break
        else:
            self.process.stdout.close()
            self.process.wait()
            raise RuntimeError("".join(self.lines))
        # keep reading, so that the server never waits for a full pipe
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def port(self):
        return int(self.base.rpartition(":")[2])

    def kill(self):
        if self.process.stdout.closed:  # it has ended
            return
        self.process.kill()
        self._end()

    def stop(self):
        self.process.terminate()
        self._end()
        return self.process.returncode

    def _read(self):
        self.lines.extend(self.process.stdout)

    def _end(self):
        self.process.wait()
        self._reader.join()
        self.process.stdout.close()
