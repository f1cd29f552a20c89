"""`corank fuse`, and `rank` and `suggest` for a fusion: figures, files, and refusals in one sentence."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from corank.cli import app
from corank.data import read_grades, read_run, read_runs
from corank.errors import InputError
from corank.metrics import evaluate_run
from corank.models.fusion import FusionDefinition, load_fusion
from corank.models.fusion.lists import RetrievedLists
from corank.models.fusion.report import mean_of_scores
from corank.models.fusion.suggest import draw, inclusion_probabilities, suggest_for_fusion
from corank_lab.grading.task import read_grading_task
from helpers.files import write_runs


def run(*words):
    result = CliRunner().invoke(app, [str(word) for word in words])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result


@pytest.fixture
def place(tmp_path):
    write_runs(tmp_path, np.random.default_rng(0))
    return tmp_path


def fused(place, *more):
    files = (place / "bm25.run", place / "vectors.run")
    return run("fuse", *files, "--qrels", place / "judgements.csv", "-o", place / "fusion.json", *more)


def test_figures_are_those_of_evaluate(place):
    report = json.loads(fused(place, "--unjudged", "irrelevant", "--json").stdout)
    rules = {row["rule"]: row for row in report["rules"]}
    qrels = read_grades(place / "judgements.csv")[0]
    for name in ("bm25", "vectors"):
        value = evaluate_run(qrels, place / f"{name}.run", "nDCG@10", convention="trec_eval")["nDCG@10"].mean
        assert rules[name]["mean"] == pytest.approx(value)
    # RRF by hand, in plain Python
    lists = {name: read_run(place / f"{name}.run") for name in ("bm25", "vectors")}
    scores = {}
    for found in lists.values():
        for query in set(found.qid.tolist()):
            names = sorted(
                zip(found.scores[found.qid == query], found.docids[found.qid == query], strict=True), reverse=True
            )
            for rank, (_, name) in enumerate(names, 1):
                scores.setdefault(query, {}).setdefault(name, 0.0)
                scores[query][name] += 1 / (60 + rank)
    value = evaluate_run(qrels, scores, "nDCG@10", convention="trec_eval")["nDCG@10"].mean
    assert rules["RRF"]["mean"] == pytest.approx(value)
    assert report["leads"][0]["over"] == "RRF"
    assert report["leads"][1]["over"] == "vectors"
    assert 0 <= report["leads"][0]["probability"] <= 1
    assert sum(row["weight"] for row in report["weights"]) == pytest.approx(1)
    assert report["n_queries"] == 12


def test_tables_and_sentences_are_printed(place):
    said = fused(place)
    for text in ("bm25", "RRF", "mean of min-max", "judged@10", "better with probability", "weight", "wrote"):
        assert text in said.stdout, text
    assert "120 judgements of 12 queries (4 grades)" in said.stderr


def test_cheap_grades_of_other_queries_are_learnt_from(place):
    qrels = read_grades(place / "judgements.csv")[0]
    queries = sorted(set(qrels.qid.tolist()))
    for name, part in (("human.csv", queries[: len(queries) // 2]), ("llm.csv", queries)):
        rows = [f"{q},{d},{y:g}\n" for q, d, y in zip(qrels.qid, qrels.docids, qrels.y, strict=True) if q in part]
        (place / name).write_text("query,docid,rating\n" + "".join(rows))
    files = (place / "bm25.run", place / "vectors.run", "--json", "--qrels")
    both = json.loads(run("fuse", *files, place / "human.csv", "--cheap", place / "llm.csv").stdout)
    everything = json.loads(run("fuse", *files, place / "judgements.csv").stdout)
    assert both["rules"] == everything["rules"]
    assert any("llm.csv: " in note and "worth 1.00" in note for note in both["notes"])
    lines = (place / "llm.csv").read_text().splitlines()
    (place / "few.csv").write_text("\n".join([lines[0], *lines[1::3]]) + "\n")
    few = run("fuse", *files, place / "human.csv", "--cheap", place / "few.csv")
    kept = {tuple(line.split(",")[:2]) for line in lines[1::3]}
    runs = read_runs([place / "bm25.run", place / "vectors.run"])
    ranks = RetrievedLists.of(runs.X, runs.qid).ranks
    tops = [
        key in kept
        for key, rank in zip(zip(runs.qid, runs.docids, strict=True), ranks.tolist(), strict=True)
        if key[0] in queries[len(queries) // 2 :] and any(0 < r <= 10 for r in rank)
    ]
    assert any(f"cheap grades cover {np.mean(tops):.0%}" in note for note in json.loads(few.stdout)["notes"])


def test_a_pool_of_one_list_is_said_once(place):
    top = set()
    for line in (place / "bm25.run").read_text().splitlines():
        query, _, name, rank, *_ = line.split()
        top |= {(query, name)} if int(rank) <= 10 else set()
    lines = (place / "judgements.csv").read_text().splitlines()
    (place / "judgements.csv").write_text(
        "\n".join([lines[0], *(x for x in lines if (*x.split(",")[:2],) in top)]) + "\n"
    )
    said = fused(place).stderr
    assert said.lower().count("judged documents come from the top 10 of bm25") == 1


def test_without_judgements_it_is_rrf(place):
    said = run("fuse", place / "bm25.run", place / "vectors.run", "-o", place / "fusion.json")
    assert "no judgements were given" in said.stderr
    assert load_fusion(place / "fusion.json").terms == FusionDefinition.rrf(("bm25", "vectors")).terms


def test_a_fusion_ranks_new_lists_in_any_order_of_files(place):
    fused(place)
    run("rank", place / "fusion.json", place / "vectors.run", place / "bm25.run", "-o", place / "fused.run")
    runs = read_runs([place / "bm25.run", place / "vectors.run"])
    expected = load_fusion(place / "fusion.json").score(runs.X, runs.qid)
    found = read_run(place / "fused.run")
    written = dict(zip(zip(found.qid, found.docids, strict=True), found.scores.tolist(), strict=True))
    assert [written[key] for key in zip(runs.qid, runs.docids, strict=True)] == expected.tolist()
    value = run("evaluate", place / "judgements.csv", place / "fused.run", "--json")
    assert json.loads(value.stdout)["n_queries"] == 12
    printed = run("rank", place / "fusion.json", place / "bm25.run", place / "vectors.run").stdout
    assert printed == (place / "fused.run").read_text()
    with pytest.raises(InputError, match="found 1 runs for a fusion of 2"):
        run("rank", place / "fusion.json", place / "bm25.run")
    with pytest.raises(InputError, match="leave out --format scores"):
        run("rank", place / "fusion.json", place / "bm25.run", place / "vectors.run", "--format", "scores")


def test_new_judgements_are_suggested_graded_and_used(place):
    fused(place)
    words = (place / "bm25.run", place / "vectors.run", "--qrels", place / "judgements.csv")
    (place / "texts.jsonl").write_text("\n".join(json.dumps({"id": f"d{d}", "text": f"text {d}"}) for d in range(30)))
    more = ("-n", 9, "-o", place / "next.csv", "--texts", place / "texts.jsonl", "--strategy", "sample")
    said = run("suggest", place / "fusion.json", *words, *more)
    assert "9 documents" in said.stdout
    task = read_grading_task(place / "next.csv").task
    assert len(task.documents) == 9
    judged = {tuple(line.split(",")[:2]) for line in (place / "judgements.csv").read_text().splitlines()}
    assert not judged & {(task.queries[one.query].id, one.id) for one in task.documents}
    assert all(set(one.fields) == {"text"} for one in task.documents)  # judges do not see why it was chosen
    # grade what was suggested: the pool file then gives weights
    lines = (place / "next.csv").read_text().splitlines()[1:]
    with (place / "judgements.csv").open("a") as stream:
        stream.writelines(f"{','.join(line.split(',')[:2])},1\n" for line in lines)
    again = fused(place, "--pool", place / "next.csv", "--force")
    assert "9 judged documents were drawn by `corank suggest`" in again.stderr
    with pytest.raises(InputError, match="are for a fusion"):
        run("suggest", place / "model.safetensors", place / "bm25.run", "--qrels", place / "judgements.csv")


@pytest.mark.parametrize(
    ("pool", "said"),
    [("10", "The pool was given"), ("bm25=10,vectors=0", "The pool was given"), ("pool.csv", "The pool was given")],
)
def test_pools(place, pool, said, monkeypatch):
    monkeypatch.chdir(place)
    (place / "pool.csv").write_text("query,retriever,depth\nq0,bm25,5\nq1,vectors,10\n")
    assert said in fused(place, "--pool", pool, "--unjudged", "pooled").stderr


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("query,depth\nq0,5\n", "a pool has query, retriever and depth"),
        ("query,retriever,depth\nq0,bm25,x\n", "line 2: depth is 'x'"),
        ("query,docid,probability\nq0,d1,0\n", "line 2: probability is '0'"),
    ],
)
def test_damaged_pools_are_refused(place, content, message):
    (place / "pool.csv").write_text(content)
    with pytest.raises(InputError, match=message):
        fused(place, "--pool", place / "pool.csv")


def test_what_cannot_be_fused_is_refused(place):
    with pytest.raises(InputError, match="found one retriever"):
        run("fuse", place / "bm25.run")
    (place / "none.csv").write_text("query,docid,grade\nq0,d1,0\nq1,d2,0\n")
    with pytest.raises(InputError, match="no judged query of the runs has a relevant"):
        run("fuse", place / "bm25.run", place / "vectors.run", "--qrels", place / "none.csv")
    (place / "other.csv").write_text("query,docid,grade\nx,d1,1\n")
    with pytest.raises(InputError, match="no query of the runs is judged"):
        run("fuse", place / "bm25.run", place / "vectors.run", "--qrels", place / "other.csv")


def test_a_table_of_scores_with_grades(place):
    pandas = pytest.importorskip("pandas")
    runs = read_runs([place / "bm25.run", place / "vectors.run"])
    y, _ = runs.join(read_grades(place / "judgements.csv")[0])
    table = pandas.DataFrame(runs.X, columns=list(runs.names)).assign(query=runs.qid, docid=runs.docids, grade=y)
    table.to_csv(place / "scores.csv", index=False)
    report = json.loads(run("fuse", place / "scores.csv", "--json").stdout)
    assert report["retrievers"] == ["bm25", "vectors"]
    assert report["n_queries"] == 12


def test_probabilities_of_the_draw():
    rng = np.random.default_rng(0)
    values = np.array([5.0, 1.0, 0.5, 0.0, 2.0, 0.25])
    wanted = inclusion_probabilities(values, 3)
    assert wanted.sum() == pytest.approx(3)
    assert wanted[3] == 0
    assert wanted.max() == 1
    drawn = np.zeros((20000, len(values)))
    for row in drawn:
        chosen = draw(wanted, rng)
        assert len(chosen) == 3
        row[chosen] = 1
    np.testing.assert_allclose(drawn.mean(axis=0), wanted, atol=0.02)
    assert inclusion_probabilities(values, 9).tolist() == [1, 1, 1, 0, 1, 1]


def test_documents_on_which_retrievers_agree_are_not_suggested():
    X = np.column_stack([np.arange(30.0), np.arange(30.0)])
    X[0, 1] = 99  # the first document of the second retriever is the last of the first
    rrf, unjudged = FusionDefinition.rrf(("a", "b")), np.full(60, np.nan)
    same = np.column_stack([np.arange(30.0)] * 2)
    lists = RetrievedLists.of(np.vstack([same, X]), ["same"] * 30 + ["differs"] * 30)
    chosen = suggest_for_fusion(rrf, lists, unjudged, 1, strategy="sample")
    assert chosen.rows.tolist() == [30]
    assert chosen.reasons == ("a 30, b 1",)
    whole = suggest_for_fusion(rrf, lists, unjudged, 40)
    # the first ten documents of both lists, of the only query in which fusions differ
    assert sorted(whole.rows.tolist()) == [30, *range(50, 60)]
    assert whole.probabilities.tolist() == [1] * 11
    assert whole.queries == ()
    with pytest.raises(InputError, match="the strategy is 'top'"):
        suggest_for_fusion(rrf, lists, unjudged, 1, strategy="top")


def test_queries_are_taken_whole_by_value_and_the_first_is_cut():
    rng = np.random.default_rng(0)
    lists = RetrievedLists.of(rng.normal(size=(90, 3)), np.repeat(["x", "y", "z"], 30))
    y = np.full(90, np.nan)
    chosen = suggest_for_fusion(FusionDefinition.rrf(("a", "b", "c")), lists, y, 4)
    assert len(chosen.rows) == 4
    assert len(set(lists.queries.codes[chosen.rows].tolist())) == 1
    assert len(chosen.queries) == 2
    assert chosen.queries[0].value >= chosen.queries[1].value
    every = suggest_for_fusion(FusionDefinition.rrf(("a", "b", "c")), lists, y, 90)
    # what RRF, the mean and every retriever have among their first ten is part of the pool
    placed = ((lists.ranks > 0) & (lists.ranks <= 10)).any(axis=1)
    for rule in (FusionDefinition.rrf(("a", "b", "c")), mean_of_scores(("a", "b", "c"))):
        placed |= lists.queries.ranks(rule.score_lists(lists)) <= 10
    assert set(np.flatnonzero(placed).tolist()) <= set(every.rows.tolist())
    y[every.rows] = 0.0
    assert not len(suggest_for_fusion(FusionDefinition.rrf(("a", "b", "c")), lists, y, 90).rows)


def test_a_vector_search_writes_a_run(place):
    lines = [json.dumps({"id": f"d{d}", "text": "tea" if d % 2 else "milk"}) for d in range(4)]
    (place / "docs.jsonl").write_text("\n".join(lines))
    run("index", place / "docs.jsonl", "-o", place / "docs.index")
    rows = np.array([[1, 0], [0.8, 0.6], [0, 1], [0.6, 0.8]], dtype=np.float32)
    np.save(place / "docs.npy", rows)  # in the order of the index
    np.savez(place / "queries.npz", queries=[[1.0, 0.0], [0.0, 2.0]], query_ids=["x", "y"])
    words = ("search", place / "docs.index", "--vectors", place / "docs.npy")
    run(*words, "--query-vectors", place / "queries.npz", "-n", 2, "-o", place / "dense.run")
    found = read_run(place / "dense.run")
    assert list(zip(found.qid, found.docids, strict=True)) == [("x", "d0"), ("x", "d1"), ("y", "d2"), ("y", "d3")]
    with pytest.raises(InputError, match="does not name the model"):
        run(*words, "tea")
    with pytest.raises(InputError, match="both words and --query-vectors"):
        run(*words, "tea", "--query-vectors", place / "queries.npz")
    np.savez(place / "other.npz", documents=rows, document_ids=["d0", "d1", "d2", "d9"])
    with pytest.raises(InputError, match="such as 'd9'"):
        run("search", place / "docs.index", "--vectors", place / "other.npz", "--query-vectors", place / "queries.npz")


def test_static_vectors_are_written_and_searched(place):
    pytest.importorskip("wordllama")
    lines = [{"id": "a", "text": "a red car"}, {"id": "b", "text": "boil the pasta"}]
    (place / "docs.jsonl").write_text("\n".join(map(json.dumps, lines)))
    run("index", place / "docs.jsonl", "-o", place / "docs.index", "--vectors", place / "docs.npz")
    said = run("search", place / "docs.index", "crimson automobile", "--vectors", place / "docs.npz", "-n", 1).stdout
    assert said.split("\t")[2].strip() == "a"
