"""Commands that `corank_lab` adds to `corank`; their modules are light to import."""

from __future__ import annotations

from corank.cli import Commands, Verb, VerbGroup
from corank_lab.cli import serve
from corank_lab.cli.demo import demo
from corank_lab.cli.lab import pages, recover
from corank_lab.cli.prefer import prefer
from corank_lab.cli.records import records
from corank_lab.cli.screening import screen
from corank_lab.cli.screening.results import certify, verify
from corank_lab.cli.serve import replay

SCREEN = VerbGroup(
    "screen",
    "Find nearly all relevant records.",
    (
        Verb(
            screen.read,
            "Read records; the default: screen FILE.",
            "screen records.csv --topic 'heat pumps in old houses'",
        ),
        Verb(screen.replay, "Replay records that are all judged.", "screen replay records.csv --starts 2"),
        Verb(screen.report, "Report on progress and agreement.", "screen report reviewed.csv --output report"),
        Verb(screen.export, "Write records and answers.", "screen export reviewed.csv --output answers.ris"),
        Verb(screen.settle, "Settle conflicts of judges.", "screen settle reviewed.csv --judge eve"),
        Verb(certify, "Write a certificate.", "screen certify reviewed.csv --output proof.json --page proof.html"),
        Verb(verify, "Verify a certificate.", "screen verify certificate.json reviewed.csv"),
    ),
    default="read",
    moved=screen.MOVED,
)

LAB = VerbGroup(
    "lab",
    "Judge in the browser, alone or in a team.",
    (
        Verb(pages, "Open the pages; the default: lab FOLDER.", "lab reviews --port 8700"),
        Verb(recover, "Copy what is sound of a damaged database.", "lab recover damaged.db --output recovered"),
    ),
    default="pages",
)

SERVE = VerbGroup(
    "serve",
    "Rank over HTTP and learn from clicks.",
    (
        Verb(serve.start, "Rank over HTTP and learn from clicks.", "serve start shop --port 8700"),
        Verb(serve.add, "Add a version of a model.", "serve add shop clicks --online PDGD --columns price,stars"),
        Verb(serve.models, "List the models and what they have learnt.", "serve models shop"),
        Verb(serve.activate, "Use a version of a model from now on.", "serve activate shop clicks 2"),
        Verb(serve.rollback, "Use the version that was active before.", "serve rollback shop clicks"),
        Verb(serve.remove, "Remove a version that is not active.", "serve remove shop clicks 1"),
        Verb(serve.save, "Write what a model has learnt to a file.", "serve save shop clicks -o clicks.safetensors"),
        Verb(serve.key, "Add, revoke or list keys.", "serve key shop --scope rank --scope feedback --name web"),
        VerbGroup(
            "events",
            "Check and export the log; forget people.",
            (
                Verb(serve.verify, "Replay the log and compare.", "serve events verify shop"),
                Verb(serve.export, "Export the log.", "serve events export shop --as ubi -o events.jsonl"),
                Verb(serve.forget, "Delete all events of a user.", "serve events forget shop ann"),
            ),
        ),
        Verb(serve.train, "", ""),
    ),
    hint="the pages are now 'corank lab'",
)

COMMANDS = Commands(
    sections={
        "Judge": (
            Verb(records, "Read, check and convert records.", "records records.csv --duplicates --output records.ris"),
            SCREEN,
            Verb(prefer, "Order items by pairwise questions.", "prefer items.csv --simulate grade"),
            LAB,
        ),
        "Search and clicks": (
            Verb(
                replay,
                "Estimate a new ranker from logged clicks.",
                "replay shown.csv --model model.safetensors --rows rows.csv --bias 1",
            ),
            SERVE,
        ),
        "Files": (Verb(demo, "Run a demonstration on included data.", "demo --output out/demo"),),
    },
    other_names={
        # names of earlier versions
        "service": "serve", "events": "serve events", "ask": "prefer", "certify": "screen certify",
        "verify": "screen verify", "recover": "lab recover",
        # names that other tools use
        "judge": "lab", "review": "screen", "deduplicate": "records", "dedup": "records", "web": "lab",
        "server": "serve", "ope": "replay", "counterfactual": "replay",
    },
)  # fmt: skip
"""The entry point of the group ``corank.commands``."""
