"""`corank lab`: open the pages in the browser, and recover a damaged database."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from corank.cli import Force, Json
from corank.errors import InputError

if TYPE_CHECKING:
    import socket

    from rich.console import Console

    from corank_lab.database.database import Database

LOCAL = ("127.0.0.1", "::1", "localhost")


def pages(
    folder: Annotated[Path, typer.Argument(help="Folder of the database corank.db, created if needed.")] = Path(),
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes a free one.")] = 8642,
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 is the whole network.")] = "127.0.0.1",
    allow_host: Annotated[
        list[str] | None,
        typer.Option(help="Name under which browsers reach the server; repeatable.", metavar="NAME"),
    ] = None,
    database: Annotated[
        str | None, typer.Option(help="Database instead of corank.db: postgresql://user@host/name.", metavar="URL")
    ] = None,
    judge: Annotated[str, typer.Option(help="Your name in the log of answers.")] = "me",
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Only print the link.")] = False,
) -> None:
    """Judge in the browser, alone or with others. Ctrl-C stops the server; answers are saved as they are given."""
    run_server(folder, port, host, allow_host or (), database, judge, no_browser=no_browser)


def open_place(place: str, *, must_exist: bool = False) -> Database:
    """Open the database of a folder, or the one with an address."""
    from corank_lab.database.backends import open_database

    if "://" in place:
        return open_database(place)
    folder = Path(place)
    if must_exist and not (folder / "corank.db").is_file():
        raise InputError(f"{folder} has no database corank.db; pass the folder of a service.")
    if not folder.is_dir():
        if folder.exists() or not folder.parent.is_dir():
            raise InputError(f"{folder} is not a folder; pass the folder that holds, or will hold, corank.db.")
        folder.mkdir()
    return open_database(folder / "corank.db")


def make_server(app: Any, *, keep_alive: int) -> Any:
    """Return a server of an application, not started yet."""
    import uvicorn

    config = uvicorn.Config(
        app, log_level="warning", access_log=False, server_header=False, ws="none", lifespan="off",
        timeout_graceful_shutdown=5, timeout_keep_alive=keep_alive,
    )  # fmt: skip
    return uvicorn.Server(config)


def run_until_stopped(server: Any, listening: socket.socket, console: Console) -> None:
    """Serve until Ctrl-C."""
    try:
        server.run(sockets=[listening])
    except KeyboardInterrupt:
        console.print("Stopped.")


def run_server(
    folder: Path,
    port: int,
    host: str,
    allow_host: Sequence[str],
    database: str | None,
    judge: str,
    *,
    no_browser: bool,
    begin: Callable[[Database], str] = lambda _: "",
) -> None:
    """Serve the pages until Ctrl-C."""
    import sys
    import threading

    from corank.cli import make_console
    from corank.errors import import_extra

    hosts = [item.strip().lower() for item in allow_host if item.strip()]
    if host not in LOCAL and not hosts:
        raise InputError(
            f"--host is {host}, which other computers can reach; name the server with --allow-host, such as "
            "--allow-host judge.example.org."
        )
    for module in ("starlette", "uvicorn", "jinja2", "python_multipart"):
        import_extra(module, "lab")
    from corank_lab.pages.app import create_app
    from corank_lab.pages.preferences import warm_up

    with open_place(database or str(folder)) as store, listen(host, port, "pages", "links") as listening:
        number = listening.getsockname()[1]
        name = hosts[0] if hosts else "127.0.0.1" if host in LOCAL else host
        first = begin(store)
        link = f"http://{name}:{number}/enter?token={store.add_owner(judge)}" + (f"&to={first}" if first else "")
        console = make_console()
        console.print(f"Open {link}", soft_wrap=True, highlight=False)
        where = "the PostgreSQL database" if database else str(folder / "corank.db")
        console.print(f"Answers are saved in {where}. Press Ctrl-C to stop.", soft_wrap=True, highlight=False)
        server = make_server(create_app(store, hosts=hosts), keep_alive=30)
        sys.setswitchinterval(0.001)  # a model that learns must not delay pages
        threading.Thread(target=warm_up, daemon=True).start()
        if not no_browser and has_browser():
            threading.Thread(target=_open_browser, args=(server, link), daemon=True).start()
        elif not no_browser:
            console.print("No browser with a window was found here; open the link in yours.", soft_wrap=True)
        run_until_stopped(server, listening, console)


def listen(host: str, port: int, what: str, secrets: str) -> socket.socket:
    """Open a socket that listens, or raise if the port is taken; warn if others can listen to it."""
    import socket

    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sends without delay only on sockets that name the protocol; otherwise a page takes 40 ms more
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except OSError as error:
        listening.close()
        raise InputError(
            f"port {port} of {host} cannot be used ({error.strerror}); another server may use it. Choose another with "
            "--port, or 0 for any free one."
        ) from None
    listening.listen(128)
    if host not in LOCAL:
        typer.echo(
            f"corank: the {what} are served without encryption; put a server with TLS in front (nginx, Caddy), or "
            f"others on the network can read the {secrets}.",
            err=True,
        )
    return listening


def has_browser() -> bool:
    """Return whether a browser can be opened that does not run in this terminal, as lynx and w3m do."""
    import os
    import webbrowser

    try:
        result = webbrowser.get()
    except webbrowser.Error:
        return False
    return "BROWSER" in os.environ or type(result) is not webbrowser.GenericBrowser


def _open_browser(server: Any, link: str) -> None:
    import time
    import webbrowser

    while not server.started and not server.should_exit:
        time.sleep(0.05)
    if server.started:
        webbrowser.open(link)


def recover(
    database: Annotated[Path, typer.Argument(help="Damaged database, or its folder; it is only read.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="New folder, which will hold corank.db.")],
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Copy the sound rows of a damaged database to a new one, and list the answers that are lost."""
    from corank.cli import emit
    from corank_lab.api.log import TABLES
    from corank_lab.database.transfer import recover as copy_sound_rows

    damaged = database / "corank.db" if database.is_dir() else database
    result = copy_sound_rows(damaged, output, apps=(TABLES,), overwrite=force)
    lines = [
        f"Copied {result.n_rows['projects']} projects, {result.n_rows['answers']} answers and "
        f"{result.n_rows['events']} events to {output / 'corank.db'}.",
        *(f"Lost: {what}." for what in result.lost),
    ]
    emit(as_json, "lab recover", {"rows": dict(result.n_rows), "lost": result.lost}, "\n".join(lines))
