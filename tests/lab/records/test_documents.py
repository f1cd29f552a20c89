"""Documents of a lawsuit: e-mails, mailboxes, load files and folders."""

from __future__ import annotations

import csv
import mailbox
from email.message import EmailMessage

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from corank.errors import InputError
from corank_lab.records import documents
from corank_lab.records.documents import is_mail, load_file_text, parse_load_file, parse_mail
from corank_lab.records.records import read_records
from corank_lab.records.writer import write_records
from corank_lab.screening import Screening


def message(subject, body, id, *, reply_to="", attachments=()):
    email = EmailMessage()
    email["From"], email["To"], email["Subject"] = "Ann Lee <ann@example.org>", "ben@example.org", subject
    email["Date"], email["Message-ID"] = "Tue, 3 Apr 2001 10:15:00 +0200", f"<{id}>"
    if reply_to:
        email["In-Reply-To"] = f"<{reply_to}>"
    email.set_content(body)
    for name, content in attachments:
        email.add_attachment(content, filename=name)
    return email


def test_an_email_and_its_attachments_are_a_family(tmp_path):
    path = tmp_path / "a.eml"
    attachments = [("prices.txt", "Tin costs more."), ("scan.pdf", b"%PDF-1.4")]
    attachments[1] = ("scan.txt", "A second list.")
    path.write_bytes(bytes(message("Prices – März", "See the list.", "m1@x", attachments=attachments)))
    records = read_records(path)
    assert list(records.ids) == ["m1@x", "m1@x.1", "m1@x.2"]
    assert list(records.titles) == ["Prices – März", "prices.txt", "scan.txt"]
    assert [text.strip() for text in records.abstracts] == ["See the list.", "Tin costs more.", "A second list."]
    assert records.details[0].year == 2001
    assert {fields["Family"][0] for fields in records.fields} == {"m1@x"}
    assert records.sources[0].format == "e-mail"


def test_a_mailbox_as_python_writes_it_has_threads(tmp_path):
    box = mailbox.mbox(tmp_path / "box.mbox")
    for one in (
        message("Tin", "First.\n\nFrom here on, tin is dear.", "m1@x"),
        message("Re: Tin", "Second.", "m2@x", reply_to="m1@x"),
        message("Gold", "Third.", "m3@x"),
    ):
        box.add(mailbox.mboxMessage(one))
    box.close()
    records = read_records(tmp_path / "box.mbox")
    assert list(records.titles) == ["Tin", "Re: Tin", "Gold"]
    assert [fields["Thread"][0] for fields in records.fields] == ["m1@x", "m1@x", "m3@x"]
    assert records.abstracts[0].splitlines()[-1] == "From here on, tin is dear."
    assert list(read_records(tmp_path).titles) == ["Tin", "Re: Tin", "Gold"]


def test_a_folder_of_custodians(tmp_path):
    (tmp_path / "Lee").mkdir()
    (tmp_path / "Lee" / "memo.txt").write_text("Memo on tin\nThe price rose.", encoding="utf-8")
    (tmp_path / "Lee" / "a.eml").write_bytes(bytes(message("Tin", "Body.", "m1@x")))
    (tmp_path / "picture.jpg").write_bytes(b"\xff\xd8")
    records = read_records(tmp_path)
    assert list(records.ids) == ["m1@x", "Lee/memo.txt"]
    assert records.titles[1] == "Memo on tin"
    assert [fields["Custodian"][0] for fields in records.fields] == ["Lee", "Lee"]
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"is a folder without \.eml, \.mbox, \.txt files"):
        read_records(tmp_path / "empty")


def test_a_load_file_is_read_as_it_is_written(tmp_path):
    rows = [
        ["BEGDOC", "BEGATTACH", "SUBJECT", "EXTRACTEDTEXT"],
        ["A1", "A1", "Tin", 'One\ntwo, "three"'],
        ["A2", "A1", "List", "x"],
    ]
    (tmp_path / "load.dat").write_text(load_file_text(rows), encoding="utf-8", newline="")
    records = read_records(tmp_path / "load.dat")
    assert list(records.ids) == ["A1", "A2"]
    assert records.abstracts[0] == 'One\ntwo, "three"'
    assert records.sources[0].format == "Concordance load file"
    write_records(tmp_path / "decided.dat", records, np.array([1.0, np.nan]), {"tags": ["privileged", ""]})
    again = read_records(tmp_path / "decided.dat")
    assert (list(again.ids), list(again.abstracts)) == (list(records.ids), list(records.abstracts))
    assert again.labels[0] == 1
    assert np.isnan(again.labels[1])
    assert again.fields[0]["tags"] == ["privileged"]


