# SPDX-License-Identifier: Apache-2.0
"""What opens the bundles of member_mutants.py, and what must hold of those that are taken.

A mutant is refused by one typed line, or taken; then all that is said of it must be true:

* its manifest is read as what it says, and lists the members as they are;
* values are the one text of what they hold; a compressed member is what the manifest says that it really is;
* a signature counts only for the bundle that was signed, and says its release;
* a program that loads gives outputs of the names, types and sizes of the manifest, or says in one line why not.
"""

import json
import sys
import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nndeploy.bundle.manifest import FORMAT_MINOR, Manifest
from nndeploy.bundle.manifest_check import all_submodels
from nndeploy.bundle.manifest_json import encode_manifest
from nndeploy.bundle.reader import Bundle
from nndeploy.bundle.report import report_from_json
from nndeploy.bundle.steps import steps_of
from nndeploy.bundle.values import encode_values
from nndeploy.errors import NndeployError, PolicyError
from nndeploy.files.onnx_external_data import check_names_no_file
from nndeploy.pacing.run.paced_program import counted_operators
from nndeploy.runtime.code_policy import files_in, with_code_flags
from nndeploy.runtime.load_options import LoadOptions
from nndeploy.runtime.program import load_bundle
from nndeploy.runtime.verify_bundle import verify
from nndeploy.stream.pipeline.bundled_pipeline import pipeline_of_bundle
from nndeploy.trust.public_key import read_public_key
from nndeploy.trust.signatures import check_signatures
from nndeploy.trust.trust_store import CODE, DATA, TrustedKey, TrustStore
from nndeploy.values.types import TensorType

sys.path.append(str(Path(__file__).parent))

from member_mutants import ONNX, Mutant

REFUSALS = frozenset({65, 66, 69, 77})
"""Exit codes: bad data, something that is not there, not on this machine, not allowed."""


ALL_OF = 8
"""Of one mutant in so many all members are read and the signature is checked; of each whose manifest is another."""


