"""Commands that `corank_lab` adds to `corank`; their modules are light to import."""

from __future__ import annotations

from corank.cli import Commands, Verb
from corank_lab.cli.demo import demo
from corank_lab.cli.lab import serve
from corank_lab.cli.prefer import ask
from corank_lab.cli.records import records
from corank_lab.cli.recover import recover
from corank_lab.cli.replay import replay
from corank_lab.cli.screening.screen import screen
from corank_lab.cli.screening.verify import certify, verify
from corank_lab.cli.serve import events, service

COMMANDS = Commands(
    verbs={
        "Judge": (
            Verb(records, "Read, check and convert records.", "records records.csv --duplicates --output records.ris"),
            Verb(screen, "Find nearly all relevant records.", "screen records.csv --topic 'heat pumps in old houses'"),
            Verb(
                certify,
                "Write a certificate of a screening.",
                "certify reviewed.csv --output proof.json --page proof.html",
            ),
            Verb(verify, "Verify a certificate of a screening.", "verify certificate.json reviewed.csv"),
            Verb(ask, "Order items by pairwise questions.", "ask items.csv --simulate grade"),
            Verb(serve, "Judge in the browser, alone or in a team.", "serve reviews --port 8700"),
        ),
        "Search and clicks": (
            Verb(
                replay,
                "Estimate a new ranker from logged clicks.",
                "replay shown.csv --model model.safetensors --rows rows.csv --bias 1",
            ),
        ),
        "Files": (
            Verb(recover, "Copy what is sound of a damaged database.", "recover damaged.db --output recovered"),
            Verb(demo, "Run a demonstration on included data.", "demo --output out/demo"),
        ),
    },
    groups={
        "service": (service, "Rank over HTTP and learn from clicks."),
        "events": (events, "Check the log of a service; forget people."),
    },
)
"""The entry point of the group ``corank.commands``."""
