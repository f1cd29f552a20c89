"""Files of votes: formats that people have, and what is refused."""

import json

import numpy as np
import pytest

from corank.data import looks_like_votes, read_votes
from corank.data.io.votes import as_votes, pair_votes
from corank.errors import InputError


def triples(votes):
    """Return (first, outcome, second) of each vote with its count."""
    signs = "><"
    rows = zip(votes.first, votes.outcome, votes.second, votes.count, strict=True)
    return [(votes.items[a], (signs[0], "=", signs[1])[o], votes.items[b], n) for a, o, b, n in rows]


EXPECTED = [("x", ">", "y", 1), ("y", "=", "z", 1), ("z", "<", "x", 1)]
TABLES = {
    "sides": "model_a,model_b,winner\nx,y,model_a\ny,z,tie\nz,x,model_b\n",
    "letters": "model_a,model_b,winner\nx,y,a\ny,z,draw\nz,x,B\n",
    "names": "model_a;model_b;winner\nx;y;x\ny;z;tie\nz;x;x\n",
    "labels": "left,right,label\nx,y,left\ny,z,equal\nz,x,right\n",
    "verdicts": "Model A,Model B,verdict\nx,y,[[A>>B]]\ny,z,[[A=B]]\nz,x,[[A<B]]\n",
    "numbers": "item_1,item_2,outcome\nx,y,1\ny,z,0.5\nz,x,0\n",
    "signs": "a,b,result\nx,y,1\ny,z,0\nz,x,-1\n",
    "one and two": "a,b,choice\nx,y,1\ny,z,tie\nz,x,2\n",
    "wide": "a,b,wins_a,wins_b,ties\nx,y,1,0,0\ny,z,0,0,1\nz,x,0,1,0\n",
    "one of three": "model_a,model_b,winner_model_a,winner_model_b,winner_tie\nx,y,1,0,0\ny,z,0,0,1\nz,x,0,1,0\n",
    "one and a half": "generator_1,generator_2,preference\nx,y,1\ny,z,1.5\nz,x,2\n",
}


@pytest.mark.parametrize("name", TABLES)
def test_tables_of_votes_mean_the_same(tmp_path, name):
    (tmp_path / "votes.csv").write_text(TABLES[name])
    assert sorted(triples(read_votes(tmp_path / "votes.csv"))) == sorted(EXPECTED)
    assert looks_like_votes(TABLES[name].splitlines()[0].replace(";", ",").split(","))


OBJECTS = [
    {"question_id": "q1", "model_a": "x", "model_b": "y", "winner": "model_a", "judge": "u1", "turn": 1},
    {"question_id": "q2", "model_a": "y", "model_b": "z", "winner": "tie", "judge": "u2", "turn": 1},
    {"question_id": "q2", "model_a": "z", "model_b": "x", "winner": "model_b", "judge": "u1", "turn": 2},
]


@pytest.mark.parametrize("lines", [False, True])
def test_json_of_an_arena(tmp_path, lines):
    path = tmp_path / ("votes.jsonl" if lines else "votes.json")
    path.write_text("\n".join(map(json.dumps, OBJECTS)) if lines else json.dumps(OBJECTS))
    votes = read_votes(path)
    assert triples(votes) == EXPECTED
    assert votes.judges == ("u1", "u2")
    assert votes.judge.tolist() == [0, 1, 0]
    assert votes.groups == ("q1", "q2")
    assert votes.group.tolist() == [0, 1, 1]
    assert votes.notes == (f"{path}: not used: column 'turn'",)


def test_scores_of_a_comparative_evaluation_are_votes_on_all_pairs(tmp_path):
    rows = [{"example_id": "e1", "key": "ranked", "scores": {"x": 1, "y": 0, "z": 0}}]
    (tmp_path / "a.json").write_text(json.dumps(rows))
    votes = read_votes(tmp_path / "a.json")
    assert triples(votes) == [("x", ">", "y", 1), ("x", ">", "z", 1), ("y", "=", "z", 1)]
    (tmp_path / "c.json").write_text(json.dumps({"results": rows, "name": "run"}))
    assert triples(read_votes(tmp_path / "c.json")) == triples(votes)
    (tmp_path / "b.json").write_text(json.dumps([{"experiments": ["x", "y"], "preference": "y", "example_id": 1}]))
    assert triples(read_votes(tmp_path / "b.json")) == [("x", "<", "y", 1)]


