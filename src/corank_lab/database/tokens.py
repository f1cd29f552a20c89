"""
Secrets of links and keys: 256 random bits, of which only the hash is stored.

A random secret of this length needs neither salt nor a slow hash. A comparison takes the same time for every wrong one.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets


def new_secret() -> str:
    """Return a secret."""
    return secrets.token_urlsafe(32)


def hash_secret(secret: str) -> str:
    """Return the hash to store."""
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


def is_secret(secret: str, expected: str | None) -> bool:
    """Return whether a secret has the stored hash; None for an unknown id, which takes as long."""
    is_equal = hmac.compare_digest(hash_secret(secret), expected or hash_secret(""))
    return is_equal and expected is not None
