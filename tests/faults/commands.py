"""Every command that writes a file or folder, as a user calls it."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

from corank.cli import app
from corank.data.durable import atomic
from faults.writers import Writer, sources

SIMULATE = import_module("corank_lab.screening.simulate")


def say(*words: object, overwrite: bool) -> None:
    app([*map(str, words), *(["--force"] if overwrite else [])], standalone_mode=False)


def convert(target: Path, version: int, overwrite: bool) -> None:
    say("convert", sources() / f"{version}.txt", target, overwrite=overwrite)


def convert_without_exchange(target: Path, version: int, overwrite: bool) -> None:
    with mock.patch.object(atomic, "exchange", return_value=False):
        convert(target, version, overwrite)


def fit(target: Path, version: int, overwrite: bool) -> None:
    words = ["--model", "spd", "--iterations", 500, "-o", target]
    say("fit", sources() / f"{version}.txt", *words, overwrite=overwrite)


def rank(target: Path, version: int, overwrite: bool) -> None:
    model, rows = sources() / f"{version}.safetensors", sources() / f"{version}.txt"
    form = "trec" if target.suffix == ".run" else "scores"
    say("rank", model, rows, "--format", form, "-o", target, overwrite=overwrite)


def evaluate(target: Path, version: int, overwrite: bool) -> None:
    truth, scores = sources() / f"{version}.txt", sources() / f"{version}.scores"
    say("evaluate", truth, scores, "--per-query", target, overwrite=overwrite)


def card(target: Path, version: int, overwrite: bool) -> None:
    model, rows = sources() / f"{version}.safetensors", sources() / f"{version}.txt"
    say("card", model, rows, "-o", target, overwrite=overwrite)


def suggest(target: Path, version: int, overwrite: bool) -> None:
    model, rows = sources() / f"{version}" / "model.safetensors", sources() / f"{version}" / "train.txt"
    say("suggest", model, rows, "--unjudged", -1, "--number", 6 + version, "-o", target, overwrite=overwrite)


def screen_export(target: Path, version: int, overwrite: bool) -> None:
    say("screen", "export", sources() / f"{version}" / "records.csv", "-o", target, overwrite=overwrite)


def screen_simulate(target: Path, version: int, overwrite: bool) -> None:
    """The table of a replay shows its time, which stands still here."""
    words = ["--starts", 1, "-o", target]
    with mock.patch.object(SIMULATE, "time", SimpleNamespace(perf_counter=lambda: 0.0)):
        say("screen", "replay", sources() / f"{version}" / "records.csv", *words, overwrite=overwrite)


def records(target: Path, version: int, overwrite: bool) -> None:
    say("records", sources() / f"{version}" / "records.csv", "-o", target, overwrite=overwrite)


def certify(target: Path, version: int, overwrite: bool) -> None:
    say("screen", "certify", sources() / f"{version}" / "records.csv", "-o", target, overwrite=overwrite)


def agreement(target: Path, version: int, overwrite: bool) -> None:
    say("agreement", sources() / f"{version}" / "judged.csv", "-o", target, overwrite=overwrite)


def prefer_export(target: Path, version: int, overwrite: bool) -> None:
    say("prefer", sources() / f"{version}" / "items.csv", "--export", target, overwrite=overwrite)


def index(target: Path, version: int, overwrite: bool) -> None:
    say("index", sources() / f"{version}" / "articles", "-o", target, overwrite=overwrite)


def search(target: Path, version: int, overwrite: bool) -> None:
    words = ["heat pump", "-n", 3 + 3 * version, "-o", target]
    say("search", sources() / "1" / "articles.index", *words, overwrite=overwrite)


def learn_links(target: Path, version: int, overwrite: bool) -> None:
    links = sources() / f"{version}" / "links.tsv"
    words = ["--steps", 2, "-o", target]
    say("learn-links", sources() / "1" / "articles.index", links, *words, overwrite=overwrite)


def learn_clicks(target: Path, version: int, overwrite: bool) -> None:
    folder = sources() / f"{version}"
    words = ["--bias", 1, "-o", target]
    say("learn-clicks", folder / "rows.csv", folder / "clicks.csv", *words, overwrite=overwrite)


def export(target: Path, version: int, overwrite: bool) -> None:
    words = ["--to", "sql", "-o", target]
    say("export", sources() / f"{version}.safetensors", *words, overwrite=overwrite)


COMMANDS = (
    Writer("convert to text", "rows.txt", convert),
    Writer("convert to packed text", "rows.txt.gz", convert),
    Writer("convert to store", "rows.store", convert),
    Writer("convert to store without exchange", "rows.store", convert_without_exchange),
    Writer("convert to Parquet", "rows.parquet", convert),
    Writer("fit", "model.safetensors", fit),
    Writer("rank", "scores.txt", rank),
    Writer("rank --format trec", "rows.run", rank),
    Writer("evaluate --per-query", "queries.tsv", evaluate),
    Writer("card", "card.html", card, is_slow=True),
    Writer("suggest", "next.csv", suggest),
    Writer("records to RIS", "records.ris", records),
    Writer("records to Excel", "records.xlsx", records),
    Writer("agreement", "contradictions.csv", agreement),
    Writer("screen export CSV", "records.csv", screen_export),
    Writer("screen export RIS", "records.ris", screen_export),
    Writer("screen replay", "replays", screen_simulate),
    Writer("screen certify", "certificate.json", certify),
    Writer("prefer --export", "ranking.csv", prefer_export),
    Writer("index", "articles.index", index),
    Writer("search", "found.run", search),
    Writer("learn-links", "links.safetensors", learn_links),
    Writer("learn-clicks", "clicks.safetensors", learn_clicks),
    Writer("export", "model.py", export),
)
