"""Pages of a screening: the summary of the import, conflicts of judges, the report, and similar records."""

from __future__ import annotations

from typing import Any

from starlette.exceptions import HTTPException
from starlette.responses import Response

from corank.errors import InputError
from corank_lab.database.connections import DatabaseError
from corank_lab.pages.markup import one_line, record_values, rich
from corank_lab.pages.screening.results import agreement_rows
from corank_lab.pages.screening.workspace import MAX_REASONS, ScreenWorkspace
from corank_lab.pages.site import PageRequest
from corank_lab.records.summary import summarise
from corank_lab.screening.answers import find_conflicts
from corank_lab.screening.reporting.methods import methods_paragraph

MAX_GROUPS = 200
MAX_SETTLED = 100


def import_summary(page: PageRequest) -> Response:
    """Show what was read: records of each file, missing fields, groups of duplicates, labels."""
    workspace = _screening(page)
    records, unique = workspace.everything, workspace.session.unique
    result = summarise(records, unique.groups)
    groups = unique.groups.groups if unique.groups is not None else []
    shown = [
        {
            "item": records.ids[group.representative],
            "evidence": "; ".join(group.evidence),
            "members": [_member(workspace, number, number == group.representative) for number in group.members],
        }
        for group in groups[:MAX_GROUPS]
    ]
    return page.render(
        "screen_import.html", table=result.table(), sentences=result.sentences(), groups=shown, n_groups=len(groups),
        n_labels=result.n_relevant + result.n_irrelevant, use_labels=workspace.setting("use_labels"),
    )  # fmt: skip


def conflicts(page: PageRequest) -> Response:
    """Show the next record on which judges disagree, with their answers, and those that were settled."""
    workspace = _screening(page)
    with workspace.lock:
        session = workspace.session
        left = session.unsettled
        conflicts = set(find_conflicts(session.judges, settled=True))
        settled = [(number, entry) for number, entry in session.settled.items() if number in conflicts]
        result: dict[str, Any] = {}
        if left:
            number = left[0]
            result = {
                "record": record_values(session.unique, number, workspace.words),
                "item": session.records.ids[number],
                "verdicts": session.verdicts(number),
                "client_id": f"settle-{workspace.last}-{number}",
            }
        rows = [
            {"item": session.records.ids[number], "title": one_line(session.records.titles[number]), "entry": entry}
            for number, entry in reversed(settled[-MAX_SETTLED:])
        ]
    return page.render(
        "screen_conflicts.html", n_left=len(left), n_settled=len(settled), rows=rows, last=workspace.last,
        reasons=list(enumerate(workspace.reasons[:MAX_REASONS], 1)), criteria=rich(workspace.setting("criteria")),
        found=result,
    )  # fmt: skip


def report(page: PageRequest) -> Response:
    """Show the PRISMA numbers and diagram, the methods paragraph and the agreement."""
    workspace = _screening(page)
    facts = workspace.results.facts()
    agreement = workspace.results.agreement()
    return page.render(
        "screen_report.html", counts=facts.counts.table(), methods=methods_paragraph(facts), number=workspace.last,
        pairs=agreement_rows(agreement), n_conflicts=agreement.n_conflicts, n_settled=agreement.n_settled,
        forecast=workspace.session.advice,
    )  # fmt: skip


def similar(page: PageRequest) -> Response:
    """Show the records of which a record may be a duplicate."""
    workspace = _screening(page)
    try:
        result = workspace.similar(page.me.name, page.request.query_params.get("item", ""))
    except DatabaseError:
        raise
    except InputError:
        raise HTTPException(404) from None
    return page.render("screen_similar.html", **result)


def _screening(page: PageRequest) -> ScreenWorkspace:
    workspace = page.workspace
    if not isinstance(workspace, ScreenWorkspace):
        raise HTTPException(404)
    return workspace


def _member(workspace: ScreenWorkspace, number: int, is_judged: bool) -> dict[str, Any]:
    records = workspace.everything
    details = records.details[number]
    return {
        "title": one_line(records.titles[number], 200) or records.ids[number],
        "about": " · ".join(filter(None, [str(details.year or ""), one_line(details.journal, 80), details.source])),
        "is_judged": is_judged,
    }
