"""
Requests to the ranking service: valid by the schemas of its addresses, or damaged; sent in process, without a network.

An input is a request: the first line holds method and target, the rest the body. The status of an answer is 2xx, 4xx or
503; a refusal is a JSON object with one sentence; what is accepted is JSON. Every `CHECK_EVERY` accepted requests, the
log is replayed, and must give the bytes that the running learner has committed.
"""

from __future__ import annotations

import asyncio
import atexit
import json
import os
import tempfile
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import quote

import numpy as np

from corank import PDGD, SPD
from corank.deploy.persist.files import model_bytes
from corank_lab.api.app import OPERATIONS, ServiceApp, describe
from corank_lab.api.history import compare_with_replay
from corank_lab.api.log import SCOPES, Keys
from corank_lab.api.models import InterleavedModel
from corank_lab.api.service import Rules, Service
from corank_lab.database.backends import open_database
from fuzz.format import Format, Wrong
from fuzz.mutations import EDGE_INTEGERS, HARD_NUMBERS, ODD_BYTES, ODD_VALUES, mutate, mutate_json

N_FEATURES = 3
CHECK_EVERY = 2000
IDS = [f"l{number}" for number in range(12)]
TEXTS = [
    "tin",
    "red shoes",
    "",
    " ",
    "Über",
    "\x1b[31m",
    "\u2028",
    "\0",
    "🦀",
    "\ud800",
    "x" * 300,
    "bot/2.0",
    "shop/1",
]
CHOICES = {
    "id": IDS, "impression": IDS, "item": [f"i{k}" for k in range(6)],
    "model": ["shop", "old", "test", "none", ""], "user": ["ann", "bob", ""],
    "action": ["click", "purchase", "dwell", "view"],
    "random_state": ["0" * 63 + "1", "f" * 64, "0" * 64, "x"],
}  # fmt: skip
WORDS = [
    *ODD_BYTES, *(word.encode() for word in HARD_NUMBERS[:40]), b"[" * 60, b"[" * 100_000, b'"\\ud800"', b"null", b"{}",
    b'{"a":' * 2000, b"1e999", b"-0",
]  # fmt: skip

DESCRIPTION = describe()
COMPONENTS = DESCRIPTION["components"]["schemas"]
SCHEMAS = {
    about["operationId"]: about["requestBody"]["content"]["application/json"]["schema"]
    for methods in DESCRIPTION["paths"].values()
    for about in methods.values()
    if "requestBody" in about
}


class Requests(Format):
    """Requests to all addresses of the service."""

    name, suffix, share, is_text = "service", ".http", 2.0, True
    sample = b'POST /rank\n{"items": [{"id": "a", "features": [0, 1, 2]}]}'

    def generate(self, rng: Random) -> bytes:
        operation = rng.choice(OPERATIONS[:10] if rng.random() < 0.9 else OPERATIONS)
        name = rng.choice(["shop", "old", "test", "none", "", "é", "a b", "x" * 70, "../x", "%00"])
        target = operation.path.replace("{name}", quote(name, safe="%"))
        if operation.name == "feedback" and rng.random() < 0.1:
            target += rng.choice(["?wait=true", "?wait=false", "?wait", "?x=%ff", "?" + "a" * 500])
        method = operation.method if rng.random() < 0.97 else rng.choice(["GET", "PUT", "DELETE", "HEAD", "POST", "X"])
        body = b""
        if operation.request is not None or rng.random() < 0.05:
            value = valid(SCHEMAS.get(operation.name, {}), rng)
            if rng.random() < 0.3:
                value = mutate_json(value, rng, [*ODD_VALUES, *TEXTS, IDS])
            body = json.dumps(value, ensure_ascii=rng.random() < 0.8).encode(errors="surrogatepass")
            if rng.random() < 0.15:
                body = mutate(body, rng, WORDS)
        key = rng.choice(["", "", "", "", " wrong", " none", " rank"]) if rng.random() < 0.1 else ""
        return f"{method} {target}{key}\n".encode() + body

    def check(self, content: bytes, way: int, folder: Path) -> bool:
        head, _, body = content.partition(b"\n")
        words = head.decode("latin-1").split(" ")
        method, target = words[0], words[1] if len(words) > 1 else "/"
        status, headers, answer = Running.here().send(method, target, " ".join(words[2:]), body)
        kind = headers.get(b"content-type", b"").decode()
        if not (200 <= status < 300 or 400 <= status < 500 or status == 503):
            raise Wrong(f"status {status}", answer[:300])
        if status in (429, 503) and b"retry-after" not in headers:
            raise Wrong(f"{status} without Retry-After", answer[:300])
        if method != "HEAD" and (status >= 300 or kind == "application/json"):
            _require_json(status, answer)
        return status < 300


def _require_json(status: int, answer: bytes) -> None:
    try:
        value = json.loads(answer, parse_constant=lambda name: float(f"not {name}"))
    except ValueError as error:
        raise Wrong("an answer that is not JSON", f"{status}: {error}") from error
    if status < 300:
        return
    sentence = value.get("error", "") if isinstance(value, dict) else ""
    if not 10 < len(sentence) < 600 or "\n" in sentence or not sentence.endswith("."):
        raise Wrong("a refusal without one sentence", f"{status}: {answer[:300]!r}")


