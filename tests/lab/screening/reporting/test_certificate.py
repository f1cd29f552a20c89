"""Certificates: what they state, and that every change of records, log or certificate is found."""

from __future__ import annotations

import json

import numpy as np
import pytest

from corank.errors import InputError
from corank_lab.records.records import read_records
from corank_lab.screening import Screening, ScreeningJournal
from corank_lab.screening.certificate import (
    SeparateSamplesError,
    _hash_of,
    certificate_bytes,
    make_certificate,
    verify,
)
from corank_lab.screening.project import ScreeningPlan
from corank_lab.screening.report import certificate_page
from corank_lab.screening.stopping.urns import SamplePlan, draw_order
from corank_lab.screening.team import read_logs

SEED = 5


def write_works(folder):
    rng = np.random.default_rng(0)
    relevant = rng.random(150) < 0.4
    path = folder / "works.csv"
    fill = rng.integers(0, 300, (150, 12))
    lines = [
        f"W{at},Work <b>{at}</b> {row[0]} & more,{' '.join(f'word{k}' for k in row)}{' sleep rats' if hit else ''}\n"
        for at, (row, hit) in enumerate(zip(fill, relevant, strict=True))
    ]
    path.write_text("id,title,abstract\n" + "".join(lines))
    return path, {f"W{at}": bool(hit) for at, hit in enumerate(relevant)}


def screen(path, truth, rule, n=None, judge="me", at=0):
    records = read_records(path)
    with ScreeningJournal(path.parent / "corank.db", judge) as journal:
        known = [[name for name in truth if truth[name]][at]]
        session = Screening(records, journal=journal, rule=rule, target=0.8, random_state=SEED, known=known)
        for _ in range(len(records) if n is None else n):
            if session.progress().may_stop:
                break
            record = session.next()
            session.answer(record, truth[records.ids[record]])


def log_of(path):
    ((_, lines),) = read_logs([path], read_records(path))
    return lines


def certify(path, rule, **more):
    return make_certificate([path], plan=ScreeningPlan(rule, 0.8, seed=SEED), keep_duplicates=True, **more)


@pytest.fixture(scope="module")
def sampled(tmp_path_factory):
    path, truth = write_works(tmp_path_factory.mktemp("works"))
    screen(path, truth, "sample")
    return path, truth, certify(path, "sample")


def test_a_proof_states_the_exact_bound_and_is_confirmed(sampled):
    path, truth, certificate = sampled
    sample, reading, result = (certificate[part] for part in ("sample", "reading", "result"))
    plan = SamplePlan(sample["drawn_from"], sample["found_before"], 0.8)
    assert (result["reached"], result["evidence"]) == (True, "proved")
    assert result["bound"] == pytest.approx(plan.bound(sample["relevant"]), abs=1e-6)
    assert 0.8 <= result["bound"] <= reading["found"] / sum(truth.values())
    assert sample["relevant"] == [int(truth[name]) for name in sample["ids"]]
    assert reading["read"] == reading["ranked"] + reading["known_beforehand"] + len(sample["ids"])
    assert reading["unread"] > 0
    lines = verify(certificate_bytes(certificate), [path])
    assert lines[-3].startswith("Computed anew, with the same result. Proved at 95 % confidence: at least ")
    assert lines[-2] == "Assumed: Every answer is right, and the sample is drawn at random."


def test_the_sample_is_the_order_of_the_seed(sampled):
    path, _, certificate = sampled
    ids = read_records(path).ids
    log = [json.loads(line) for line in log_of(path).splitlines()]
    before = [int(entry["id"][1:]) for entry in log if entry["by"] != "sample"]
    drawn = [ids[number] for number in draw_order(len(ids), before, SEED)]
    assert certificate["sample"]["ids"] == drawn[: len(certificate["sample"]["ids"])]
    with pytest.raises(InputError, match="the order of seed 6 does not draw it then"):
        make_certificate([path], plan=ScreeningPlan("sample", 0.8, seed=6), keep_duplicates=True)


def test_later_answers_do_not_change_what_was_certified(tmp_path):
    path, truth = write_works(tmp_path)
    screen(path, truth, "hypergeometric", 40)
    content = certificate_bytes(certify(path, "hypergeometric"))
    screen(path, truth, "hypergeometric", 10)
    assert "The rule 'hypergeometric' does not advise to stop: p = " in verify(content, [path])[-3]


@pytest.mark.parametrize(("rule", "verb"), [("agree", "Estimated, not proved"), ("betting", "Tested under")])
def test_rules_without_a_sample_prove_nothing(tmp_path, rule, verb):
    path, truth = write_works(tmp_path)
    screen(path, truth, rule)
    certificate = certify(path, rule)
    assert certificate["sample"] is None
    assert certificate["result"]["bound"] is None
    assert certificate["result"]["reached"]
    statement = certificate["result"]["statement"]
    assert statement.startswith(verb)
    assert f"at least 80 % of the relevant records are found. The rule '{rule}' advises to stop since" in statement
    assert verify(certificate_bytes(certificate), [path])[-2] == f"Assumed: {certificate['rule']['assumes']}"