def test_a_journal_of_preferences_with_corrections(tmp_path):
    entries = [
        {"judge": "ann", "action": "left", "left": "x", "right": "y", "by": "start"},
        {"judge": "bob", "action": "bad", "left": "y", "right": "z", "by": "model"},
        {"judge": "ann", "action": "left", "left": "z", "right": "x", "by": "model"},
        {"judge": "ann", "action": "undo", "left": "", "right": "", "by": ""},
        {"judge": "ann", "action": "right", "left": "z", "right": "x", "by": "model"},
        {"judge": "bob", "action": "skip", "left": "x", "right": "y", "by": "model"},
        {"judge": "bob", "action": "left", "left": "x", "right": "z", "by": "model"},
        {"judge": "bob", "action": "equal", "left": "z", "right": "x", "by": "change"},
    ]
    (tmp_path / "journal.jsonl").write_text("\n".join(map(json.dumps, entries)))
    votes = read_votes(tmp_path / "journal.jsonl")
    assert triples(votes) == [*EXPECTED, ("z", "=", "x", 1)]
    assert votes.n_both_bad == 1
    assert len(votes) == 4


def test_winners_and_losers_have_no_sides_and_counts_are_votes(tmp_path):
    (tmp_path / "a.csv").write_text("winner,loser,count\nx,y,3\ny,z,0\nz,x,1\n")
    votes = read_votes(tmp_path / "a.csv")
    assert (len(votes), votes.has_sides, votes.count.tolist()) == (4, False, [3, 1])
    assert as_votes({"winner": ["x"], "loser": ["y"]}).items == ("x", "y")
    ties = pair_votes(["x", "y"], ["y", "z"], ties=[False, True])
    assert triples(ties) == EXPECTED[:2]


def test_frames(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"model_a": ["x", "y", "z"], "model_b": ["y", "z", "x"], "winner": ["x", "tie", "x"]})
    assert triples(as_votes(frame)) == EXPECTED
    frame.to_parquet(tmp_path / "v.parquet")
    assert triples(read_votes(tmp_path / "v.parquet")) == EXPECTED


def test_both_bad_is_a_tie_that_is_counted(tmp_path):
    (tmp_path / "a.csv").write_text("model_a,model_b,winner\nx,y,tie (bothbad)\nx,y,both_bad\nx,y,tie\nx,y,\n")
    votes = read_votes(tmp_path / "a.csv")
    assert (votes.n_ties, votes.n_both_bad, len(votes)) == (3, 2, 3)
    assert "1 row without a vote is left out" in votes.notes[0]


def test_names_are_read_before_sides(tmp_path):
    # an item may be called like the other side
    (tmp_path / "a.csv").write_text("a,b,winner\nb,a,b\nb,a,a\n")
    assert triples(read_votes(tmp_path / "a.csv")) == [("b", ">", "a", 1), ("b", "<", "a", 1)]


BAD = {
    "a,b,winner\nx,x,a\n": "line 2: 'x' is compared with itself",
    "a,b,winner\nx,y,q\n": "line 2: the winner is 'q', which is neither 'x' nor 'y'",
    "winner,loser,count\nx,y,1.5\n": "line 2: the number of votes in column 'count' is '1.5'; expected a whole",
    "winner,loser,count\nx,y,-1\n": "'-1'; expected a whole number from 0",
    "winner,loser,count\nx,y,1e400\n": "expected a whole number",
    "name,price\nx,1\n": "has the columns 'name', 'price', but no votes; expected",
    "model_a,model_b,winner\n": "has no votes",
    "model_a,model_b,winner\nx,,a\n": "line 2: the name of an item is empty",
    "model_a,model_b,winner\nx,y,skip\n": "has no votes",
}


@pytest.mark.parametrize("text", BAD)
def test_bad_files_are_refused_with_one_sentence(tmp_path, text):
    (tmp_path / "votes.csv").write_text(text)
    with pytest.raises(InputError) as error:
        read_votes(tmp_path / "votes.csv")
    assert BAD[text] in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[]", "has no votes"),
        ('[{"scores": {"a": NaN, "b": 1}}]', "the score of 'a' is not a number"),
        (json.dumps([{"scores": {str(i): i for i in range(300)}}]), "scores of 300 items; expected at most 200"),
    ],
    ids=["empty", "nan", "many"],
)
def test_bad_json_is_refused_with_one_sentence(tmp_path, text, sentence):
    (tmp_path / "votes.json").write_text(text)
    with pytest.raises(InputError, match=sentence):
        read_votes(tmp_path / "votes.json")


def test_bad_arguments():
    with pytest.raises(InputError, match="loser has 1 values for 2 winners"):
        pair_votes(["x", "y"], ["y"])
    with pytest.raises(InputError, match="votes is a int"):
        as_votes(3)
    with pytest.raises(InputError, match="no column 'who'"):
        as_votes({"winner": ["x"], "loser": ["y"]}, judge="who")
    with pytest.raises(InputError, match="columns of votes have 1 and 2 values"):
        as_votes({"winner": ["x"], "loser": ["y", "x"]})


def test_components_are_connected_by_votes():
    votes = pair_votes(["x", "y", "u"], ["y", "z", "v"])
    assert [sorted(part) for part in votes.components()] == [["x", "y", "z"], ["u", "v"]]
    same = votes.on(["v", "u", "z", "y", "x"])
    assert triples(same) == triples(votes)
    assert np.array_equal(same.count, votes.count)
