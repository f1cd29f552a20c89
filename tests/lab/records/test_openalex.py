"""References from OpenAlex, against a local server that answers in its form, with its errors."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from corank.errors import InputError
from corank_lab.records.openalex import BATCH, fetch_references
from corank_lab.records.records import RecordDetails, Records

Reply = tuple[int, dict[str, str], bytes] | None


class FakeOpenAlex:
    """
    A server with some works.

    works: entries in OpenAlex's form.
    faults: called with the number of the question, from 0; a reply to send instead of the answer, or None.
    questions: paths and queries that came.
    """

    def __init__(self) -> None:
        self.works: list[dict[str, Any]] = []
        self.faults: Callable[[int], Reply | str] = lambda at: None
        self.questions: list[tuple[str, dict[str, list[str]]]] = []
        fake = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                parts = urlsplit(self.path)
                fake.questions.append((unquote(parts.path), parse_qs(parts.query)))
                fault = fake.faults(len(fake.questions) - 1)
                if fault == "die":
                    self.connection.close()
                    return
                status, headers, body = fault if isinstance(fault, tuple) else fake.answer(*fake.questions[-1])
                self.send_response(status)
                for name, value in ({"Content-Length": str(len(body))} | headers).items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_address[1]}"

    def add(self, number: int, cites: list[int], *, doi: str = "", pmid: str = "") -> None:
        ids = {"openalex": f"https://openalex.org/W{number}"}
        if pmid:
            ids["pmid"] = f"https://pubmed.ncbi.nlm.nih.gov/{pmid}"
        self.works.append({
            "id": ids["openalex"], "doi": f"https://doi.org/{doi}" if doi else None, "ids": ids,
            "referenced_works": [f"https://openalex.org/W{one}" for one in cites],
        })  # fmt: skip

    def answer(self, path: str, query: dict[str, list[str]]) -> tuple[int, dict[str, str], bytes]:
        def has(work: dict[str, Any], kind: str, value: str) -> bool:
            own = work["doi"] if kind == "doi" else work["ids"].get("pmid")
            return bool(own) and own.lower().endswith(f"/{value}")

        if path != "/works":
            kind, _, value = path.removeprefix("/works/").partition(":")
            found = [work for work in self.works if has(work, kind, value)]
            return (200, {}, json.dumps(found[0]).encode()) if found else (404, {}, b"{}")
        kind, _, values = query["filter"][0].partition(":")
        if "," in values or "bad" in values:
            return 400, {}, b'{"error": "Invalid query parameters error."}'
        found = [work for work in self.works if any(has(work, kind, value) for value in values.split("|"))]
        page, size = int(query["page"][0]), int(query["per-page"][0])
        part = found[(page - 1) * size : page * size]
        return 200, {}, json.dumps({"meta": {"count": len(found), "page": page}, "results": part}).encode()


@pytest.fixture
def openalex() -> Iterator[FakeOpenAlex]:
    fake = FakeOpenAlex()
    thread = threading.Thread(target=fake.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield fake
    fake.server.shutdown()
    fake.server.server_close()
    thread.join()


def collection(*details: RecordDetails) -> Records:
    ids = [f"r{at}" for at in range(len(details))]
    return Records(ids, [f"Title {one}" for one in ids], [""] * len(ids), details=details)


def test_references_are_resolved_inside_the_collection(openalex: FakeOpenAlex, tmp_path: Path) -> None:
    openalex.add(1, [2, 2, 99, 1], doi="10.1000/A")
    openalex.add(2, [99], pmid="22")
    records = collection(
        RecordDetails(doi="10.1000/a"), RecordDetails(doi="10.1000/unknown", pmid="22"), RecordDetails(),
        RecordDetails(doi="10.1000/none"),
    )  # fmt: skip
    records = Records(
        records.ids, records.titles, records.abstracts, [(), (), ("x",), ("own",)], details=records.details
    )
    fetched = fetch_references(
        records, cache=tmp_path / "c.jsonl", address=openalex.address, mail="a@example.org", key="k"
    )
    assert list(fetched.records.references) == [("r1", "W99"), ("W99",), ("x",), ("own",)]
    assert fetched.openalex_ids == ["W1", "W2", "", ""]
    assert fetched.records.fields[0]["openalex_id"] == ["W1"]
    assert (fetched.n_asked, fetched.n_references, fetched.n_inside) == (3, 3, 1)
    assert str(fetched).startswith("OpenAlex knows 2 of 4 records (3 have a DOI or a PubMed id)")
    _, query = openalex.questions[0]
    assert query["mailto"] == ["a@example.org"]
    assert query["api_key"] == ["k"]
    assert query["select"] == ["id,doi,ids,referenced_works"]


def test_batches_and_cache(openalex: FakeOpenAlex, tmp_path: Path) -> None:
    n = 2 * BATCH + 7
    for at in range(n):
        openalex.add(1000 + at, [1000 + (at + 1) % n], doi=f"10.1000/x{at:04d}")
    records = collection(*(RecordDetails(doi=f"10.1000/x{at:04d}") for at in range(n)))
    fetched = fetch_references(records, cache=tmp_path / "c.jsonl", address=openalex.address)
    assert list(fetched.records.references) == [(f"r{(at + 1) % n}",) for at in range(n)]
    assert len(openalex.questions) == 3
    assert all(query["filter"][0].count("|") < BATCH for _, query in openalex.questions)
    again = fetch_references(records, cache=tmp_path / "c.jsonl", address=openalex.address)
    assert len(openalex.questions) == 3
    assert list(again.records.references) == list(fetched.records.references)


def test_unknown_works_are_not_asked_for_again(openalex: FakeOpenAlex, tmp_path: Path) -> None:
    records = collection(RecordDetails(doi="10.1000/none"))
    for _ in range(2):
        assert fetch_references(records, cache=tmp_path / "c", address=openalex.address).openalex_ids == [""]
    assert len(openalex.questions) == 1


@pytest.mark.parametrize(
    "fault",
    [
        (429, {"Retry-After": "3"}, b""), (500, {}, b"{}"), (503, {"Retry-After": "soon"}, b""), (403, {}, b""),
        (200, {}, b'{"results": [{"id"'), (200, {}, b"[]"), (200, {}, b'{"results": 1, "meta": {"count": 1}}'),
        (200, {"Content-Length": "1000"}, b"{}"), (200, {}, b"\xff\xfe"), "die",
    ],
)  # fmt: skip
def test_errors_are_retried_with_growing_pauses(openalex: FakeOpenAlex, tmp_path: Path, fault: Reply | str) -> None:
    openalex.add(1, [7], doi="10.1000/a")
    openalex.faults = lambda at: fault if at < 3 else None
    waits: list[float] = []
    records = collection(RecordDetails(doi="10.1000/a"))
    fetched = fetch_references(records, cache=tmp_path / "c", address=openalex.address, sleep=waits.append)
    assert fetched.records.references[0] == ("W7",)
    long = [wait for wait in waits if wait >= 1]
    assert long[:3] == sorted(long[:3])
    assert len(long) == 3
    assert long[0] == (3 if isinstance(fault, tuple) and fault[0] == 429 else 1)


@pytest.mark.parametrize("long", ["86400", formatdate(4e9)])
def test_reached_limit_ends_with_a_sentence(openalex: FakeOpenAlex, tmp_path: Path, long: str) -> None:
    openalex.faults = lambda at: (429, {"Retry-After": long}, b"")
    records = collection(RecordDetails(doi="10.1000/a"))
    with pytest.raises(InputError, match="limit of questions is reached"):
        fetch_references(records, cache=tmp_path / "c", address=openalex.address, sleep=lambda s: None)
    assert len(openalex.questions) == 1


def test_server_that_dies_midway_and_a_second_run(openalex: FakeOpenAlex, tmp_path: Path) -> None:
    for at in range(3 * BATCH):
        openalex.add(1000 + at, [5], doi=f"10.1000/x{at:04d}")
    records = collection(*(RecordDetails(doi=f"10.1000/x{at:04d}") for at in range(3 * BATCH)))
    openalex.faults = lambda at: "die" if at > 1 else None
    with pytest.raises(InputError, match=f"for {2 * BATCH} of {3 * BATCH} works are stored"):
        fetch_references(records, cache=tmp_path / "c", address=openalex.address, sleep=lambda s: None)
    with (tmp_path / "c").open("ab") as file:
        file.write(b'{"works": {"doi:10.1000/x0149": ["W1')  # a kill during a write
    openalex.faults = lambda at: None
    openalex.questions.clear()
    fetched = fetch_references(records, cache=tmp_path / "c", address=openalex.address)
    assert all(cited == ("W5",) for cited in fetched.records.references)
    assert len(openalex.questions) == 1


def test_interrupt_keeps_answers(openalex: FakeOpenAlex, tmp_path: Path) -> None:
    openalex.faults = lambda at: (500, {}, b"") if at else None
    records = collection(*(RecordDetails(doi=f"10.1000/x{at:04d}") for at in range(BATCH + 1)))

    def interrupt(seconds: float) -> None:
        if seconds >= 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch_references(records, cache=tmp_path / "c", address=openalex.address, sleep=interrupt)
    assert len((tmp_path / "c").read_bytes().splitlines()) == 1


def test_incomplete_answers_are_not_taken_for_unknown_works(openalex: FakeOpenAlex, tmp_path: Path) -> None:
    openalex.faults = lambda at: (200, {}, b'{"results": [], "meta": {"count": 3}}')
    with pytest.raises(InputError, match="announces 3 works and sends 0"):
        fetch_references(collection(RecordDetails(doi="10.1000/a")), cache=tmp_path / "c", address=openalex.address)


def test_identifiers_that_cannot_be_listed(openalex: FakeOpenAlex, tmp_path: Path) -> None:
    openalex.add(1, [9], doi="10.1000/a,b")
    openalex.add(2, [9], doi="10.1000/ok")
    openalex.add(3, [9], doi="10.1000/s?x=1&y#z")
    dois = ["10.1000/a,b", "10.1000/c|d", "10.1000/bad", "10.1000/ok", "10.1000/s?x=1&y#z"]
    fetched = fetch_references(
        collection(*(RecordDetails(doi=doi) for doi in dois)), cache=tmp_path / "c", address=openalex.address
    )
    assert fetched.openalex_ids == ["W1", "", "", "W2", "W3"]


def test_several_entries_of_one_doi_and_pages(openalex: FakeOpenAlex, tmp_path: Path) -> None:
    for at in range(BATCH + 5):
        openalex.add(100 + at, [9] if at == BATCH + 3 else [], doi="10.1000/a")
    fetched = fetch_references(
        collection(RecordDetails(doi="10.1000/a")), cache=tmp_path / "c", address=openalex.address
    )
    assert fetched.openalex_ids == [f"W{100 + BATCH + 3}"]
    assert len(openalex.questions) == 2


def test_wrong_address_and_wrong_cache(tmp_path: Path) -> None:
    records = collection(RecordDetails(doi="10.1000/a"))
    with pytest.raises(InputError, match="the address of OpenAlex is 'file:///etc'"):
        fetch_references(records, cache=tmp_path / "c", address="file:///etc")
    (tmp_path / "c").write_text("id,title\n")
    with pytest.raises(InputError, match="line 1: expected answers of OpenAlex, found"):
        fetch_references(records, cache=tmp_path / "c", address="http://127.0.0.1:9")


def test_nothing_to_ask(tmp_path: Path) -> None:
    fetched = fetch_references(collection(RecordDetails()), cache=tmp_path / "c", address="http://127.0.0.1:9")
    assert (fetched.n_asked, fetched.n_references) == (0, 0)
