"""`corank demo`: screen a real systematic review, then learn from few judgements; or write files to try commands on."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

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


def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", file_okay=False, help="Folder for the written files.")
    ] = Path("out/demo"),
    queries: Annotated[int, typer.Option(min=60, help="Number of queries in the synthetic collection.")] = 900,
    files: Annotated[bool, typer.Option("--files", help="Only write small files to try other commands on.")] = False,
    seed: Seed = 0,
    force: Force = False,
) -> None:
    """Screen a real systematic review; then compare rankers that learn from 5 % judged queries."""
    from corank.cli import make_console
    from corank.data import explain_write_errors

    console = make_console()
    with explain_write_errors(output):
        output.mkdir(parents=True, exist_ok=True)
    if files:
        _write_files(output, seed, force)
        return
    _screen_review(output, console)
    console.print()
    _compare_rankers(output, queries, seed, console, force)
    typer.echo(f"\nopen the pages for people who judge: corank lab {quote(str(output))} (pip install 'corank[lab]')")


def _screen_review(output: Path, console: Console) -> None:
    """Replay the screening of a review, and write its records to the folder."""
    from corank.cli import show
    from corank.data import atomic_file
    from corank_lab.cli.screening.replay import recall_curve
    from corank_lab.records.records import REVIEW, REVIEW_CITATION, load_review, review_text
    from corank_lab.screening.simulate import simulate

    began = time.perf_counter()
    records = load_review()
    replays = simulate(records, STARTS)
    console.print("Screening a systematic review", style="bold")
    console.print(
        f"{len(records)} records, {int(records.labels.sum())} of them relevant: {REVIEW_CITATION}. Each replay starts "
        "with one relevant and one irrelevant record, reads the most likely relevant one next and learns from it."
    )
    console.print(recall_curve(replays, console.width))
    show(_effort_table(replays), console)
    path = output / REVIEW
    is_own = path.exists() and path.read_bytes() != review_text()
    if not is_own:
        with atomic_file(path, overwrite=True) as scratch:
            scratch.write_bytes(review_text())
    action = "kept your" if is_own else "wrote"
    typer.echo(f"{action} {path}; {time.perf_counter() - began:.1f} s")
    typer.echo(f"screen it yourself: corank screen {quote(str(path))} --ignore-labels")


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
    for name, rule in (("cheap", "poisson"), ("careful", "agree")):
        stops = [stopping_rule(rule, n).replay(replay.found, np.random.default_rng(replay.start)) for replay in replays]
        found = _mean([n_known - 1 for _, n_known in stops]) / n_relevant
        rows.append((f"corank, until the {name} rule stops", _mean([read for read, _ in stops]), found))
    cells = tuple((name, round(read), f"{found:.0%}", f"{1 - read / n:.0%}") for name, read, found in rows)
    return ReportTable(
        f"Reading saved, of {n} records",
        ("reading", "records read", "found", "saved"),
        cells,
        note="In practice it is unknown when 95 % are found; a stopping rule estimates it, and reads some more.",
    )


def _mean(values: list[int]) -> float:
    return sum(values) / len(values)


def _compare_rankers(output: Path, queries: int, seed: int, console: Console, force: bool) -> None:
    """Fit three rankers on few judged queries, compare them on other queries, and save one."""
    import numpy as np

    from corank.cli import show
    from corank.data import (
        QueryShuffleSplit,
        make_ranking,
        mask_scores,
        open_store,
        read_letor,
        write_letor,
        write_store,
    )
    from corank.deploy import load, save
    from corank.metrics import compare_runs, evaluate
    from corank.models import CRR, LCRA, SPD
    from corank.tables import ReportTable

    began = time.perf_counter()
    problem = make_ranking(queries, (10, 40), features_per_view=20, random_state=seed)
    _write_new(
        output / "collection.txt.gz",
        lambda path: write_letor(path, problem.X, problem.y, problem.qid, overwrite=True),
        force,
    )
    file = read_letor(output / "collection.txt.gz", dtype=np.float64)
    train, test = next(QueryShuffleSplit(1, test_size=1 / 3, random_state=seed).split(file.X, qid=file.qid))
    assert file.qid is not None
    qid = file.qid[train]
    judged = mask_scores(file.y[train], qid, fraction=0.95, by="query", random_state=seed)
    _write_new(
        output / "training.store",
        lambda path: write_store(path, file.X[train], judged, qid, overwrite=True),
        force,
    )
    data = open_store(output / "training.store").data

    views = [view.tolist() for view in problem.views]
    learners = {"SPD": SPD(), "CRR": CRR(), "LCRA": LCRA(views)}
    scores = {name: learner.fit(data).predict(file.X[test]) for name, learner in learners.items()}
    scores["ideal"] = file.X[test] @ problem.best
    metrics = ("nDCG@10", "AP", "disagreement")
    evaluations = {name: evaluate(file.y[test], values, file.qid[test], metrics) for name, values in scores.items()}

    console.print("A synthetic collection with one judged query in twenty", style="bold")
    title = (
        f"{data.n_rows} rows in {len(data.queries)} queries, {data.n_scored} judged; tested on "
        f"{len(np.unique(file.qid[test]))} other queries"
    )
    first, *_ = evaluations
    tests = compare_runs(evaluations, "nDCG@10", base=first, random_state=seed)
    gains = {
        test.other: (f"{test.difference:+.3f} ({test.low:+.3f} to {test.high:+.3f})", f"{test.p_value:.1g}")
        for test in tests
    }
    rows: list[tuple[str | float, ...]] = [
        (name, *(evaluation[metric].mean for metric in metrics), *gains.get(name, ("", "")))
        for name, evaluation in evaluations.items()
    ]
    show(ReportTable(title, ("ranker", *metrics, "gain in nDCG@10 over SPD", "p"), tuple(rows)), console)
    typer.echo(
        "Gains carry a 95 % interval and the p-value of the same sign-flip test over the queries.\n"
        "SPD learns from pairs of judged rows, CRR also from their grades, LCRA also from unjudged rows, on which its "
        "two views should agree; the ideal ranker uses the true weights."
    )
    model = output / "lcra.safetensors"
    _write_new(model, lambda path: save(learners["LCRA"], path, overwrite=True), force)
    if not np.array_equal(load(model).predict(file.X[test]), scores["LCRA"]):
        raise InputError(f"{model} predicts other scores than before it was saved; report this as a bug.")
    typer.echo(
        f"wrote {model} (the loaded model gives the same scores), "
        f"{output / 'collection.txt.gz'} and {output / 'training.store'}; {time.perf_counter() - began:.1f} s"
    )


def _write_files(output: Path, seed: int, force: bool) -> None:
    """Write the files of README and of the first tour: runs, tables of a shop, LETOR text, scores of an old ranker."""
    import numpy as np

    from corank.data import make_ranking, mask_scores, write_letor

    shop = make_ranking(120, 15, n_latent=3, features_per_view=3, random_state=seed)
    judged = shop.qid % 3 > 0
    for name, rows, note in (
        ("products.csv", shop.qid < 60, "60 queries, of which 40 are graded"),
        ("judged.csv", (shop.qid >= 60) & judged, "40 other graded queries"),
    ):
        text = _table(shop.X[rows], np.where(judged, shop.y, np.nan)[rows], shop.qid[rows], np.flatnonzero(rows))
        _write_new(output / name, partial(_write_text, text=text), force)
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
    _write_new(output / "old.scores", partial(_write_text, text=scores), force)
    typer.echo(
        f"wrote {output / 'train.txt.gz'}: 200 queries, of which few are graded (-1 marks the other rows); "
        f"{output / 'test.txt.gz'}: 100 graded queries; {output / 'old.scores'}: scores of an old ranker for them"
    )
    _write_runs(output, seed, force)


def _write_runs(output: Path, seed: int, force: bool) -> None:
    """Write synthetic lists of two retrievers for 60 queries, and grades of the first 10 documents of both in 30."""
    import numpy as np

    rng = np.random.default_rng(seed)
    texts = {"bm25.run": "", "vectors.run": "", "judgements.csv": "query,docid,grade\n"}
    for query in range(60):
        grades = rng.choice(4, 80, p=(0.7, 0.15, 0.1, 0.05))
        judged: set[int] = set()
        for name, noise in (("bm25", 1.6), ("vectors", 1.1)):
            scores = grades + noise * rng.normal(size=80)
            scores = 12.0 + 3.0 * scores if name == "bm25" else 1.0 / (1.0 + np.exp(-scores / 2.0))
            top = np.argsort(-scores)[:40].tolist()
            texts[f"{name}.run"] += "".join(
                f"q{query} Q0 d{row} {place} {scores[row]:.4f} {name}\n" for place, row in enumerate(top, 1)
            )
            judged |= {*top[:10]} if query % 2 else set()
        texts["judgements.csv"] += "".join(f"q{query},d{row},{grades[row]}\n" for row in sorted(judged))
    for name, text in texts.items():
        _write_new(output / name, partial(_write_text, text=text), force)
    typer.echo(
        f"wrote {output / 'bm25.run'} and {output / 'vectors.run'}: synthetic lists of two retrievers for 60 queries; "
        f"{output / 'judgements.csv'}: the grades of the first 10 documents of both for 30 of them"
    )


def _table(X: NDArray[np.float64], y: NDArray[np.float64], qid: NDArray[np.int64], rows: NDArray[np.int64]) -> str:
    """Return CSV with the columns of a shop; unjudged rows have no grade."""
    lines = ["query_id,docid,grade,bm25,title,clicks,age,price,stock"]
    for values, grade, query, row in zip(X, y, qid, rows, strict=True):
        cells = [str(query), f"d{row}", "" if grade != grade else f"{grade:g}", *(f"{value:.4f}" for value in values)]
        lines.append(",".join(cells))
    return "\n".join([*lines, ""])


def _write_text(path: Path, text: str) -> None:
    """Write a text file, completely or not at all."""
    from corank.data import atomic_file

    with atomic_file(path, overwrite=True) as scratch:
        scratch.write_text(text, encoding="utf-8", newline="\n")


def _write_new(path: Path, write: Callable[[Path], None], force: bool) -> None:
    """Write a file or a store; raise `InputError` if another one exists and `force` is not set."""
    if path.exists() and not force:
        with tempfile.TemporaryDirectory() as folder:
            write(Path(folder, path.name))
            if _bytes(Path(folder, path.name)) == _bytes(path):
                return
        raise InputError(
            f"{path} exists and differs from what this demo would write; choose another --output, or replace it "
            "with --force."
        )
    write(path)


def _bytes(path: Path) -> list[bytes]:
    return [file.read_bytes() for file in (sorted(path.iterdir()) if path.is_dir() else [path])]