def valid(schema: dict[str, Any], rng: Random, name: str = "") -> Any:
    """Return a value that fits a schema, mostly; names of properties choose among values that belong together."""
    if "$ref" in schema:
        return valid(COMPONENTS[schema["$ref"].rpartition("/")[2]], rng, name)
    if "anyOf" in schema:
        return valid(rng.choice(schema["anyOf"]), rng, name)
    if "enum" in schema:
        return rng.choice(schema["enum"])
    kind = schema.get("type")
    if kind == "object":
        properties = schema.get("properties", {})
        required = schema.get("required", ())
        found = {key: valid(one, rng, key) for key, one in properties.items() if key in required or rng.random() < 0.4}
        if schema.get("additionalProperties"):
            found |= {f"f{k}": valid(schema["additionalProperties"], rng) for k in range(1, N_FEATURES + 1)}
        return found
    if kind == "array":
        is_row = "boolean" in [one.get("type") for one in schema["items"].get("anyOf", ())]
        most = N_FEATURES if is_row else rng.choice((1, 2, 3, 5))
        if rng.random() < 0.003:
            most = schema["maxItems"] + rng.choice((0, 1))
        length = most if name == "features" else max(schema.get("minItems", 0), most)
        return [_member(schema["items"], rng, at) for at in range(length)]
    if kind == "number" or kind == "integer":
        choice = rng.random()
        if choice < 0.9:
            low = schema.get("minimum", -5)
            return rng.randrange(int(low), int(low) + 10) if kind == "integer" else round(rng.uniform(low, 5), 3)
        return rng.choice(EDGE_INTEGERS) if choice < 0.95 else rng.choice((1e308, -1e308, 1e-320, 0.1))
    if kind == "boolean":
        return rng.random() < 0.5
    if kind == "string":
        return rng.choice(CHOICES.get(name, TEXTS) if rng.random() < 0.95 else TEXTS)
    return rng.choice([*ODD_VALUES[:20], 1.0, "7"])


def _member(schema: dict[str, Any], rng: Random, at: int) -> Any:
    """Return an element of a list; items of one request have different ids, mostly."""
    found = valid(schema, rng)
    if rng.random() < 0.97:
        if isinstance(found, dict) and "id" in found:
            found["id"] = f"i{at}"
        elif schema.get("type") == "string":
            found = f"i{at}"
    return found


class Running:
    """A service of this process. Training is not started: it is a process of its own."""

    _of_process: tuple[int, Running] | None = None

    @classmethod
    def here(cls) -> Running:
        """Return the service of this process; a forked worker has its own."""
        if cls._of_process is None or cls._of_process[0] != os.getpid():
            cls._of_process = (os.getpid(), cls())
        return cls._of_process[1]

    def __init__(self) -> None:
        stack = ExitStack()
        memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        folder = stack.enter_context(tempfile.TemporaryDirectory(dir=memory, ignore_cleanup_errors=True))
        store = stack.enter_context(open_database(Path(folder) / "corank.db"))
        self._service = Service(store, Rules(window_seconds=1.0))
        registry, online = self._service.registry, PDGD(random_state=0)
        online._begin(np.zeros((1, N_FEATURES)), None)
        registry.add("shop", "online", model_bytes(online), {})
        registry.add("old", "fixed", model_bytes(SPD().fit(np.eye(N_FEATURES), [1, 0, 2])), {})
        registry.add("test", "interleaved", InterleavedModel.start(("shop", 1), ("old", 1), registry.model), {})
        keys = Keys(store, 1e9)
        self._keys = {"": keys.add("all", SCOPES), "rank": keys.add("rank", ["rank"]), "wrong": "x.y"}
        app = ServiceApp(self._service, keys)
        self._app, self._loop, self._n_accepted = app.asgi, asyncio.new_event_loop(), 0
        self._service.start()
        stack.callback(self._service.close)
        atexit.register(stack.close)

    def send(self, method: str, target: str, key: str, body: bytes) -> tuple[int, dict[bytes, bytes], bytes]:
        """Return status, headers and body of the answer."""
        answer = self._loop.run_until_complete(self._send(method, target, key, body))
        self._n_accepted += answer[0] < 300
        if self._n_accepted % CHECK_EVERY == CHECK_EVERY - 1:
            self._n_accepted += 1
            self._require_replay()
        return answer

    async def _send(self, method: str, target: str, key: str, body: bytes) -> tuple[int, dict[bytes, bytes], bytes]:
        path, _, query = target.partition("?")
        headers = [(b"content-length", b"%d" % len(body))]
        if key != "none":
            headers.append((b"authorization", f"Bearer {self._keys.get(key, key)}".encode("latin-1")))
        scope = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "scheme": "http",
            "path": path, "raw_path": path.encode("latin-1"), "query_string": query.encode("latin-1"),
            "root_path": "", "headers": headers, "client": ("127.0.0.1", 1), "server": ("localhost", 80),
        }  # fmt: skip
        sent: list[Any] = []
        waiting = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive() -> Any:
            return waiting.pop() if waiting else {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            sent.append(message)

        try:
            await self._app(scope, receive, send)
        except Exception:  # Starlette answers with 500, then raises again
            if not sent:
                raise
        content = b"".join(one.get("body", b"") for one in sent[1:])
        return sent[0]["status"], dict(sent[0]["headers"]), content

    def _require_replay(self) -> None:
        last = self._service.log.last_number()
        self._service.learner.reached(last).result(60)
        different, _, number = compare_with_replay(self._service.log)
        if different or number < last:
            raise Wrong("a replay of the log differs", f"{different}, {number} of {last} events")
