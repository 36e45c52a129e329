# SPDX-License-Identifier: Apache-2.0
"""Which variant of a submodel is the fastest on this machine: the file in which `nndeploy tune --fast` keeps it.

    variants.json in the cache folder:
    {"format": 1, "tables": [{"bundle_sha256": "...", "box": {...}, "variants": {"s0": "v1-openvino"},
      "rule_us": 950.0, "tuned_us": 810.0}]}

`box` is all that the choice depends on beside the bundle: processor, caches, threads, versions of the backends. Laws:
variants that are code, or run elsewhere than on the CPU, are not chosen so; what is malformed, or of another bundle or
machine, is as if it were not there.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nndeploy.bundle.manifest import Manifest, Variant
from nndeploy.errors import DataError
from nndeploy.plugin.cache_file import check_writable, not_kept, read_cache, write_cache
from nndeploy.plugin.interface import LAST_RESORT_TIER
from nndeploy.plugin.registry import backend, is_installed
from nndeploy.runtime.load_options import LoadOptions
from nndeploy.runtime.select import VARIANTS_FILE
from nndeploy.target.cpu_name import cpu_name
from nndeploy.target.target import host_target
from nndeploy.version import __version__

FORMAT = 1
MAX_BYTES = 1 << 20
MAX_TABLES = 256
"""Tables of one file; the oldest go first."""


def kept_variants(folder: str, manifest: Manifest, options: LoadOptions) -> tuple[dict[str, str], str]:
    """Returns the variants that were measured to be the fastest, by submodel; and why those of a file are not taken."""
    path = Path(folder, VARIANTS_FILE)
    data = read_cache(path, MAX_BYTES) if folder else b""
    if not data:
        return {}, ""
    try:
        tables = [_checked(one) for one in _tables(json.loads(data))]
    except (ValueError, RecursionError) as err:
        return {}, f"{path}: {err}"
    own = [one for one in tables if one["bundle_sha256"] == bundle_sha256(manifest)]
    found = [one for one in own if one["box"] == _box(manifest, options)]
    if found:
        may = {(one.id, variant.id) for one in manifest.submodels for variant in one.variants if may_be_chosen(variant)}
        return {one: variant for one, variant in found[-1]["variants"].items() if (one, variant) in may}, ""
    return {}, f"{path}: variants were chosen on another machine, or with other threads" if own else ""


def check_folder(folder: str) -> None:
    """Passes a folder in which variants can be kept; it is made where it is not there.

    Raises:
        InputOutputError: they cannot be kept in it.
    """
    check_writable(Path(folder, VARIANTS_FILE) if folder else None)


def keep_variants(folder: str, tables: Sequence[Mapping[str, Any]]) -> None:
    """Writes tables beside those that are in a folder, in the place of those of the same bundle and machine.

    Raises:
        InputOutputError: the file cannot be written.
    """
    if not tables:
        return
    check_folder(folder)
    path = Path(folder, VARIANTS_FILE)
    try:
        before = [_checked(one) for one in _tables(json.loads(read_cache(path, MAX_BYTES) or b"null"))]
    except (ValueError, RecursionError):
        before = []
    new = [(one["bundle_sha256"], one["box"]) for one in tables]
    kept = [one for one in before if (one["bundle_sha256"], one["box"]) not in new]
    text = json.dumps({"format": FORMAT, "tables": [*kept, *tables][-MAX_TABLES:]}, indent=1)
    if not write_cache(path, (text + "\n").encode("ascii"), ".variants-"):
        raise not_kept(path)


def replayed_variants(data: Sequence[Any], manifest: Manifest, options: LoadOptions) -> list[dict[str, Any]]:
    """Returns the tables of plain data, which must be of this bundle and machine.

    Raises:
        DataError: they are malformed, or of another bundle or machine.
    """
    try:
        tables = [_checked(one) for one in data]
    except ValueError as err:
        raise DataError(str(err)) from err
    for one in tables:
        if one["bundle_sha256"] != bundle_sha256(manifest) or one["box"] != _box(manifest, options):
            raise DataError("the variants were chosen for another bundle or machine, or with other threads")
    return tables


def variants_table(
    manifest: Manifest, options: LoadOptions, variants: Mapping[str, str], rule_us: float, tuned_us: float
) -> dict[str, Any]:
    """Returns the table of what was found here, with the microseconds of a run before and after."""
    return {
        "bundle_sha256": bundle_sha256(manifest),
        "box": _box(manifest, options),
        "variants": dict(variants),
        "rule_us": rule_us,
        "tuned_us": tuned_us,
    }


def may_be_chosen(variant: Variant) -> bool:
    """Whether a variant may be taken before better ones: it runs on the CPU, is no code, and no last resort."""
    if variant.native_code or not is_installed(variant.backend):
        return False
    plugin = backend(variant.backend)
    return plugin.device_kind == "cpu" and plugin.tier < LAST_RESORT_TIER


def bundle_sha256(manifest: Manifest) -> str:
    """Returns the SHA-256 of what the portable chain is: its submodels, their variants and the files of these."""
    told = [
        (one.id, variant.id, variant.backend, name, manifest.members[member].sha256)
        for one in manifest.submodels
        for variant in one.variants
        for name, member in sorted(variant.files.items())
    ]
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()


def _box(manifest: Manifest, options: LoadOptions) -> dict[str, Any]:
    """Returns all of this machine that the choice depends on."""
    host = host_target()
    names = sorted({variant.backend for one in manifest.submodels for variant in one.variants})
    return {
        "processor": cpu_name(),
        "caches": dict(host.caches),
        "threads": options.threads or host.num_cores,
        "version": __version__,
        "backends": {name: _version(name) for name in names},
    }


def _version(name: str) -> str:
    try:
        return backend(name).probe(host_target()).version
    except Exception:  # a third party's probe may fail in any way, or the backend may not be here
        return ""


def _tables(data: Any) -> list[Any]:
    if not isinstance(data, dict) or data.get("format") != FORMAT or not isinstance(data.get("tables"), list):
        raise ValueError(f"not chosen variants of format {FORMAT}")
    return list(data["tables"][:MAX_TABLES])


def _checked(data: Any) -> dict[str, Any]:
    """Returns a table, once it is seen to be one."""
    is_table = isinstance(data, dict) and all(isinstance(data.get(name), dict) for name in ("box", "variants"))
    if not is_table or not isinstance(data.get("bundle_sha256"), str):
        raise ValueError("malformed: a table without a bundle, a box or variants")
    if not all(isinstance(one, str) for one in data["variants"].values()):
        raise ValueError("malformed: a variant that is no text")
    if not all(type(data.get(name)) in (int, float) and data[name] >= 0 for name in ("rule_us", "tuned_us")):
        raise ValueError("malformed: a time that is none")
    return {**data}