def test_a_certificate_without_advice_states_nothing_about_the_recall(tmp_path):
    path, truth = write_works(tmp_path)
    screen(path, truth, "betting", 30)
    result = certify(path, "betting")["result"]
    assert (result["reached"], result["evidence"]) == (False, "none")
    assert result["statement"].startswith("Nothing is stated about the recall. The rule 'betting' does not advise")
    assert certify(path, "sample")["result"]["statement"] == (
        "No proof: no random sample was read as far as its first test."
    )


def test_a_complete_reading_is_a_proof(tmp_path):
    path, truth = write_works(tmp_path)
    with ScreeningJournal(path.parent / "corank.db") as journal:
        session = Screening(read_records(path), journal=journal, rule="consecutive")
        while (record := session.next()) is not None:
            session.answer(record, truth[f"W{record}"])
    result = certify(path, "consecutive")["result"]
    assert (result["reached"], result["evidence"], result["bound"]) == (True, "proved", 1.0)
    assert result["assumes"] == "Every answer is right."  # not what the rule assumes


def test_a_changed_byte_of_the_records_is_found(sampled, tmp_path):
    path, _, certificate = sampled
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    other = tmp_path / "works.csv"
    other.write_bytes(content)
    with pytest.raises(InputError, match=r"works\.csv differs from the records of the"):
        verify(certificate_bytes(certificate), [other], path.parent)
    with pytest.raises(InputError, match=r"about 1 files \(works.csv\)"):
        verify(certificate_bytes(certificate), [path, other])


@pytest.mark.parametrize("place", [10, 2000, -30])
def test_a_changed_byte_of_the_log_is_found(sampled, tmp_path, place):
    path, _, certificate = sampled
    content = bytearray(log_of(path))
    content[place] ^= 1
    (tmp_path / "me.jsonl").write_bytes(content)
    with pytest.raises(InputError, match="the log of the judge 'me' differs from the"):
        verify(certificate_bytes(certificate), [path], tmp_path)
    (tmp_path / "me.jsonl").rename(tmp_path / "you.jsonl")
    with pytest.raises(InputError, match="the log of the judge 'me' is missing"):
        verify(certificate_bytes(certificate), [path], tmp_path)


def test_every_changed_byte_of_the_certificate_is_found(sampled):
    path, _, certificate = sampled
    content = certificate_bytes(certificate)
    rng = np.random.default_rng(0)
    for place in [*rng.integers(0, len(content), 150), len(content) - 1]:
        changed = bytearray(content)
        changed[place] ^= 1 << int(rng.integers(0, 7))
        with pytest.raises(InputError):
            verify(bytes(changed), [path])
    assert verify(content, [path])


@pytest.mark.parametrize(
    ("part", "key", "value", "where"),
    [
        ("result", "bound", 0.99, "result.bound"),
        ("result", "statement", "Proved: all.", "result.statement"),
        ("reading", "found", 99, "reading.found"),
        ("sample", "drawn_from", 10, "sample.drawn_from"),
        ("rule", "assumes", "Nothing.", "rule.assumes"),
        ("rule", "evidence", "tested", "rule.evidence"),
        ("records", "to_judge", 1, "records.to_judge"),
    ],
)
def test_a_certificate_with_a_new_hash_is_computed_anew(sampled, part, key, value, where):
    path, _, certificate = sampled
    forged = json.loads(certificate_bytes(certificate))
    forged[part][key] = value
    del forged["sha256"]
    forged["sha256"] = _hash_of(forged)
    with pytest.raises(InputError, match=rf"not confirmed: it states {where} = "):
        verify(certificate_bytes(forged), [path])


def test_a_certificate_of_a_removed_rule_gets_one_sentence(sampled):
    path, _, certificate = sampled
    old = json.loads(certificate_bytes(certificate))
    old["rule"]["name"] = "knee"
    del old["sha256"]
    old["sha256"] = _hash_of(old)
    with pytest.raises(InputError, match=r"^the stopping rule 'knee' was removed"):
        verify(certificate_bytes(old), [path])


def test_the_sample_of_an_old_certificate_is_not_confirmed(sampled):
    path, _, certificate = sampled
    old = {**certificate, "format": 1, "sample": {"seed": SEED}}
    del old["sha256"]
    lines = verify(certificate_bytes({**old, "sha256": _hash_of(old)}), [path])
    assert not any("random sample" in line for line in lines)
    assert any("not computed anew" in line for line in lines)


def _places(value, place=()):
    inside = value.items() if isinstance(value, dict) else enumerate(value[:2]) if isinstance(value, list) else ()
    return [place, *(one for key, part in inside for one in _places(part, (*place, key)))]


