"""`corank demo`: tune search, screen a review, rank from votes; or write files to try commands on."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from corank.cli import Force, Seed
from corank.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from rich.console import Console

    from corank.tables import ReportTable
    from corank_lab.screening.simulate import ScreeningReplay

STARTS = 10
N_QUERIES, N_JUDGED, N_DOCUMENTS = 60, 20, 80
MODELS = ("owl", "fox", "elk", "lynx", "hare", "mole", "wren", "newt", "crow", "toad")


def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", file_okay=False, help="Folder for the written files.")
    ] = Path("out/demo"),
    files: Annotated[bool, typer.Option("--files", help="Only write small files to try other commands on.")] = False,
    seed: Seed = 0,
    force: Force = False,
) -> None:
    """Tune search, screen a real systematic review and rank models from votes, with a picture of each."""
    from corank.cli import make_console
    from corank.data import explain_write_errors

    with explain_write_errors(output):
        output.mkdir(parents=True, exist_ok=True)
    if files:
        _write_files(output, seed, force)
        return
    console = make_console()
    tasks = (_tune_search, _screen_review, _rank_from_votes)
    pictures = []
    for number, task in enumerate(tasks, 1):
        began = time.perf_counter()
        console.print(f"{number}. {task.__doc__}", style="bold")
        pictures.append(task(output, seed, console, force))
        console.print(f"{time.perf_counter() - began:.1f} s\n")
    drawn = [str(path) for path in pictures if path is not None]
    typer.echo(
        f"pictures: {', '.join(drawn)}" if drawn else "no pictures, without matplotlib: pip install 'corank[report]'"
    )
    typer.echo(f"the pages for people who judge: corank lab {quote(str(output))} (pip install 'corank[lab]')")


def _tune_search(output: Path, seed: int, console: Console, force: bool) -> Path | None:
    """Tune search: how to combine BM25 and vectors, from 20 judged queries."""
    import numpy as np

    from corank.cli import show
    from corank.data import read_grades, read_runs
    from corank.metrics import compare_runs, evaluate
    from corank.models import Fusion, FusionDefinition
    from corank.tables import ReportTable

    _write_runs(output, seed, force)
    runs = read_runs([output / "bm25.run", output / "vectors.run"])
    few, rest = (runs.join(read_grades(output / name)[0])[0] for name in ("judgements.csv", "others.csv"))
    scores = {name: np.nan_to_num(runs.X[:, column], nan=-1e9) for column, name in enumerate(runs.names)}
    scores["RRF"] = FusionDefinition.rrf(runs.names).score(runs.X, runs.qid)
    scores["fusion"] = Fusion(random_state=seed).fit(runs.X, few, qid=runs.qid).predict(runs.X, qid=runs.qid)
    tested = ~np.isnan(rest)
    results = {
        name: evaluate(rest[tested], values[tested], runs.qid[tested], ["nDCG@10"]) for name, values in scores.items()
    }
    tests = compare_runs(results, "nDCG@10", base="fusion", random_state=seed)
    gains = {test.other: f"{-test.difference:+.3f} ({-test.high:+.3f} to {-test.low:+.3f})" for test in tests}
    rows = [(name, result["nDCG@10"].mean, gains.get(name, "")) for name, result in results.items()]
    title = f"Two synthetic retrievers: nDCG@10 of the {N_QUERIES - N_JUDGED} queries that were not used for learning"
    show(ReportTable(title, ("order", "nDCG@10", "gain of the fusion"), tuple(rows)), console)
    lists, qrels = (quote(str(output / name)) for name in ("*.run", "judgements.csv"))
    typer.echo(f"on your files: corank fuse {lists} --qrels {qrels} -o fusion.json".replace("'", ""))
    return _draw(output / "search.png", partial(_bars, [(name, value) for name, value, _ in rows]))


def _screen_review(output: Path, seed: int, console: Console, force: bool) -> Path | None:
    """Screen: find nearly all relevant records of a real systematic review."""
    from corank.cli import show
    from corank_lab.records.records import REVIEW, REVIEW_CITATION, load_review, review_text
    from corank_lab.screening.simulate import plot_recall, simulate

    records = load_review()
    replays = simulate(records, STARTS)
    console.print(
        f"{len(records)} records, {int(records.labels.sum())} of them relevant: {REVIEW_CITATION}. Each of {STARTS} "
        "replays starts with one relevant and one irrelevant record, reads the most likely relevant one next and "
        "learns from it."
    )
    show(_effort_table(replays), console)
    path = output / REVIEW
    if path.exists() and not force and path.read_bytes() != review_text():
        typer.echo(f"kept your {path}")
    else:
        _write_new(path, review_text().decode(), force)
    typer.echo(f"screen it yourself: corank screen {quote(str(path))} --ignore-labels")
    return _draw(output / "screening.png", lambda name: plot_recall(replays, name, overwrite=True))


def _effort_table(replays: list[ScreeningReplay]) -> ReportTable:
    """Compare the effort until 95 % are found with that of two stopping rules, which cannot see the truth."""
    import numpy as np

    from corank.tables import ReportTable
    from corank_lab.screening.stopping import stopping_rule

    n, n_relevant = len(replays[0].found), int(replays[0].found.sum())
    wanted = int(np.ceil(0.95 * n_relevant - 1e-9))
    # expected position of that relevant record in a uniformly random order
    rows = [("random order, until 95 % are found", wanted * (n + 1) / (n_relevant + 1), wanted / n_relevant)]
    rows.append(("corank, until 95 % are found", _mean([replay.at(0.95) for replay in replays]), wanted / n_relevant))
    for name, rule in (("cheap", "consecutive"), ("careful", "agree")):
        stops = [stopping_rule(rule, n).replay(replay.found, np.random.default_rng(replay.start)) for replay in replays]
        matches = _mean([n_known - 1 for _, n_known in stops]) / n_relevant
        rows.append((f"corank, until the {name} rule stops", _mean([read for read, _ in stops]), matches))
    cells = tuple((name, round(read), f"{result:.0%}", f"{1 - read / n:.0%}") for name, read, result in rows)
    return ReportTable(
        f"Reading saved, of {n} records",
        ("reading", "records read", "found", "saved"),
        cells,
        note="In practice it is unknown when 95 % are found; a stopping rule estimates it, and reads some more.",
    )


def _mean(values: list[int]) -> float:
    return sum(values) / len(values)


def _rank_from_votes(output: Path, seed: int, console: Console, force: bool) -> Path | None:
    """Rank from votes: 60 votes of people on ten models, and 2,000 of a cheap judge."""
    import numpy as np

    from corank.cli import show
    from corank.models import Leaderboard
    from corank.tables import ReportTable

    strength = _write_votes(output, seed, force)
    boards = {
        "people": Leaderboard().fit(output / "votes.csv"),
        "people and cheap judge": Leaderboard().fit(output / "votes.csv", cheap=output / "llm.csv"),
    }
    rows = []
    for name, board in boards.items():
        true = np.array([strength[MODELS.index(item)] for item in board.items_])
        wins = 1.0 / (1.0 + np.exp(true[None, :] - true[:, None]))
        error = float(np.sqrt(np.mean((board.win_matrix() - wins)[~np.eye(len(true), dtype=bool)] ** 2)))
        rows.append((name, " ".join(board.items_), error))
    title = "Synthetic votes: order found, and error of win probabilities"
    note = f"The true order is {' '.join(MODELS)}."
    show(ReportTable(title, ("votes of", "order", "error"), tuple(rows), note=note), console)
    people, cheap = (quote(str(output / name)) for name in ("votes.csv", "llm.csv"))
    typer.echo(f"on your files: corank leaderboard {people} --cheap {cheap}")
    return _draw(output / "votes.png", lambda path: boards["people and cheap judge"].plot(path))


def _bars(rows: list[tuple[str, float]], path: Path) -> None:
    """Draw a bar for each order of documents."""
    from matplotlib.figure import Figure

    from corank.data import atomic_file

    figure = Figure((6.4, 2.6), layout="constrained")
    panel = figure.subplots()
    bars = panel.barh(
        [name for name, _ in rows], [value for _, value in rows], color=["0.7"] * (len(rows) - 1) + ["C0"]
    )
    panel.bar_label(bars, fmt="%.3f", padding=3)
    panel.invert_yaxis()
    panel.set(xlim=(0, 1), xlabel="nDCG@10 of queries that were not used for learning")
    with atomic_file(path, overwrite=True) as scratch:
        figure.savefig(scratch, format="png", dpi=130)


def _draw(path: Path, draw: Callable[[Path], Any]) -> Path | None:
    """Draw a picture; return its path, or None without matplotlib."""
    try:
        draw(path)
    except ImportError:
        return None
    return path


def _write_files(output: Path, seed: int, force: bool) -> None:
    """Write the files of README and of the first tour: runs, tables of a shop, LETOR text, scores of an old ranker."""
    import numpy as np

    from corank.data import csv_text, make_ranking, mask_scores, write_letor
    from corank_lab.records.records import review_text

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
    typer.echo(f"wrote {output / 'review.jsonl'}: the records of a real systematic review, with its decisions")


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


def _write_votes(output: Path, seed: int, force: bool) -> NDArray[np.float64]:
    """Write synthetic votes of people and of a mostly right cheap judge; return the true strength of the models."""
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
    return strength


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
