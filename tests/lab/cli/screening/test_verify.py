"""`corank screen certify` and `corank screen verify`."""

from __future__ import annotations

import json

from typer.testing import CliRunner

from corank.cli import app

RELEVANT = {2, 3, 5, 7, 11, 13}


def run(*words, keys=""):
    result = CliRunner().invoke(app, [*map(str, words)], input=keys)
    error = result.exception if result.exception is not None and not isinstance(result.exception, SystemExit) else None
    return result.exit_code, result.stdout, str(error or "")


def write_screening(folder):
    path = folder / "works.csv"
    path.write_text("id,title\n" + "".join(f"W{at},Work {at} on tin and {at * 7}\n" for at in range(40)))
    answers = folder / "works.csv.answers"
    answers.mkdir()
    lines = [{"action": "relevant" if at in RELEVANT else "not", "id": f"W{at}", "by": "model"} for at in range(36)]
    (answers / "me.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path, answers / "me.jsonl"


def test_a_certificate_is_written_and_verified(tmp_path):
    path, log = write_screening(tmp_path)
    target = tmp_path / "certificate.json"
    code, said, _ = run(
        "screen",
        "certify",
        path,
        "--rule",
        "hypergeometric",
        "--target",
        "0.5",
        "-o",
        target,
        "--page",
        target.with_suffix(".html"),
        "--keep-duplicates",
    )
    assert code == 0
    assert said.startswith("Estimated, not proved: at least 50 % of the relevant records are found. The rule 'hyper")
    assert (tmp_path / "certificate.html").read_text().startswith("<!doctype html>")
    code, said, _ = run("screen", "verify", target, path)
    assert code == 0
    assert "the same result. Estimated, not proved" in said
    code, said, _ = run("screen", "verify", target, path, "--json")
    *_, assumed, not_proved = json.loads(said)["confirmed"]
    assert assumed.startswith("Assumed: ")
    assert not_proved.startswith("Not proved: ")
    log.write_bytes(log.read_bytes().replace(b'"relevant"', b'"not"', 1))
    code, _, error = run("screen", "verify", target, path)
    assert code == 1
    assert "differs from the log of the certificate" in error


def test_an_existing_certificate_is_kept(tmp_path):
    path, _ = write_screening(tmp_path)
    target = tmp_path / "certificate.json"
    target.write_text("mine")
    assert run("screen", "certify", path, "-o", target)[0] == 1
    assert target.read_text() == "mine"
    assert not (tmp_path / "certificate.html").exists()
    assert run("screen", "certify", path, "-o", target, "--force")[0] == 0
    code, _, error = run("screen", "certify", path, "-o", tmp_path / "certificate.txt")
    assert code == 1
    assert "pass a name that ends in .json" in error


def test_named_columns_are_read_in_every_mode(tmp_path):
    path = tmp_path / "mails.csv"
    metals = ("tin", "gold", "iron", "zinc", "lead", "silver")
    rows = [f"x{at},Price of {metal},The price of {metal} rises" for at, metal in enumerate(metals)]
    path.write_text("\n".join(["Nr,Betreff,Inhalt", *rows]) + "\n")
    named = ["--title", "Betreff", "--text", "Inhalt"]
    code, said, _ = run("screen", path, *named, keys="r\n" * 6)
    assert (code, "Price of zinc" in said) == (0, True)
    run("screen", "export", path, "-o", tmp_path / "out.csv", *named)
    assert "The price of zinc rises" in (tmp_path / "out.csv").read_text()
    made = tmp_path / "certificate.json"
    run("screen", "certify", path, "-o", made, *named)
    assert json.loads(made.read_text())["records"]["columns"] == {"title": "Betreff", "text": "Inhalt"}
    assert "byte for byte" in run("screen", "verify", made, path)[1]
    assert "--title does not work with --page" in run("screen", path, "--page", *named)[2]
