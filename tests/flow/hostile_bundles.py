# SPDX-License-Identifier: Apache-2.0
"""Bundles of an attacker, whose hashes and checksums are right: the manifest is changed, members are replaced."""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from c_library import library_from_source

from nndeploy.bundle.container import encode_container
from nndeploy.bundle.manifest_json import encode_manifest
from nndeploy.bundle.reader import open_bundle
from nndeploy.files.strict_json import canonical_json

Edit = Callable[[dict[str, Any]], object]

CANARY = """
#include <stdio.h>
__attribute__((constructor)) static void sing(void) {{
  FILE *file = fopen("{path}", "w");
  if (file) {{ fputs("it ran", file); fclose(file); }}
}}
"""


def repacked(path: Path, out: Path, edit: Edit | None = None, members: Mapping[str, bytes] | None = None) -> Path:
    """Writes the bundle at `path` to `out`, its manifest changed by `edit`, `members` added or put in place."""
    with open_bundle(path) as bundle:
        contents = {name: bytes(bundle.member(name)) for name in bundle.manifest.members}
        manifest = json.loads(encode_manifest(replace(bundle.manifest, compressed={})))
    contents.update(members or {})
    manifest["members"] = {
        name: {"sha256": hashlib.sha256(data).hexdigest(), "size_bytes": len(data)} for name, data in contents.items()
    }
    if edit is not None:
        edit(manifest)
    out.write_bytes(b"".join(encode_container({**contents, "manifest.json": canonical_json(manifest)})))
    return out


def with_variant(backend: str, files: Mapping[str, str], metadata: Mapping[str, Any], *, native_code: bool) -> Edit:
    """Returns an edit that lets the first submodel run on a backend's files alone: its file name -> member."""

    def edit(manifest: dict[str, Any]) -> None:
        (variant, *_) = manifest["submodels"][0]["variants"]
        variant |= {
            "id": f"v-{backend}", "backend": backend, "files": dict(files), "metadata": dict(metadata),
            "native_code": native_code,
        }  # fmt: skip
        manifest["submodels"][0]["variants"] = [variant]

    return edit


def library_with_canary(folder: Path, canary: Path) -> bytes:
    """Returns a shared object whose constructor writes the file `canary`."""
    return library_from_source([CANARY.format(path=canary)], folder).read_bytes()