@pytest.mark.long
def test_certificates_of_any_form_with_a_new_hash_are_refused(sampled):
    path, _, certificate = sampled
    places = [place for place in _places(json.loads(certificate_bytes(certificate))) if place and place[-1] != "sha256"]
    for place in [*places, ("proved",)]:
        if place in (("software",), ("records", "duplicates_joined")):  # a claim, and one without duplicates is true
            continue
        for value in (None, "x", [], {}, -1, True):
            forged = json.loads(certificate_bytes(certificate))
            inner = forged
            for key in place[:-1]:
                inner = inner[key]
            if isinstance(inner, dict) and inner.get(place[-1], ...) is value:
                continue
            inner[place[-1]] = value
            del forged["sha256"]
            forged["sha256"] = _hash_of(forged)
            with pytest.raises(InputError):
                verify(certificate_bytes(forged), [path])


def test_a_sample_must_be_drawn_before_its_answers(sampled, tmp_path):
    path, _, _ = sampled
    lines = [json.loads(line) for line in log_of(path).splitlines()]
    first = next(at for at, entry in enumerate(lines) if entry["by"] == "sample")
    lines[first]["time"] = "2001-01-01T00:00:00.000Z"
    (tmp_path / "me.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in lines))
    with pytest.raises(InputError, match=f"line {first + 1}: the answer to the sample is of 2001"):
        certify(path, "sample", answers=tmp_path)


def test_lines_of_earlier_versions_are_read(tmp_path):
    path, truth = write_works(tmp_path)
    folder = tmp_path / "works.csv.answers"
    folder.mkdir()
    lines = [json.dumps({"action": "relevant" if truth[f"W{at}"] else "not", "id": f"W{at}"}) for at in range(60)]
    (folder / "old.jsonl").write_text("".join(f"{line}\n" for line in lines))
    certificate = certify(path, "hypergeometric")
    assert certificate["reading"]["read"] == 60
    assert certificate["reading"]["found"] == sum(truth[f"W{at}"] for at in range(60))
    assert verify(certificate_bytes(certificate), [path])


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"{}", b"\xff", b'{"kind": "corank screening certificate"}', b"[" * 9999]
)
def test_other_files_are_refused(tmp_path, content):
    with pytest.raises(InputError, match=r"pass the \.json file that corank screen"):
        verify(content, [tmp_path / "works.csv"])


def test_no_answers_are_refused(tmp_path):
    path, _ = write_works(tmp_path)
    with pytest.raises(InputError, match=r"there are no answers for .*works\.csv yet"):
        make_certificate([path])


def test_the_page_escapes_texts_and_loads_nothing(sampled):
    _, _, certificate = sampled
    forged = json.loads(certificate_bytes(certificate))
    forged["sample"]["ids"][0] = "<script>alert(1)</script>"
    forged["records"]["files"][0]["name"] = "<img src=x>.csv"
    text = certificate_page(forged, "certificate.json")
    assert "<script" not in text
    assert "<img" not in text
    assert "&lt;script&gt;alert(1)" in text
    assert "Content-Security-Policy" in text
    assert "default-src 'none'" in text
    assert certificate["result"]["statement"] in text
    assert "corank screen verify certificate.json" in text


@pytest.mark.long
def test_samples_of_two_judges_apart_are_certified_one_by_one(tmp_path):
    path, truth = write_works(tmp_path)
    screen(path, truth, "sample", judge="ann")
    alone = certify(path, "sample")
    screen(path, truth, "sample", judge="ben", at=5)
    with pytest.raises(SeparateSamplesError, match="ann and ben each drew"):
        certify(path, "sample")
    one = certify(path, "sample", judge="ann")
    assert one == alone
    assert [entry["judge"] for entry in one["answers"]] == ["ann"]
    for judge in ("ann", "ben"):
        assert "Proved at 95 %" in verify(certificate_bytes(certify(path, "sample", judge=judge)), [path])[-3]
    with pytest.raises(InputError, match="there are no answers of the judge 'bea'"):
        certify(path, "sample", judge="bea")


def test_judges_who_share_a_reading_read_one_sample(tmp_path):
    path, truth = write_works(tmp_path)
    records = read_records(path)
    journals = [ScreeningJournal(path.parent / "corank.db", judge) for judge in ("ann", "ben")]
    known = [next(name for name in truth if truth[name])]
    with journals[0], journals[1]:
        sessions = [
            Screening(
                records, journal=one, rule="sample", target=0.8, random_state=SEED, share=True,
                known=known if one is journals[0] else (),
            )
            for one in journals
        ]  # fmt: skip
        for turn in range(200):
            session = sessions[turn % 2]
            if (record := session.next()) is None or session.progress().may_stop:
                break
            session.answer(record, truth[records.ids[record]])
            if turn == 5:  # a change after the sample has begun must not move the record in the order of reading
                early = (session, record)
            if session.entries[record].by == "sample" and early:
                early[0].change(early[1], truth[records.ids[early[1]]], reason="checked")
                early = None
    certificate = certify(path, "sample")
    assert early is None
    assert certificate["result"]["evidence"] == "proved"
    assert certificate["sample"]["proved_at"] is not None
    assert verify(certificate_bytes(certificate), [path])