class WrongError(AssertionError):
    """A mutant was taken of which something does not hold, or refused in another way than by one typed line."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    store: TrustStore
    path: Path
    load: LoadOptions = LoadOptions(threads=1, cache_dir="")


def surroundings(folder: Path, file: str) -> Surroundings:
    """Returns what trusts the key farm.pub of a folder, and reads from a file there."""
    key = read_public_key(folder / "farm.pub")
    store = TrustStore({key.id: TrustedKey(key, "farm", frozenset({CODE, DATA}))})
    return Surroundings(store, folder / file)


def is_taken(mutant: Mutant, here: Surroundings) -> bool:
    """Returns whether a mutant is taken."""
    try:
        with Bundle(mutant.data, Path("x.nnd")) as bundle:
            if "manifest" in mutant.kind or zlib.crc32(mutant.data) % ALL_OF == 0:
                bundle.verify()
                _hold(bundle.manifest.members == mutant.truth, "the manifest lists members as they are not")
                if bundle.signature:
                    with suppress(NndeployError):
                        _read_signature(bundle, mutant, here)
            READERS[mutant.kind](bundle, mutant, here)
    except NndeployError as err:
        if err.exit_code not in REFUSALS or not str(err).isprintable():
            raise WrongError(f"exit code {err.exit_code}: {err}") from err
        return False
    except WrongError:
        raise
    except Exception as err:
        raise WrongError(f"{type(err).__name__}: {err}") from err
    return True


def _hold(condition: object, what: str) -> None:
    if not condition:
        raise WrongError(what)


def _read_signature(bundle: Bundle, mutant: Mutant, here: Surroundings) -> None:
    verdict = check_signatures(bundle, here.store, CODE, at_least=1)
    if not verdict.is_allowed:
        raise PolicyError(verdict.problem)
    is_same = bundle.manifest_text == mutant.seed.manifest and verdict.trusted_release == "1.0"
    _hold(is_same, "trusted, and not what was signed")


# ---- readers of one member


def _read_manifest(bundle: Bundle, mutant: Mutant, here: Surroundings) -> None:
    says = _plain(bundle.manifest_text)
    if says["format"]["minor"] <= FORMAT_MINOR:  # of a newer one not all is known
        _hold(_plain(encode_manifest(bundle.manifest)) == says, "the manifest is read as another one")
    with_code_flags(bundle.manifest, files_in(bundle))
    for one in bundle.manifest.goldens:
        for name in (one.inputs, one.outputs):
            bundle.values(name)
    if bundle.manifest.constants:
        bundle.values(bundle.manifest.constants)
    if mutant.seed.name == "compiled":
        _run(mutant, here)


def _plain(text: bytes) -> Any:
    return json.loads(text, parse_int=float)  # for a number with a point a whole one may stand


def _read_report(bundle: Bundle, *_: Any) -> None:
    report_from_json(bundle.report())


def _read_values(bundle: Bundle, mutant: Mutant, here: Surroundings) -> None:
    names = {name for one in bundle.manifest.goldens for name in (one.inputs, one.outputs)}
    for name in sorted(names | {bundle.manifest.constants} - {""}):
        _hold(encode_values(bundle.values(name)) == bytes(bundle.member(name)), f"{name} has a second text")
    if mutant.seed.name == "compiled":
        here.path.write_bytes(mutant.data)
        verify(here.path, load=lambda path: load_bundle(path, here.load, trusted=True))


def _read_compressed(bundle: Bundle, mutant: Mutant, _: Surroundings) -> None:
    _hold(bytes(bundle.member("g")) == mutant.seed.real, "it is not what the manifest says that it really is")


def _read_operators(bundle: Bundle, *_: Any) -> None:
    counted_operators(bundle)


def _read_pipeline(_: Bundle, mutant: Mutant, here: Surroundings) -> None:
    here.path.write_bytes(mutant.data)
    _hold(pipeline_of_bundle(here.path) is not None, "the pipeline is passed over")


def _read_plan(bundle: Bundle, mutant: Mutant, here: Surroundings) -> None:
    for submodel in all_submodels(bundle.manifest):
        for variant in submodel.variants:
            steps_of(bundle, variant)
    _run(mutant, here)


def _read_onnx(bundle: Bundle, *_: Any) -> None:
    check_names_no_file(bytes(bundle.member(ONNX)))


def _run(mutant: Mutant, here: Surroundings) -> None:
    here.path.write_bytes(mutant.data)
    with load_bundle(here.path, here.load, trusted=True) as program:
        inputs = {one.name: _some(one.type, program.manifest) for one in program.inputs}
        if any(array is None for array in inputs.values()):
            return  # larger than a test should be, or of a type without arrays
        outputs = program.run(inputs)
        _hold(set(outputs) == {one.name for one in program.outputs}, "outputs of other names")
        for one in program.outputs:
            in_chain = program.manifest.values[one.name]
            _hold(_fits(outputs[one.name], one.type, in_chain), f"{one.name} is not {one.type}")


def _some(kind: object, manifest: Manifest) -> Any:
    if not isinstance(kind, TensorType) or kind.shape is None or kind.dtype == "string":
        return None
    sizes = [
        manifest.ranges[size].best if isinstance(size, str) and size in manifest.ranges else size for size in kind.shape
    ]
    sizes = [size if isinstance(size, int) else 2 for size in sizes]
    try:
        dtype = np.dtype(kind.dtype)
    except TypeError:
        return None
    return np.ones(sizes, dtype) if np.prod(sizes, dtype=float) < 1e6 else None


def _fits(value: object, kind: object, in_chain: object) -> bool:
    """Returns whether a value is of a type; of sizes those count that stand in the type of the chain too."""
    if not isinstance(kind, TensorType) or not isinstance(in_chain, TensorType) or not isinstance(value, np.ndarray):
        return True
    if kind.dtype != "string" and value.dtype.name != kind.dtype:
        return False
    if kind.shape is None or in_chain.shape is None:
        return True
    sizes = zip(kind.shape, in_chain.shape, value.shape, strict=False)
    is_known = [(size, got) for size, also, got in sizes if isinstance(size, int) and isinstance(also, int)]
    return value.ndim == len(kind.shape) and all(size == got for size, got in is_known)


READERS: Mapping[str, Callable[[Bundle, Mutant, Surroundings], None]] = {
    "manifest with all fields": _read_manifest, "manifest of a compile": _read_manifest,
    "bytes of a manifest": _read_manifest, "signature": _read_signature, "report": _read_report,
    "goldens": _read_values, "constants": _read_values, "member stored compressed": _read_compressed,
    "what operators count": _read_operators, "pipeline": _read_pipeline, "names of a pipeline's files": _read_pipeline,
    "labels": _read_pipeline, "plan.json": _read_plan, "plan.bin": _read_plan, "weights": _read_plan,
    "ONNX model": _read_onnx,
}  # fmt: skip
"""What reads a mutant, by the member that says something else in it."""