def test_a_family_is_read_together(tmp_path):
    rows = [["BEGDOC", "BEGATTACH", "SUBJECT", "BODY"]]
    rows += [[f"A{n}", f"A{n // 3 * 3}", f"Subject {n}", f"tin {n} word{n % 7}"] for n in range(30)]
    (tmp_path / "load.dat").write_text(load_file_text(rows), encoding="utf-8", newline="")
    screening = Screening(read_records(tmp_path / "load.dat"), known=["A0"])
    shown = []
    for _ in range(12):
        shown.append(screening.next())
        screening.answer(shown[-1], relevant=False)
    families = np.array(shown) // 3
    assert np.count_nonzero(np.diff(families)) == len(set(families)) - 1


@pytest.mark.parametrize(
    "text", ["From: x\n\nbody", "Subject matters\nFrom here", "TY  - JOUR\nTI  - From: a\nER  - \n"]
)
def test_other_texts_are_not_emails(tmp_path, text):
    (tmp_path / "a.txt").write_text(text, encoding="utf-8")
    assert not is_mail((tmp_path / "a.txt").read_bytes())


@pytest.mark.parametrize(
    "date", ["Mon, 1 Jan 99999999999999 00:00:00 +0000", "Mon, 1 Jan 2024 00:00:00 +99999999999999"]
)
def test_an_impossible_date_is_none(date):
    (record,) = parse_mail(f"From: a\nSubject: b\nDate: {date}\n\nbody".encode(), "a.eml").records
    assert not any(record.get("Date sent", ()))


def test_lines_that_begin_mailboxes_are_not_nested():
    assert not is_mail(b"From a 2020\n" * 3000)


def test_nesting_that_is_too_deep_is_refused():
    with pytest.raises(InputError, match="too deep"):
        parse_mail(b"From: a\n" + b"Content-Type: message/rfc822\n\n" * 1500 + b"Subject: b\n\nbody", "a.eml")


@pytest.mark.parametrize(
    "header", [
        "To: " + "(" * 3000, "To: " + '"' * 32_000, "To: \nContent-Disposition: base64)],",
        "Content-Type: ]\\:=\nContent-Disposition: @text\0;.*",
    ],
)  # fmt: skip
def test_damaged_headers_are_plain_texts(header):
    (record,) = parse_mail(f"From: a\nSubject: b\n{header}\n\nbody".encode(), "a.eml").records
    assert record["Subject"] == ["b"]
    assert record["Body"] == ["body"]
    assert parse_mail(b"From: a\nSubject: b\nContent-Type: multipart/mixed; charset=\0\n\nbody", "a.eml").records


def test_long_headers_are_cut_visibly():
    (record,) = parse_mail(b"From: a\nSubject: " + b"b" * 100_000 + b"\n\nbody", "a.eml").records
    subject = record["Subject"][0]
    assert subject.endswith("b ...")
    assert len(subject) == documents.MAX_HEADER + 4


def test_html_is_read_as_browsers_do():
    body = b"<style>x</style>1 < 2 <b>bold</b><script>unclosed"
    (record,) = parse_mail(b"From: a\nSubject: b\nContent-Type: text/html\n\n" + body, "a.eml").records
    assert record["Body"][0].split() == ["1", "<", "2", "bold"]


def test_the_encoding_of_host_names_is_none_of_texts():
    content = b"From: a\nSubject: b\nContent-Type: text/plain; charset=punycode\n\nbo-dy"
    assert parse_mail(content, "a.eml").records[0]["Body"] == ["bo-dy"]


def test_links_that_leave_a_folder_are_refused(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "a.txt").write_text("A text.")
    (folder / "b.txt").symlink_to(folder / "a.txt")
    assert len(documents.load_folder(folder).content.splitlines()) == 3
    (tmp_path / "secret.txt").write_text("Not in the folder.")
    (folder / "c.txt").symlink_to(tmp_path / "secret.txt")
    with pytest.raises(InputError, match="outside the folder"):
        documents.load_folder(folder)


def test_headers_that_attachments_repeat_count(tmp_path, monkeypatch):
    content = "From: a\nTo: " + "t" * 900 + "\nSubject: b\nContent-Type: multipart/mixed; boundary=b\n\n"
    (tmp_path / "a.eml").write_text(content + "--b\n\nx\n" * 100)
    monkeypatch.setattr(documents, "MAX_BYTES", 20_000)
    with pytest.raises(InputError, match="pass smaller folders"):
        documents.load_folder(tmp_path)


