"""`corank demo`: write files, and run commands on them: tune search, screen a review, rank from votes."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from shlex import quote
from typing import Annotated

import typer

from corank.cli import Force, Seed, make_console
from corank.errors import InputError

N_QUERIES, N_JUDGED, N_DOCUMENTS = 60, 20, 80
MODELS = ("owl", "fox", "elk", "lynx", "hare", "mole", "wren", "newt", "crow", "toad")
TASKS = {
    f"Tune search: combine BM25 and vectors of synthetic documents, from {N_JUDGED} judged queries": (
        "fuse {}/bm25.run {}/vectors.run --qrels {}/judgements.csv --output {}/fusion.json",
        "rank {}/fusion.json {}/bm25.run {}/vectors.run --output {}/fused.run",
        "evaluate {}/others.csv {}/fused.run --compare {}/vectors.run --convention trec_eval",
    ),
    "Screen: find nearly all relevant records of a real systematic review": (
        "screen replay {}/review.jsonl --starts 10 --output {}/screening",
    ),
    f"Rank from votes: synthetic votes on ten models, in truth {' '.join(MODELS)}": (
        "leaderboard {}/votes.csv --cheap {}/llm.csv --plot {}/votes.png",
    ),
}
"""The commands of each task; {} is the folder."""
PLOTS = ("{}/screening", "{}/votes.png")
"""What only matplotlib can write."""


def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", file_okay=False, help="Folder for the written files.")
    ] = Path("out/demo"),
    files: Annotated[bool, typer.Option("--files", help="Only write small files to try other commands on.")] = False,
    seed: Seed = 0,
    force: Force = False,
) -> None:
    """Write example files, then tune search, screen a systematic review and rank models from votes with them."""
    from corank.cli import app
    from corank.data import explain_write_errors

    with explain_write_errors(output):
        output.mkdir(parents=True, exist_ok=True)
    _write_files(output, seed, force)
    if files:
        return
    console = make_console()
    for number, (task, commands) in enumerate(TASKS.items(), 1):
        console.print(f"\n{number}. {task}", style="bold")
        for command in commands:
            words = command.split()
            if words[-1] in PLOTS and find_spec("matplotlib") is None:
                words = words[:-2]
            words = [word.format(output) for word in words]
            typer.echo(f"\n$ corank {' '.join(map(quote, words))}")
            app(words + ["--force"] * (force and ("--output" in words or "--plot" in words)), standalone_mode=False)
    typer.echo(
        f"\nScreen the review yourself: corank screen {quote(str(output / 'review.jsonl'))} --ignore-labels\n"
        f"The pages for people who judge: corank lab {quote(str(output))} (pip install 'corank[lab]')"
    )


def _write_files(output: Path, seed: int, force: bool) -> None:
    """Write the files of README and of the first tour: runs, tables of a shop, LETOR text, scores of an old ranker."""
    import numpy as np

    from corank.data import csv_text, make_ranking, mask_scores, write_letor
    from corank_lab.records.records import REVIEW_CITATION, review_text

    shop = make_ranking(120, 15, n_latent=3, features_per_view=3, random_state=seed)
    judged = shop.qid % 3 > 0
    header: list[object] = ["query_id", "docid", "grade", "bm25", "title", "clicks", "age", "price", "stock"]
    for name, rows, note in (
        ("products.csv", shop.qid < 60, "60 queries, of which 40 are graded"),
        ("judged.csv", (shop.qid >= 60) & judged, "40 other graded queries"),
    ):
        lines = [
            [shop.qid[row], f"d{row}", f"{shop.y[row]:g}" if judged[row] else "", *(f"{x:.4f}" for x in shop.X[row])]
            for row in np.flatnonzero(rows)
        ]
        _write_new(output / name, csv_text([header, *lines]), force)
        typer.echo(f"wrote {output / name}: {note}")
    web = make_ranking(300, 20, random_state=seed)
    few = mask_scores(web.y, web.qid, fraction=0.9, by="query", random_state=seed)
    for name, rows, grades, unjudged in (
        ("train.txt.gz", web.qid < 200, few, -1),
        ("test.txt.gz", web.qid >= 200, web.y, None),
    ):
        comments = [f"docid = d{row}" for row in np.flatnonzero(rows)]
        write = partial(
            write_letor, X=web.X[rows], y=grades[rows], qid=web.qid[rows], comments=comments, unjudged=unjudged,
            overwrite=True,
        )  # fmt: skip
        _write_new(output / name, write, force)
    scores = "".join(f"{score:.4f}\n" for score in web.X[web.qid >= 200, 0])
    _write_new(output / "old.scores", scores, force)
    typer.echo(
        f"wrote {output / 'train.txt.gz'}: 200 queries, of which few are graded (-1 marks the other rows); "
        f"{output / 'test.txt.gz'}: 100 graded queries; {output / 'old.scores'}: scores of an old ranker for them"
    )
    _write_runs(output, seed, force)
    _write_votes(output, seed, force)
    _write_new(output / "review.jsonl", review_text().decode(), force)
    typer.echo(f"wrote {output / 'review.jsonl'}: {REVIEW_CITATION}, with its decisions")


def _write_runs(output: Path, seed: int, force: bool) -> None:
    """Write synthetic lists of two retrievers, and grades: of the top of both in few queries, of all in the others."""
    import numpy as np

    rng = np.random.default_rng(seed)
    texts = {
        "bm25.run": "",
        "vectors.run": "",
        "judgements.csv": "query,docid,grade\n",
        "others.csv": "query,docid,grade\n",
    }
    for query in range(N_QUERIES):
        grades = rng.choice(4, N_DOCUMENTS, p=(0.7, 0.15, 0.1, 0.05))
        judged: set[int] = set() if query < N_JUDGED else {*range(N_DOCUMENTS)}
        for name, noise in (("bm25", 1.6), ("vectors", 1.1)):
            scores = grades + noise * rng.normal(size=N_DOCUMENTS)
            scores = 12.0 + 3.0 * scores if name == "bm25" else 1.0 / (1.0 + np.exp(-scores / 2.0))
            top = np.argsort(-scores)[: N_DOCUMENTS // 2].tolist()
            texts[f"{name}.run"] += "".join(
                f"q{query} Q0 d{row} {place} {scores[row]:.4f} {name}\n" for place, row in enumerate(top, 1)
            )
            judged |= {*top[:10]}
        file = "judgements.csv" if query < N_JUDGED else "others.csv"
        texts[file] += "".join(f"q{query},d{row},{grades[row]}\n" for row in sorted(judged))
    for name, text in texts.items():
        _write_new(output / name, text, force)
    typer.echo(
        f"wrote {output / 'bm25.run'} and {output / 'vectors.run'}: synthetic lists of two retrievers for {N_QUERIES} "
        f"queries; {output / 'judgements.csv'}: the grades of the first 10 documents of both for {N_JUDGED} of them; "
        f"{output / 'others.csv'}: all grades of the other queries"
    )


def _write_votes(output: Path, seed: int, force: bool) -> None:
    """Write synthetic votes of people and of a mostly right cheap judge."""
    import numpy as np

    rng = np.random.default_rng(seed)
    strength = np.linspace(1.5, -1.5, len(MODELS))
    for name, n, values in (
        ("votes.csv", 60, strength),
        ("llm.csv", 2000, 1.5 * strength + rng.normal(0.0, 0.3, len(MODELS))),
    ):
        first = rng.integers(0, len(MODELS), n)
        second = (first + rng.integers(1, len(MODELS), n)) % len(MODELS)
        wins = rng.random(n) < 1.0 / (1.0 + np.exp(values[second] - values[first]))
        text = "model_a,model_b,winner\n" + "".join(
            f"{MODELS[a]},{MODELS[b]},{'model_a' if win else 'model_b'}\n"
            for a, b, win in zip(first, second, wins, strict=True)
        )
        _write_new(output / name, text, force)
        typer.echo(f"wrote {output / name}: {n} synthetic votes")


def _write_new(path: Path, text: str | Callable[[Path], None], force: bool) -> None:
    """Write a file whole; raise `InputError` if another one exists and `force` is not set."""
    from corank.data import atomic_file

    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder, path.name)
        if isinstance(text, str):
            made.write_text(text, encoding="utf-8", newline="\n")
        else:
            text(made)
        content = made.read_bytes()
    if path.exists() and not force:
        if path.read_bytes() == content:
            return
        raise InputError(
            f"{path} exists and differs from what this demo would write; choose another --output, or replace it "
            "with --force."
        )
    with atomic_file(path, overwrite=True) as scratch:
        scratch.write_bytes(content)
