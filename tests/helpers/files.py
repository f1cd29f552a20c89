"""Small files for every verb, made once, and copied to where a test may spoil them."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import corank
from corank.data.splits import mask_scores
from corank.data.synthetic import make_ranking
from corank.text import LinkLearn, Links, read_corpus, read_pairs, save_corpus
from corank_lab.database.backends import SqliteDatabase
from corank_lab.screening.certificate import certificate_bytes, make_certificate

_KEPT = tempfile.TemporaryDirectory()  # removed when Python ends

WORDS = tuple("heat pump house old roof wall water tank solar panel grid cost noise winter summer".split())  # noqa: SIM905


def files(target: Path) -> Path:
    """Copy the files to a folder."""
    shutil.copytree(_made(), target, dirs_exist_ok=True)
    return target


def _shown_lists(made: Any, rng: np.random.Generator) -> Iterator[str]:
    """Yield lines of a log of 400 lists in random order, whose positions are examined as 1/position."""
    for number in range(400):
        rows = rng.permutation(np.flatnonzero(made.qid == made.qid[8 * (number % 20)]))
        for place, row in enumerate(rows, 1):
            clicked = rng.random() < (made.y[row] + 0.5) / 5 / place
            yield f"{number},{made.qid[row]},d{row},{place},{int(clicked)}\n"


def write_runs(folder: Path, rng: np.random.Generator, n_queries: int = 12, n_documents: int = 30) -> None:
    """Write the lists of two retrievers, of which vectors is better, and the grades of 10 documents of each query."""
    lines = {"bm25": [], "vectors": []}
    judged = ["query,docid,grade\n"]
    for q in range(n_queries):
        grades = rng.integers(0, 4, n_documents)
        for name, noise in (("bm25", 3.0), ("vectors", 1.0)):
            scores = grades + noise * rng.normal(size=n_documents)
            top = np.argsort(-scores)[:20].tolist()
            lines[name] += [f"q{q} Q0 d{d} {place} {scores[d]:.4f} {name}\n" for place, d in enumerate(top, 1)]
        judged += [f"q{q},d{d},{grades[d]}\n" for d in range(0, n_documents, 3)]
    for name, rows in lines.items():
        (folder / f"{name}.run").write_text("".join(rows))
    (folder / "judgements.csv").write_text("".join(judged))


@cache
def _made() -> Path:
    folder = Path(_KEPT.name)
    rng = np.random.default_rng(0)
    made = make_ranking(20, 8, n_latent=3, features_per_view=3, random_state=1)
    y = mask_scores(made.y, made.qid, fraction=0.5, by="query", random_state=0)
    comments = [f"docid = d{row}" for row in range(len(y))]
    corank.data.write_letor(folder / "train.txt", made.X, y, made.qid, comments, unjudged=-1)
    corank.data.write_letor(folder / "test.txt", made.X, made.y, made.qid, comments)
    model = corank.SPD(n_steps=500, random_state=0).fit(made.X, y, qid=made.qid)
    corank.save(model, folder / "model.safetensors")
    (folder / "scores.txt").write_text("".join(f"{score!r}\n" for score in model.predict(made.X).tolist()))
    features = ",".join(f"f{column}" for column in range(made.X.shape[1]))
    rows = [
        f"{q},d{row},{','.join(map(repr, x))}\n"
        for row, (q, x) in enumerate(zip(made.qid, made.X.tolist(), strict=True))
    ]
    (folder / "rows.csv").write_text(f"qid,docid,{features}\n" + "".join(rows))
    shown = [f"{made.qid[row]},d{row},{row % 8 + 1},{int(made.y[row] > 2)}\n" for row in range(len(y))]
    (folder / "clicks.csv").write_text("qid,docid,position,clicked\n" + "".join(shown))
    (folder / "shown.csv").write_text(
        "impression,qid,docid,position,clicked\n" + "".join(_shown_lists(made, np.random.default_rng(1)))
    )
    graded = [
        f"{q},d{d},{judge},{(q + d + (judge == 'bob') * d) % 3}\n"
        for q in (1, 2)
        for d in range(12)
        for judge in ("ann", "bob")
    ]
    (folder / "judged.csv").write_text("query,docid,judge,grade\n" + "".join(graded))
    write_runs(folder, np.random.default_rng(2))
    for name, n_votes in (("votes", 30), ("llm", 60)):
        sides = [rng.permutation(4)[:2] for _ in range(n_votes)]
        votes = [f"m{a},m{b},{'model_a' if rng.random() < 1 / (1 + np.exp(b - a)) else 'model_b'}\n" for a, b in sides]
        (folder / f"{name}.csv").write_text("model_a,model_b,winner\n" + "".join(votes))
    items = rng.normal(size=(6, 2)).round(3)
    rows = [f"thing {k},{a},{b},{a + b:.3f}\n" for k, (a, b) in enumerate(items.tolist())]
    (folder / "items.csv").write_text("name,size,age,grade\n" + "".join(rows))
    (folder / "pairs.csv").write_text("winner,loser\nthing 0,thing 1\nthing 2,thing 1\nthing 3,thing 4\n")
    texts = [" ".join(rng.choice(WORDS, 12)) for _ in range(20)]
    records = [f"{k},study of {text[:20]},{text},{int(k % 5 == 0)}\n" for k, text in enumerate(texts)]
    (folder / "records.csv").write_text("id,title,abstract,included\n" + "".join(records))
    (folder / "reviewed.csv").write_text(
        "id,title,abstract\n" + "".join(f"{line.rpartition(',')[0]}\n" for line in records)
    )
    (folder / "reviewed.csv.answers").mkdir()
    answers = [f'{{"action": "{"not" if k % 5 else "relevant"}", "id": "{k}", "by": "model"}}\n' for k in range(18)]
    (folder / "reviewed.csv.answers" / "me.jsonl").write_text("".join(answers))
    (folder / "certificate.json").write_bytes(certificate_bytes(make_certificate([folder / "reviewed.csv"])))
    with SqliteDatabase(folder / "damaged.db") as store:
        store.add_project("compare", "teas", {}, {})
    (folder / "articles").mkdir()
    for k, text in enumerate(texts):
        (folder / "articles" / f"a{k}.txt").write_text(text)
    links = [(f"a{k}", f"a{(k + 1) % 20}") for k in range(20)]
    (folder / "links.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in links))
    corpus = read_corpus(folder / "articles")
    save_corpus(corpus, folder / "articles.index")
    learnt = LinkLearn(n_steps=3, random_state=0).fit(Links.of(corpus, read_pairs(folder / "links.tsv")))
    corank.save(learnt, folder / "links.safetensors")
    return folder
