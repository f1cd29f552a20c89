"""Pages of train and compare: the button, and the report."""

from __future__ import annotations

from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, Response

from corank.errors import InputError
from corank_lab.pages.grading.training import REPORT
from corank_lab.pages.grading.workspace import GradeWorkspace
from corank_lab.pages.pages_owner import show_overview
from corank_lab.pages.site import PageRequest


def train(page: PageRequest) -> Response:
    """Compare rankers on the grades so far."""
    workspace = _grading(page)
    try:
        workspace.train()
    except InputError as error:
        return show_overview(page, error=str(error), status=422)
    return page.go(f"/p/{page.here.id}#train")


def report(page: PageRequest) -> Response:
    """Show the report of the last comparison: a page with its own style and without scripts."""
    from corank.comparison import CONTENT_POLICY

    _grading(page)
    found = page.site.store.file(page.here.id, REPORT)
    if found is None:  # such as the address of the form, opened again
        return page.go(f"/p/{page.here.id}#train")
    # the sandbox gives the page an origin of its own
    policy = f"{CONTENT_POLICY}; frame-ancestors 'none'; sandbox allow-popups"
    return HTMLResponse(found[1], headers={"Content-Security-Policy": policy})


def _grading(page: PageRequest) -> GradeWorkspace:
    workspace = page.workspace
    if not isinstance(workspace, GradeWorkspace):
        raise HTTPException(404)
    return workspace
