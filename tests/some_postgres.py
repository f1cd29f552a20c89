"""A PostgreSQL server in a temporary folder, without a network address."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
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
