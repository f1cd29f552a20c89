"""`corank ask`: order things by asking which of two is better, and say how sure the order is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from corank.cli.output import Json, emit, print_json, table_fields
from corank.errors import InputError

if TYPE_CHECKING:
    from corank.judging.preferences.answers import Told


def ask(
    items: Annotated[Path, typer.Argument(help="Things to order: .csv, .tsv, .jsonl (perhaps packed) or .parquet.")],
    name: Annotated[
        str | None, typer.Option(help="Column of names; else name, title, item, id, or the first.", show_default=False)
    ] = None,
    features: Annotated[
        str | None,
        typer.Option(
            help="Columns of numbers to compare by, with commas; all by default, '' for none.", show_default=False
        ),
    ] = None,
    judge: Annotated[str, typer.Option(help="Who answers; each judge has answers of their own.")] = "me",
    repeat: Annotated[float, typer.Option(help="Share of questions that are asked again.")] = 0.1,
    tol: Annotated[float, typer.Option(help="Stop when no answer is expected to tell so much, in nats.")] = 0.03,
    export: Annotated[
        Path | None,
        typer.Option(help="Write the order by all judges' answers to this .csv, and ask nothing.", show_default=False),
    ] = None,
    simulate: Annotated[
        str | None, typer.Option(help="Replay with this judged column as the judge.", show_default=False)
    ] = None,
    starts: Annotated[int, typer.Option(min=1, help="Replays, each with a seed of its own.")] = 5,
    questions: Annotated[int, typer.Option(min=1, help="Most questions of a replay.")] = 200,
    seed: Annotated[int, typer.Option(min=0, help="Seed of sides, repetitions and the first question.")] = 0,
    as_json: Json = False,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
) -> None:
    """Order things: say which of two is better with a key; the most telling two are asked next."""
    if simulate is not None and export is not None:
        raise InputError("--simulate and --export do different things; pass one of them.")
    if as_json and simulate is None and export is None:
        raise InputError("--json is for --simulate and --export; leave it out to answer.")
    if str(items) == "-":
        raise InputError("- is standard input, where keys come from, and answers stand beside ITEMS; name a file.")
    columns = None if features is None else [one.strip() for one in features.split(",") if one.strip()]
    if simulate is not None:
        _simulate(items, name, columns, simulate, starts, questions, tol, as_json)
        return
    if export is not None:
        _export(items, name, columns, export, force, as_json)
        return

    from corank.cli.judge.asking import ask_all, require_terminal
    from corank.cli.tables import screen
    from corank.data.formats.items import read_choices
    from corank.judging.preferences import Asking, Journal

    choices, _ = read_choices(items, name=name, features=columns)
    require_terminal()
    path = Journal.place(items, judge)
    with Journal(path) as journal:
        ask_all(Asking(choices, journal=journal, repeat=repeat, tol=tol, random_state=seed))
    screen().print(f"answers are in {path}; the same command goes on from here, --export FILE.csv writes the order.")


def _export(
    items: Path, name: str | None, features: list[str] | None, target: Path, force: bool, as_json: bool
) -> None:
    from corank.data.formats.compressed import require_text_place
    from corank.data.formats.items import read_choices
    from corank.data.formats.table_text import suffix_of
    from corank.judging.preferences import Journal, Ranking
    from corank.judging.preferences.answers import Answers
    from corank.judging.preferences.export import agreement, write_order
    from corank.judging.preferences.model import Model

    if suffix_of(target) != ".csv":
        raise InputError(f"{target} does not say what to write; end it with .csv.")
    require_text_place(target, overwrite=force)
    choices, _ = read_choices(items, name=name, features=features)
    judges = {judge: Answers(choices, lines).told for judge, lines in Journal.read_all(items)}
    judges = {judge: told for judge, told in judges.items() if told}
    if not judges:
        raise InputError(f"there are no answers for {items} yet; run corank ask {items} first.")

    def ranked(told: list[Told]) -> Ranking:
        return Ranking.of(Model(choices.X).learn(told).posterior())

    ranking = ranked([one for told in judges.values() for one in told])
    each = {judge: ranked(told) for judge, told in judges.items()} if len(judges) > 1 else {}
    write_order(target, choices, ranking, each, overwrite=force)
    n_answers = sum(map(len, judges.values()))
    fields = {"output": target, "n_things": len(choices), "n_answers": n_answers, "doubt": ranking.doubt}
    said = f"wrote {target}: {len(choices)} things by {n_answers} answers"
    if each:
        same, both = agreement(judges)
        fields |= {"n_judges": len(judges), "n_same": same, "n_both": both}
        said += f" of {len(judges)} judges, who agree on {same} of {both} pairs that two of them answered"
    emit(as_json, "ask", fields, f"{said}; about {100 * ranking.doubt:.0f} % of all pairs in the wrong order")


def _simulate(
    items: Path,
    name: str | None,
    features: list[str] | None,
    judged: str,
    starts: int,
    questions: int,
    tol: float,
    as_json: bool,
) -> None:
    import numpy as np
    from numpy.typing import NDArray

    from corank.cli.tables import screen, show
    from corank.data.formats.items import read_choices
    from corank.judging.preferences import simulate
    from corank.progress import progress
    from corank.tables import ReportTable

    choices, y = read_choices(items, name=name, features=features, judged=judged)
    with progress(2 * starts * questions, "questions") as advance:
        chosen = simulate(choices, y, starts, tol=tol, n_questions=questions, advance=advance)
        most = max(map(len, chosen))
        chance = simulate(choices, y, starts, by="random", n_questions=most, advance=advance)
    marks = [mark for power in range(6) for mark in (10**power, 2 * 10**power, 5 * 10**power) if mark < most]

    def mean(values: list[NDArray[np.float64]], at: int) -> float:
        return float(np.mean([one[min(at, len(one)) - 1] for one in values]))

    rows = tuple(
        (
            mark,
            mean([replay.disagreement for replay in chosen], mark),
            mean([replay.disagreement for replay in chance], mark),
            mean([replay.doubt for replay in chosen], mark),
        )
        for mark in (*marks, most)
    )
    n, stops = len(choices), [len(replay) for replay in chosen]
    table = ReportTable(
        f"{items.name}: {n} things, {n * (n - 1) // 2} pairs, judged by {judged}",
        ("pairs asked", "disagreement", "asked at random", "expected"),
        rows,
        digits=3,
        note=(
            f"Shares of all pairs in the wrong order, means of {starts} replays, which stopped after {min(stops)} to "
            f"{max(stops)} questions; expected is what the model said of its own order."
        ),
    )
    if as_json:
        print_json("ask", {"table": table_fields(table)})
    else:
        show(table, screen())
