# SPDX-License-Identifier: Apache-2.0
"""The side of the worker: `python -m nndeploy.runtime.isolated_worker REQUEST` runs one submodel of a bundle.

    REQUEST                 which variant of which submodel, and how to open it, as JSON
    a line of its input     what `SharedValues` tells of the values in the memory that the parent writes
    a line of its output    {"bytes": n}, the same of the values in the memory that it writes, or {"error": ...}

It reads the bundle again by the parent's descriptor, so it is the one that the parent has whatever took its name; if it
was overwritten, that is an error. Its first line says that the submodel is open.
"""

import hashlib
import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from nndeploy.bundle.manifest import Manifest, Submodel, Variant
from nndeploy.bundle.manifest_json import encode_manifest
from nndeploy.bundle.reader import open_bundle
from nndeploy.errors import BundleError, DataError, NndeployError, OtherVariantError, error_to_json, one_line
from nndeploy.plugin.interface import OpenOptions, Session
from nndeploy.plugin.registry import backend
from nndeploy.runtime.chain import on_host
from nndeploy.runtime.code_policy import files_in, without_code
from nndeploy.runtime.shared_values import SharedValues
from nndeploy.sandbox.child_process import die_with_parent
from nndeploy.sandbox.memory import limit_file_size, limit_memory
from nndeploy.values.types import ValueType

OPEN = b'{"bytes": 0}\n'
"""The line that says that the submodel is open."""
MAX_LINE_BYTES = 64


@dataclass(frozen=True, slots=True)
class WorkerRequest:
    """One variant of a submodel of a chain, and how it is opened.

    `bundle` is the path of the file that is open as `descriptor`, `manifest_sha256` that of the manifest that was read,
    `given` and `made` are descriptors of the memory in which values come and go; `memory_bytes` is what it may take.
    """

    bundle: str
    descriptor: int
    manifest_sha256: str
    chain: str
    submodel: str
    variant: str
    device: str
    threads: int | None
    custom_op_libraries: tuple[str, ...]
    allow_native_code: bool
    memory_bytes: int
    given: int
    made: int

    def to_text(self) -> str:
        """Returns the request as an argument of a command."""
        return json.dumps(asdict(self))


def manifest_sha256(manifest: Manifest) -> str:
    """Returns what tells a bundle from every other one: its manifest lists the hashes of all that is in it."""
    return hashlib.sha256(encode_manifest(manifest)).hexdigest()


def main(text: str) -> None:
    """Opens the submodel and runs what comes, until the input ends."""
    die_with_parent()
    data = json.loads(text)
    request = WorkerRequest(**{**data, "custom_op_libraries": tuple(data["custom_op_libraries"])})
    if request.device == "cpu":  # a GPU's driver maps far more than it takes
        limit_memory(request.memory_bytes)
    limit_file_size(request.memory_bytes)
    given, made = SharedValues(request.given), SharedValues(request.made)
    answers = os.dup(1)
    os.dup2(2, 1)  # native libraries print; the answers have the pipe for themselves
    try:
        with _opened(request) as session:
            os.write(answers, OPEN)
            while line := os.read(0, MAX_LINE_BYTES):  # one at a time: who asks waits for the answer
                os.write(answers, _answer(session, given, made, int(line)))
    except NndeployError as err:
        os.write(answers, _line({"error": error_to_json(err)}))


def _answer(session: Session, given: SharedValues, made: SharedValues, told: int) -> bytes:
    try:
        outputs = session.run(given.read(told, is_trusted=True))
        return b'{"bytes": %d}\n' % made.write(on_host(outputs, outputs))
    except NndeployError as err:
        return _line({"error": error_to_json(err), "is_of_variant": isinstance(err, OtherVariantError)})
    except Exception as err:  # a library fails in its own ways; the item is then lost, not the worker
        return _line({"error": error_to_json(DataError(one_line(f"failed: {type(err).__name__}: {err}")))})


def _line(said: Mapping[str, Any]) -> bytes:
    return json.dumps(said).encode() + b"\n"


@contextmanager
def _opened(request: WorkerRequest) -> Iterator[Session]:
    with open_bundle(Path(request.bundle), request.descriptor) as bundle:
        if manifest_sha256(bundle.manifest) != request.manifest_sha256:
            raise BundleError("it was overwritten after it was opened", where=request.bundle)
        manifest = bundle.manifest
        if not request.allow_native_code:
            manifest = without_code(manifest, files_in(bundle))
        submodel, variant, types = _asked(manifest, request)
        inputs, outputs = ({name: types[name] for name in names} for names in (submodel.inputs, submodel.outputs))
        options = OpenOptions(
            request.device, request.threads, request.custom_op_libraries, inputs=inputs, outputs=outputs
        )
        session = backend(variant.backend).open(files_in(bundle)(variant), variant.metadata, options)
        try:
            yield session
        finally:
            session.close()


def _asked(manifest: Manifest, request: WorkerRequest) -> tuple[Submodel, Variant, Mapping[str, ValueType]]:
    chain = next((chain for chain in manifest.target_chains if chain.id == request.chain), manifest)
    submodel = next(submodel for submodel in chain.submodels if submodel.id == request.submodel)
    return submodel, next(v for v in submodel.variants if v.id == request.variant), chain.values


if __name__ == "__main__":
    main(sys.argv[1])
