"""Stores of answers to test with, on SQLite and on PostgreSQL."""

from __future__ import annotations

import atexit
import itertools
from functools import cache

import pytest

from corank_lab.database.backends import open_database
from helpers.postgres import PostgresServer

_numbers = itertools.count()


@cache
def postgres():
    """The server that all tests of this process share."""
    server = PostgresServer()
    atexit.register(server.remove)
    return server


def address_of(kind, folder):
    """Return the address of a new database."""
    if kind == "sqlite":
        return str(folder / "corank.db")
    pytest.importorskip("psycopg")
    if postgres().why_not:
        pytest.skip(postgres().why_not)
    return postgres().new_database(f"test{next(_numbers)}")


def open_new(kind, folder):
    return open_database(address_of(kind, folder))
