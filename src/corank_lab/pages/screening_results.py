"""Results of a screening project: exports, report, and a certificate with everything that its check needs."""

from __future__ import annotations

import io
import json
import re
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from corank.errors import InputError
from corank_lab.database.journal import entry_values, project_logs
from corank_lab.pages.workspaces import Export
from corank_lab.records.writer import EXCEL
from corank_lab.screening.certificate import make_certificate
from corank_lab.screening.export import export_screening
from corank_lab.screening.methods import ScreeningAgreement, ScreeningFacts, methods_paragraph, screening_agreement
from corank_lab.screening.prisma import flow_diagram
from corank_lab.screening.project import ScreeningPlan
from corank_lab.screening.report import certificate_files, screening_facts, settled_answers, table_csv
from corank_lab.screening.team import KNOWN, RECORDS

if TYPE_CHECKING:
    from corank_lab.pages.screening import ScreenWorkspace

FORMATS = {
    "ris": ("RIS", "application/x-research-info-systems", ".ris"),
    "csv": ("CSV", "text/csv", ".csv"),
    "excel": ("Excel", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", EXCEL),
}
"""Name, media type and suffix of the formats of an export."""
PARTS = {
    "all": "All records", "included": "Included", "excluded": "Excluded", "conflicts": "In conflict",
    "unread": "Unread", "copies": "All, duplicates too",
}  # fmt: skip
"""Records of an export."""
_RECORD_FILE = re.compile(r"records/(\d{1,6})/([^/]+)", flags=re.ASCII)


class Results:
    """Files and figures of a screening project."""

    def __init__(self, workspace: ScreenWorkspace) -> None:
        self._workspace = workspace

    @property
    def exports(self) -> Mapping[str, Export]:
        """Files to save, by name."""
        parts = {
            f"{name}-{part}": Export(
                label, f"{part}{suffix}", media_type,
                self._records("all" if part == "copies" else part, suffix, all_copies=part == "copies"),
            )
            for part in PARTS
            for name, (label, media_type, suffix) in FORMATS.items()
        }  # fmt: skip
        return parts | {
            "log": Export(
                "Log of answers (JSON lines)", "log.jsonl", "application/jsonl", lambda: b"".join(self._logs().values())
            ),
            "methods": Export(
                "Methods paragraph (text)", "methods.txt", "text/plain", lambda: methods_paragraph(self.facts()) + "\n"
            ),
            "prisma": Export(
                "PRISMA numbers (CSV)", "prisma.csv", "text/csv", lambda: table_csv(self.facts().counts.table())
            ),
            "diagram": Export(
                "PRISMA flow diagram (SVG)", "prisma.svg", "image/svg+xml", lambda: flow_diagram(self.facts().counts)
            ),
            "agreement": Export(
                "Agreement of judges (CSV)", "agreement.csv", "text/csv", lambda: table_csv(self.agreement().table())
            ),
            "certificate": Export(
                "Certificate with records and logs (ZIP)", "certificate.zip", "application/zip", self._certificate
            ),
        }

    def agreement(self) -> ScreeningAgreement:
        """Return how far the judges agree."""
        with self._workspace.lock:
            return screening_agreement(self._workspace.session.judges)

    def facts(self) -> ScreeningFacts:
        """Return what is known about the screening; without an answer, all records are unread."""
        agreement = self.agreement()
        with self._workspace.lock:
            session = self._workspace.session
            session.answers_of(self._workspace.any_judge)
            plan = ScreeningPlan.stored(self._workspace.project.settings)
            return screening_facts(session.unique, session.judges, agreement, plan)

    def _records(self, only: str, suffix: str, *, all_copies: bool = False) -> Callable[[], bytes]:
        def content() -> bytes:
            with self._workspace.lock:
                unique = self._workspace.session.unique
                settled = settled_answers(unique, self._workspace.session.judges)
            with tempfile.TemporaryDirectory(prefix="corank-") as folder:
                path = Path(folder, f"records{suffix}")
                try:
                    export_screening(
                        path, unique.everything, settled, groups=unique.groups, only=only, all_copies=all_copies
                    )  # fmt: skip
                except InputError as error:
                    raise InputError(str(error).replace(str(path), "the file")) from None
                return path.read_bytes()

        return content

    def _logs(self) -> dict[str, bytes]:
        """Return the journal of each judge, as the terminal writes it; labels of the file are one of them."""
        lines: list[str] = []
        with self._workspace.lock:
            known = self._workspace.session.judges.get(KNOWN)
            for entry in known.current.values() if known is not None else ():
                number = self._workspace.session.unique.find(entry.id)
                whole = entry if number is None else entry.about(self._workspace.session.unique, number)
                lines.append(json.dumps({**entry_values(whole), "judge": KNOWN}) + "\n")
        logs = project_logs(self._workspace.store, self._workspace.project.id)
        if lines:
            logs[KNOWN] = "".join(lines).encode() + logs.get(KNOWN, b"")
        return logs

    def _certificate(self) -> bytes:
        """Return an archive with certificate, files of records and journals, as `corank screen verify` needs it."""
        store, project = self._workspace.store, self._workspace.project
        plan = ScreeningPlan.stored(project.settings)
        files = []
        for name in store.file_names(project.id):
            parts = _RECORD_FILE.fullmatch(name)
            if parts is not None:
                files.append((int(parts[1]), name, parts[2]))
            elif name.startswith(RECORDS):
                raise InputError(f"the project has a file {name!r:.80}, which corank does not name so; import it anew.")
        if not files:
            raise InputError("the project keeps no files of records; open it with corank screen FILE --page first.")
        # names of files and of judges come from outside: they are data, and the files have numbers
        logs, contents, titles = dict(sorted(self._logs().items())), {}, {}
        for number, (_, name, title) in enumerate(sorted(files), 1):
            place = f"records/{number}{_suffix(title)}"
            contents[place], titles[place] = (store.file(project.id, name) or ("", b""))[1], title
        with tempfile.TemporaryDirectory(prefix="corank-") as folder:
            paths = [Path(folder, place) for place in contents]
            paths[0].parent.mkdir()
            for path, content in zip(paths, contents.values(), strict=True):
                path.write_bytes(content)
            try:
                made = make_certificate(paths, logs, plan=plan)
            except InputError as error:
                raise InputError(str(error).replace(f"{folder}/", "")) from None
        for number, (judge, lines) in enumerate(logs.items(), 1):
            contents[f"answers/{number}.jsonl"], titles[f"answers/{number}.jsonl"] = lines, judge
        contents["names.json"] = json.dumps(titles, indent=1, ensure_ascii=False).encode()
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in sorted({**contents, **certificate_files(made)}.items()):
                archive.writestr(name, content)
        return out.getvalue()


def _suffix(name: str) -> str:
    """Return the suffixes of a file name in plain letters, such as .csv.gz; they say how to read it."""
    result = re.search(r"(\.[a-z]{2,8})?\.[a-z]{2,8}$", name.lower())
    return result.group() if result else ""


def agreement_rows(agreement: ScreeningAgreement) -> list[dict[str, Any]]:
    """Return the agreement for a page."""
    return [
        {
            "judges": f"{pair.first}, {pair.second}", "question": pair.question, "both": pair.n_both,
            "same": pair.n_same, "kappa": _number(pair.kappa), "low": _number(pair.low), "high": _number(pair.high),
        }
        for pair in agreement.pairs
    ]  # fmt: skip


def _number(value: float) -> str:
    return "–" if value != value else f"{round(value, 2) + 0.0:.2f}".replace("-", "−")