def test_a_line_break_inside_a_value_of_a_load_file_begins_no_document():
    text = load_file_text([["id", "text"], ["1", "a-b"], ["2", "c"]]).replace("-", "\n")
    parsed = parse_load_file(text, "a.dat")
    assert [record["text"] for record in parsed.records] == [["a\nb"], ["c"]]
    assert parsed.places[1].endswith("line 4")


def with_images(folder, rows):
    """Write a load file of the documents, and the rows as the Opticon file beside it."""
    ids = [row[0] for row in rows if row[3]]
    table = [
        ["BEGDOC", "SUBJECT", "BODY"],
        *([id, f"Subject {id}", "Tin."] for id in ids),
        ["none", "No image", "Tin."],
    ]
    (folder / "load.dat").write_text(load_file_text(table), encoding="utf-8", newline="")
    with (folder / "load.opt").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(rows)
    return folder / "load.dat"


def test_pages_and_images_of_an_opticon_file(tmp_path):
    rows = [
        ["A1", "VOL1", r"D:\IMAGES\001\A1.TIF", "Y", "", "", "3"], ["A2", "VOL1", r"..\..\A2.TIF", "", "", "", ""],
        ["A3", "", "/etc/passwd", "", "", "", ""], ["A4", "VOL1", "A4, second.pdf", "Y", "", "", "29"],
        ["A5", "VOL1", "A5.TIF", "Y", "", "", ""], ["A6", "VOL1", "A6.TIF", "", "", "", ""],
    ]  # fmt: skip
    path = with_images(tmp_path, rows)
    with (tmp_path / "load.opt").open("a", encoding="utf-8") as file:
        file.write("\n\n")
    records = read_records(path)
    assert [fields.get("Page Count") for fields in records.fields] == [["3"], ["29"], ["2"], None]
    assert records.sources[0].remarks[-1].endswith("load.opt lists images of 3 documents; 3 of them are in this file.")
    write_records(tmp_path / "part.opt", records.take([2, 0]))
    with (tmp_path / "part.opt").open(newline="") as file:
        assert list(csv.reader(file)) == [*rows[4:], *rows[:3]]


CELL = st.text(
    st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"], exclude_characters="\u00ae\u00fe"), max_size=12
)
HOSTILE = st.sampled_from(
    ["../../secret.opt", "/etc/passwd", "C:\\x.tif", "=1+1", '"', 'a "b", c', "~/x", "\\\\host\\x"]
)
DOCUMENT = st.lists(st.tuples(CELL, CELL | HOSTILE, CELL, CELL), min_size=1, max_size=3)


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(DOCUMENT, min_size=1, max_size=4))
def test_images_are_written_as_they_were_read(tmp_path, documents):
    rows = [
        [f"D{i}.{k}", volume, path, "Y" if k == 0 else "", folder, box, str(len(pages)) if k == 0 else ""]
        for i, pages in enumerate(documents)
        for k, (volume, path, folder, box) in enumerate(pages)
    ]
    records = read_records(with_images(tmp_path, rows))
    before = sorted(item.name for item in tmp_path.iterdir() if not item.name.startswith("again"))
    assert before == ["load.dat", "load.opt"]  # no path of the file was made
    assert [int(fields["Page Count"][0]) for fields in records.fields[:-1]] == list(map(len, documents))
    write_records(tmp_path / "again.opt", records, overwrite=True)
    with (tmp_path / "again.opt").open(encoding="utf-8", newline="") as file:
        assert list(csv.reader(file)) == rows
    write_records(tmp_path / "again.dat", records, overwrite=True)  # the images are a column of it
    (tmp_path / "again.opt").unlink()
    write_records(tmp_path / "again.opt", read_records(tmp_path / "again.dat"))
    with (tmp_path / "again.opt").open(encoding="utf-8", newline="") as file:
        assert list(csv.reader(file)) == rows
    (tmp_path / "again.opt").unlink()


def test_other_files_are_no_image_load_files(tmp_path):
    path = with_images(tmp_path, [["A1", "V", "a.tif", "Y", "", "", "1"]])
    (tmp_path / "load.opt").write_text("A1,V,a.tif,N\n")
    with pytest.raises(InputError, match=r"load\.opt, line 1: .*A1,V,a\.tif,N"):
        read_records(path)
    (tmp_path / "load.opt").unlink()
    with pytest.raises(InputError, match=r"no record has images"):
        write_records(tmp_path / "x.opt", read_records(path))
    (tmp_path / "load.opt").symlink_to("/etc/passwd")
    with pytest.raises(InputError, match="is a link"):
        read_records(path)
