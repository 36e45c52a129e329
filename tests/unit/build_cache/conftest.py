# SPDX-License-Identifier: Apache-2.0
"""A cache, and the key that signs its entries."""

from collections.abc import Callable
from pathlib import Path

import pytest

from nndeploy.build_cache.entry import Entry
from nndeploy.build_cache.local_cache import LocalCache
from nndeploy.trust.signers import FileSigner, new_key
from nndeploy.trust.trust_store import CODE, TrustedKey, TrustStore


@pytest.fixture
def signer(tmp_path: Path) -> FileSigner:
    return new_key(tmp_path / "farm.key")


@pytest.fixture
def store(signer: FileSigner) -> TrustStore:
    return TrustStore({signer.public.id: TrustedKey(signer.public, "farm", frozenset((CODE,)))})


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def cache(tmp_path: Path, store: TrustStore, signer: FileSigner, said: list[str]) -> LocalCache:
    return LocalCache(tmp_path / "cache", store, signer, said.append)


@pytest.fixture
def build(cache: LocalCache, tmp_path: Path) -> Callable[..., Entry]:
    """Returns a function that puts a build with a file into the cache."""

    def add(content: bytes = b"bundle", near: str = "model", **parts: str) -> Entry:
        path = tmp_path / "built"
        path.write_bytes(content)
        entry = Entry(parts, {"bundle": cache.add_file(path)}, 1.5)
        cache.add(entry, near)
        return entry

    return add
