"""A small client of the pages, without a network: cookies, forms and headers as a browser sends them."""

from __future__ import annotations

import asyncio
import re
from html import unescape

import httpx


class PageClient:
    """
    A browser without a screen.

    app: the application.
    token: of a link that was opened.
    """

    def __init__(self, app, token=None, host="localhost", address="127.0.0.1"):
        self.app, self.host, self.address = app, host, address
        self.cookies = httpx.Cookies()
        if token:
            assert self.get(f"/enter?token={token}").status_code == 200

    def get(self, path, **headers):
        return self.send("GET", path, headers=headers)

    def post(self, path, data=None, files=None, headers=None):
        return self.send(
            "POST", path, data=data, files=files, headers={"sec-fetch-site": "same-origin", **(headers or {})}
        )

    def send(self, method, path, headers=None, **more):
        async def run():
            transport = httpx.ASGITransport(self.app, raise_app_exceptions=False, client=(self.address, 1))
            base = f"http://{self.host}"
            async with httpx.AsyncClient(transport=transport, base_url=base, cookies=self.cookies) as client:
                answer = await client.request(method, path, headers=headers, **more)
                self.cookies = client.cookies
                return answer

        return asyncio.run(run())

    def follow(self, answer):
        assert answer.status_code == 303, answer.text
        return self.get(answer.headers["location"])


def fields(html):
    """Return the hidden fields of the first form of an answer."""
    form = html.partition("data-answer")[2].partition("</form>")[0]
    found = re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', form)
    return {name: unescape(value) for name, value in found}


def words(html):
    """Return the text of a page, without marks."""
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", html.partition("<main")[2] or html)).split())


TEAS = (
    b"name,note,price\nAssam,strong,3\nSencha,green,5\nEarl Grey,with bergamot,4\nDarjeeling,light,6\nRooibos,red,2\n"
)


def answers_of_judges(owner, path):
    """Return the numbers of answers in the owner's table of judges."""
    return re.findall(r'</th>\s*<td class="number">(\d+)</td>', owner.get(path).text.partition('id="judges"')[2])


def new_project(client, kind="compare", files=(("teas.csv", TEAS),)):
    """Make a project and return its path."""
    answer = client.post("/projects", {"kind": kind}, [("files", one) for one in files])
    assert answer.status_code == 303, words(answer.text)
    return answer.headers["location"]
