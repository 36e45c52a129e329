# SPDX-License-Identifier: Apache-2.0
"""A bundle -> one program that runs it, on machines that have neither Python nor this package.

    runner of the architecture, zeros up to a page, the bundle with what the runner takes, its size, the mark
    with decisions: ..., the bundle, their text, a zero, the bytes of both, the size of the bundle, the other mark

Comes in: an open bundle. Goes out: a file. Laws: what the runner cannot run is refused here, by the name of the
submodel and with the option that helps; the bundle in the program is one that every reader of bundles takes.
"""

import dataclasses
import json
import struct
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from pathlib import Path

from nndeploy.bundle.container import Buffer, encode_container
from nndeploy.bundle.manifest import Manifest, Submodel, Variant
from nndeploy.bundle.reader import Bundle
from nndeploy.bundle.writer import replace_file, sealed_bundle
from nndeploy.errors import DataError, InputError, UnavailableError
from nndeploy.files.decisions_file import TUNED_FORMAT, read_tuned_choices
from nndeploy.files.whole_files import open_regular
from nndeploy.plugin.interface import HasRunner, Json
from nndeploy.plugin.registry import backends_in_order
from nndeploy.values.types import MapType, SequenceType, TensorType

MARK, MARK_OF_DECISIONS = b"nndeploy-export1", b"nndeploy-export2"
WINDOWS = "x86_64-windows"
"""The architecture of Windows; that of others is Linux's."""
PAGE_BYTES = 4096
DTYPES = ("float32", "int32", "int64", "bool", "uint8", "int8", "float16", "float64", "string")
"""Element types that the runner reads and writes."""
MAPS = tuple(SequenceType(MapType(key, TensorType("float32", ()))) for key in ("string", "int64"))
"""What outputs may be besides: the scores of classifiers."""

GOLDENS = "reference outputs"


@dataclasses.dataclass(frozen=True, slots=True)
class Exported:
    """A program that was written: its bytes, those of them that are the bundle, and what was left out of that."""

    num_bytes: int
    bundle_bytes: int
    left_out: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Runnable:
    """A bundle with what a runner takes alone, whose backend has the runner, and what that leaves out.

    `metadata` are those of its artifacts, `hashes` the SHA-256 of its members.
    """

    backend: HasRunner
    metadata: Sequence[Mapping[str, Json]]
    chunks: Sequence[Buffer]
    left_out: tuple[str, ...]
    hashes: frozenset[str]


