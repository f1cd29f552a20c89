"""A PostgreSQL server in a temporary folder, without a network address."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path


class PostgresServer:
    """
    A server that is started, stopped and removed by a test.

    why_not: the reason if a server cannot be started here.
    """

    why_not = ""

    def __init__(self):
        found = [shutil.which("pg_ctl"), *map(str, sorted(Path("/usr/lib/postgresql").glob("*/bin/pg_ctl")))]
        found = [one for one in found if one]
        self.folder = None
        if not found:
            self.why_not = "PostgreSQL is not installed"
            return
        self._bin = Path(found[-1]).parent
        self._user = []
        if os.geteuid() == 0:  # PostgreSQL refuses to run as root
            try:
                owner = pwd.getpwnam("postgres")
            except KeyError:
                self.why_not = "PostgreSQL does not run as root, and there is no user postgres"
                return
            self._user = ["runuser", "-u", "postgres", "--"]
        self.folder = Path(tempfile.mkdtemp(prefix="pg"))
        if self._user:
            os.chown(self.folder, owner.pw_uid, owner.pw_gid)
        try:
            self._run("initdb", "-D", self.folder / "data", "-U", "corank", "-A", "trust", "-E", "UTF8", "--no-sync")
            self.start()
        except (OSError, subprocess.CalledProcessError) as error:
            self.why_not = f"PostgreSQL cannot be started ({error})"

    @property
    def address(self):
        return f"postgresql://corank@/postgres?host={self.folder}"

    def start(self):
        options = f"-c listen_addresses='' -k {self.folder}"
        log = self.folder / "log"
        self._run("pg_ctl", "-D", self.folder / "data", "-o", options, "-l", log, "-w", "-t", "60", "start")

    def stop(self, mode="fast"):
        self._run("pg_ctl", "-D", self.folder / "data", "-m", mode, "-w", "stop")

    def kill(self):
        """End all processes of the server by SIGKILL, as a computer that fails does, and start it again."""
        lock = self.folder / "data" / "postmaster.pid"
        first = int(lock.read_text().split()[0])
        children = Path(f"/proc/{first}/task/{first}/children").read_text().split()
        processes = [first, *map(int, children)]  # the first one starts no others once it is dead
        for process in processes:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        while any(map(_runs, processes)):
            time.sleep(0.01)
        # numbers of processes that are dead, but that nobody has waited for, look like those of a running server
        for file in (lock, *self.folder.glob(".s.PGSQL.*")):
            file.unlink(missing_ok=True)
        self.start()

    def new_database(self, name):
        import psycopg

        with psycopg.connect(self.address, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return f"postgresql://corank@/{name}?host={self.folder}"

    def remove(self):
        if self.folder is not None:
            subprocess.run(
                [*self._user, self._bin / "pg_ctl", "-D", self.folder / "data", "-m", "immediate", "-w", "stop"],
                capture_output=True, cwd="/",
            )  # fmt: skip
            shutil.rmtree(self.folder, ignore_errors=True)

    def _run(self, program, *arguments):
        # pg_ctl start leaves a server behind that keeps its outputs open, so they must not be pipes
        subprocess.run(
            [*self._user, self._bin / program, *arguments], check=True, cwd="/", stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip


def _runs(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False
