"""Command line of the fuzzers: replay the corpus, run a round, print a table, save failing inputs."""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

from fuzz.format import Format
from fuzz.pool import Input, Source, Tally, draw, run

CORPUS = Path(__file__).parent / "corpus"


def formats() -> dict[str, Format]:
    """Return every format by name; imported here because each needs its own libraries."""
    from fuzz.clicks import formats as clicks
    from fuzz.container import Container
    from fuzz.csv import Csv
    from fuzz.frames import Parquet
    from fuzz.index import Index
    from fuzz.journals import formats as journals
    from fuzz.judgements import Judgements
    from fuzz.letor import Letor
    from fuzz.model import formats as models
    from fuzz.projects import Projects
    from fuzz.records import formats as records
    from fuzz.service import Requests
    from fuzz.store import Store
    from fuzz.tables import formats as tables
    from fuzz.trec import qrels, runs
    from fuzz.trees import Trees, TreeText
    from fuzz.uploads import Archives, Uploads

    plain = (Letor(), runs(), qrels(), Store(), Index(), Parquet(), Csv(), Container(), Requests())
    uploads = (Judgements(), Uploads(), Archives(), Projects())
    known = (*plain, *records(), *journals(), *clicks(), *tables(), *uploads, *models(), Trees(), TreeText())
    return {form.name: form for form in known}


def main() -> None:
    known = formats()
    parser = argparse.ArgumentParser(prog="python -m fuzz", description="Hostile files against corank's readers.")
    parser.add_argument("names", nargs="*", metavar="FORMAT", help=f"of {', '.join(known)}; all by default")
    parser.add_argument("--minutes", type=float, help="time for all formats together")
    parser.add_argument("--count", type=int, help="inputs of each format, instead of a time")
    parser.add_argument("--seed", type=int, default=None, help="with a number it gives an input again")
    parser.add_argument("--number", type=int, help="print this input of one format, and what becomes of it")
    parser.add_argument("--corpus", type=Path, default=CORPUS, help="folder of what failed before, and is added to")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="workers")
    options = parser.parse_args()
    chosen = [form for name, form in known.items() if not options.names or _is_named(name, options.names)]
    if unknown := [one for one in options.names if not any(_is_named(name, [one]) for name in known)]:
        parser.error(f"there is no format {', '.join(unknown)}; choose from {', '.join(known)}")
    seed = int(time.time()) if options.seed is None else options.seed
    for form in chosen:
        form.prepare()
    if options.number is not None:
        sys.exit(_show(chosen[0], draw(chosen[0], seed, options.number)))
    shares = sum(form.share for form in chosen)
    heads = ("inputs", "accepted", "refused", "failures", "a second", "peak MB")
    print(f"seed {seed}\n{'format':<28}" + "".join(f"{head:>10}" for head in heads))
    n_inputs = n_failures = 0
    for form in chosen:
        kept = sorted((options.corpus / form.name).glob("*"))
        replayed = run(form, [_kept(kept, form.ways)])
        _report(f"{form.name}/", replayed)
        stop_at = (
            float("inf") if options.count else time.monotonic() + (options.minutes or 1) * 60 * form.share / shares
        )
        round_ = run(form, [_drawn(form, seed, k, options.jobs, options.count) for k in range(options.jobs)], stop_at)
        _report(form.name, round_)
        _keep(options.corpus / form.name, form, round_)
        n_inputs += replayed.inputs + round_.inputs
        n_failures += sum(found.times for one in (replayed, round_) for found in one.failures.values())
    print(f"{n_inputs} inputs of {len(chosen)} formats, {n_failures} failures")
    sys.exit(n_failures > 0)


def _is_named(name: str, wanted: list[str]) -> bool:
    """Return whether a format is wanted, by its name or by the part before a dot."""
    return name in wanted or name.partition(".")[0] in wanted


def _drawn(form: Format, seed: int, first: int, step: int, count: int | None) -> Source:
    def source(skip: int) -> Iterator[Input]:
        number = first + skip * step
        while count is None or number < count:
            yield draw(form, seed, number)
            number += step

    return source


def _kept(files: list[Path], ways: int) -> Source:
    """Return the corpus of a format, each file with all settings."""

    def source(skip: int) -> Iterator[Input]:
        for case in range(skip, len(files) * ways):
            yield Input(case // ways, case % ways, files[case // ways].read_bytes())

    return source


def _report(name: str, tally: Tally) -> None:
    broken = sum(found.times for found in tally.failures.values())
    speed = tally.inputs / max(tally.seconds, 1e-9)
    print(
        f"{name:<28}{tally.inputs:>10}{tally.accepted:>10}{tally.refused:>10}{broken:>10}{speed:>10.0f}{tally.megabytes:>10.0f}",
        flush=True,
    )
    for kind, found in tally.failures.items():
        print(f"  {found.times} x {kind} (number {found.input.number}) {found.failure.detail[:120]!r}", flush=True)


def _keep(folder: Path, form: Format, tally: Tally) -> None:
    """Add failing inputs to the corpus; texts are shortened first."""
    for kind, found in tally.failures.items():
        folder.mkdir(parents=True, exist_ok=True)
        content = _cut_down(form, found.input, kind) if form.is_text else found.input.content
        name = re.sub(r"[^a-z0-9]+", "-", kind.lower()).strip("-")
        place = folder / f"{name}-{zlib.crc32(content):08x}{form.suffix}"
        place.write_bytes(content)
        print(f"  kept {place.name}: {kind}", flush=True)


def _cut_down(form: Format, given: Input, kind: str) -> bytes:
    """Remove parts of an input, from halves to bytes, while the failure remains; at most 30 seconds."""
    content, size, until = given.content, len(given.content) // 2, time.monotonic() + 30
    while size:
        begin = 0
        while begin < len(content) and time.monotonic() < until:
            shorter = content[:begin] + content[begin + size :]
            if kind in _one(form, Input(given.number, given.way, shorter)).failures:
                content = shorter
            else:
                begin += size
        size //= 2
    return content


def _one(form: Format, given: Input) -> Tally:
    return run(form, [lambda skip: iter([given][skip:])])


def _show(form: Format, given: Input) -> int:
    tally = _one(form, given)
    sys.stdout.buffer.write(given.content + b"\n")
    _report(form.name, tally)
    for found in tally.failures.values():
        print(found.failure.detail)
    return bool(tally.failures)