def export_program(
    bundle: Bundle,
    out: Path,
    arch: str,
    runner: Path | None = None,
    *,
    keeps_goldens: bool = False,
    decisions: Path | None = None,
) -> Exported:
    """Writes the program that runs a bundle on machines of an architecture, by the runner that is given or installed.

    With `keeps_goldens` it can verify its results. It carries what a file of `nndeploy tune --decisions` says of the
    bundle.

    Raises:
        DataError: that is no such file, or says nothing of this bundle.
        UnavailableError: a submodel or a value is of a kind that it cannot run, or no runner is installed.
        BundleError: the bundle is damaged.
        MissingInputError, InputError: the runner that is given is not there, or is none.
        CannotCreateError, InputOutputError: the program cannot be written.
    """
    part = runnable(bundle, keeps_goldens=keeps_goldens)
    path = runner or part.backend.runner(arch, part.metadata)
    with open_regular(path) as file:
        program = file.read()
    begin, system = (b"MZ", "Windows") if arch == WINDOWS else (b"\x7fELF", "Linux")
    if not program.startswith(begin):
        raise InputError(f"is no program for {system}", where=str(path), hint="--runner names an nndeploy-run")
    size = sum(map(len, part.chunks))
    end = _end(size, None if decisions is None else _text_of(decisions, part.hashes))
    replace_file(out, _program(program, part.chunks, end), is_program=True)
    return Exported(-(-len(program) // PAGE_BYTES) * PAGE_BYTES + size + len(end), size, hinted(part.left_out))


def runnable(bundle: Bundle, *, keeps_goldens: bool = False) -> Runnable:
    """Returns what runs without Python of a bundle.

    Raises:
        UnavailableError: a submodel or a value is of a kind that does not, or no backend has a runner.
        BundleError: the bundle is damaged.
    """
    backend = _runner_backend()
    manifest, left_out = _slim(bundle.manifest, backend.name, keeps_goldens, signed=bool(bundle.signature))
    for submodel in manifest.submodels:
        (variant,) = submodel.variants
        if what := backend.why_not_alone(variant.metadata, _files_of(bundle, variant)):
            raise UnavailableError(f"submodel {submodel.id} has {what}", hint="such a bundle runs with Python alone")
    names = {name for submodel in manifest.submodels for name in submodel.variants[0].files.values()}
    names |= {*manifest.defaults.values(), *filter(None, [manifest.constants])}
    names |= {name for golden in manifest.goldens for name in (golden.inputs, golden.outputs)}
    members: dict[str, Buffer] = {name: bundle.member(name) for name in sorted(names)}
    contents, sealed = sealed_bundle(manifest, members, {})
    metadata = [submodel.variants[0].metadata for submodel in manifest.submodels]
    hashes = frozenset(member.sha256 for member in sealed.members.values())
    return Runnable(backend, metadata, list(encode_container(contents)), left_out, hashes)


def hinted(left_out: Sequence[str]) -> tuple[str, ...]:
    """Returns what a form that can hold goldens leaves out, with the option that keeps them."""
    return tuple(f"{one} (--verify keeps them)" if one == GOLDENS else one for one in left_out)


def _files_of(bundle: Bundle, variant: Variant) -> Callable[[str], Buffer]:
    return lambda name: bundle.member(variant.files[name])


def _runner_backend() -> HasRunner:
    found = next((one for one in backends_in_order() if isinstance(one, HasRunner)), None)
    if found is None:
        raise UnavailableError("no installed backend has a runner", hint="install the backend native")
    return found


def _program(runner: bytes, chunks: Sequence[Buffer], end: bytes) -> Iterator[Buffer]:
    yield runner
    yield bytes(-len(runner) % PAGE_BYTES)
    yield from chunks
    yield end


def _text_of(decisions: Path, hashes: Container[str]) -> bytes:
    """Returns the choices of a file for plans of these hashes, as the runner reads them."""
    tuned = read_tuned_choices(decisions)["tuned"]
    own = [one for one in tuned if isinstance(one, Mapping) and one.get("plan_sha256") in hashes]
    if not own:
        raise DataError("the decisions are for another bundle", where=str(decisions))
    return json.dumps({"format": TUNED_FORMAT, "tuned": own}, separators=(",", ":")).encode("ascii") + b"\0"


def _end(size: int, decisions: bytes | None) -> bytes:
    """Returns what stands behind a bundle of so many bytes."""
    if decisions is None:
        return struct.pack("<Q", size) + MARK
    return decisions + struct.pack("<QQ", len(decisions), size) + MARK_OF_DECISIONS


def _slim(manifest: Manifest, backend: str, keeps_goldens: bool, *, signed: bool) -> tuple[Manifest, tuple[str, ...]]:
    """Returns the manifest of what the runner takes, and what that leaves out, for people."""
    for side, values in (("input", manifest.inputs), ("output", manifest.outputs)):
        for value in values:
            is_maps = side == "output" and value.type in MAPS
            if not is_maps and (not isinstance(value.type, TensorType) or value.type.dtype not in DTYPES):
                raise UnavailableError(f"{side} {value.name!r} is {value.type}, which runs with Python alone")
    submodels = tuple(_with_one_variant(submodel, backend) for submodel in manifest.submodels)
    others = {one.backend for submodel in manifest.submodels for one in submodel.variants if one.backend != backend}
    left_out = [f"variants of {name}" for name in sorted(others)]
    left_out += [f"the chain {chain.id}" for chain in manifest.target_chains]
    goldens = tuple(dataclasses.replace(one, boundaries="") for one in manifest.goldens) if keeps_goldens else ()
    left_out += [GOLDENS] if len(goldens) < len(manifest.goldens) else []
    left_out += ["pace points"] if manifest.pace_operators else []
    left_out += ["the signature"] if signed else []
    slim = dataclasses.replace(
        manifest, submodels=submodels, target_chains=(), goldens=goldens, checks=(), compressed={}, placings={},
        pace_libraries={}, pace_operators="",
    )  # fmt: skip
    return slim, tuple(left_out)


def _with_one_variant(submodel: Submodel, backend: str) -> Submodel:
    found = [variant for variant in submodel.variants if variant.backend == backend]
    if not found:
        has = ", ".join(dict.fromkeys(variant.backend for variant in submodel.variants))
        hint = f"compile with --backends {backend}, or --require {backend}=100%"
        raise UnavailableError(f"submodel {submodel.id} runs on {has}, not on {backend}", hint=hint)
    return dataclasses.replace(submodel, variants=(found[0],))
