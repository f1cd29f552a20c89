"""A ranking service to test with."""

from __future__ import annotations

import asyncio
import contextlib

import httpx
import numpy as np

from corank import PDGD
from corank.deploy.persist.files import model_bytes
from corank_lab.api.app import ServiceApp
from corank_lab.api.log import SCOPES, Keys
from corank_lab.api.service import Rules, Service


class ServiceClient:
    """
    A client of a service in this process, without a network.

    app: the application.
    token: its key.
    """

    def __init__(self, app, token):
        self.app, self.service = app, app.service
        self.headers = {"authorization": f"Bearer {token}"}
        self._loop = asyncio.new_event_loop()
        transport = httpx.ASGITransport(app.asgi, raise_app_exceptions=False)
        self._client = httpx.AsyncClient(transport=transport, base_url="http://localhost")

    def send(self, method, path, **more):
        return self._loop.run_until_complete(self._client.request(method, path, **{"headers": self.headers, **more}))

    def get(self, path, **more):
        return self.send("GET", path, **more)

    def post(self, path, value=None, **more):
        return self.send("POST", path, **({"json": value} if value is not None else {}), **more)

    def wait_for(self, future):
        """Run the loop until something is done, such as a training."""
        return self._loop.run_until_complete(future)

    def close(self):
        self._loop.run_until_complete(self._client.aclose())
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()


def online_bytes(n_features=3, ranker=None, *, prior=False):
    """The state of an online ranker that has learnt nothing."""
    ranker = ranker or PDGD(random_state=0)
    ranker._begin(np.zeros((1, n_features)), [0.0] if prior else None)
    return model_bytes(ranker)


@contextlib.contextmanager
def running(store, rules=None, *, models=(), rate=1e6):
    """
    A client of a service that runs in this process.

    models: name, kind and state of models to add.
    """
    service = Service(store, rules or Rules())
    for name, kind, content in models:
        service.registry.add(name, kind, content, {})
    keys = Keys(store, rate)
    client = ServiceClient(ServiceApp(service, keys), keys.add("test", SCOPES))
    service.start()
    try:
        yield client
    finally:
        client.close()
        service.close()


def ask(n=4, d=3, seed=0, **more):
    """A request for a ranking of n items with d features."""
    X = np.random.default_rng(seed).standard_normal((n, d)).round(3)
    return {"items": [{"id": f"item{at}", "features": row.tolist()} for at, row in enumerate(X)], **more}
