# SPDX-License-Identifier: Apache-2.0
"""The page on the format names every field that there is, and the limits that the code has."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nndeploy.bundle import container, manifest_json, reader
from nndeploy.files import strict_json
from nndeploy.values.types import DTYPES

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "reference" / "bundle.md").read_text(encoding="utf-8")
SCHEMA = json.loads((ROOT / "nndeploy" / "bundle" / "manifest.schema.json").read_text(encoding="utf-8"))


def fields_of(schema: Any) -> Iterator[str]:
    for key, item in schema.items() if isinstance(schema, dict) else enumerate(schema):
        if key == "properties":
            yield from item
        if isinstance(item, dict | list):
            yield from fields_of(item)


@pytest.mark.parametrize("field", sorted(set(fields_of(SCHEMA))))
def test_names_the_field(field: str) -> None:
    assert f"`{field}`" in PAGE


def test_names_every_element_type() -> None:
    ranges = {"int16", "int32", "uint16", "uint32"}
    assert all(f"`{dtype}`" in PAGE for dtype in set(DTYPES) - ranges)


@pytest.mark.parametrize(("text", "number"), [
    ("1 to 4,096 members", container.MAX_MEMBERS == 4096),
    ("1 to 5 segments", container.MAX_FOLDERS == 4),
    ("at most 255 bytes", container.MAX_NAME_BYTES == 255),
    ("data of 4,096 bytes and more", container.LARGE_MEMBER_BYTES == 4096),
    ("on a multiple of 4,096, others on a multiple of 64", container.LARGE_ALIGNMENT == 64 * 64),
    ("at most 4 MiB", manifest_json.MAX_MANIFEST_BYTES == 4 << 20),
    ("at most 4 MiB", reader.MAX_SIGNATURE_BYTES == 4 << 20),
    ("more than 32 levels", strict_json.MAX_DEPTH == 32),
])  # fmt: skip
def test_states_the_limit_that_the_code_has(text: str, number: bool) -> None:
    assert text in PAGE
    assert number
