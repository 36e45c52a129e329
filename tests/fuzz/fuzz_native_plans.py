# SPDX-License-Identifier: Apache-2.0
"""Bundles of `native` that say something else, with hashes made right: fuzz_native_plans.py BUNDLE FIRST COUNT.

Each mutant must be refused by one line, of exit code 65, or of 69 where it says that it is of another version; or it
must give the numbers of the bundle that it was made from. Those of a changed plan or changed weights may be others,
of the shapes that the bundle says. The process that runs this may crash: the line that it wrote last says which mutant
did it. Exit code 1 where one was wrong.
"""

import copy
import json
import random
import struct
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from test_bundle_contents import nodes_of

import nndeploy
from nndeploy.bundle.manifest import Manifest, Submodel
from nndeploy.bundle.reader import open_bundle
from nndeploy.bundle.writer import write_bundle
from nndeploy.errors import NndeployError
from nndeploy.values.types import TensorType

WHOLE = (0, 1, -1, 2, 3, 7, 63, 64, 65, 128, 4096, 2**20, 2**31, 2**40, 2**63)
NUMBERS = (*WHOLE, 0.5, True, None, "1", "", [], {}, [1], {"entry": 0}, {"entry": 99})
OTHER_NUMBERS = "may give other numbers:"
DTYPES = ("float32", "int32", "int64", "float16", "uint8")


def changed_plan(text: bytes, dice: random.Random) -> tuple[bytes, str]:
    """Returns a plan.json that says something else in one or two places, and what was changed."""
    data, said = json.loads(text), []
    for _ in range(dice.randint(1, 2)):
        parent, key = dice.choice([(parent, key) for parent, key in nodes_of(data) if parent is not data.get("steps")])
        old = copy.deepcopy(parent[key])
        if isinstance(parent, dict) and dice.random() < 0.1:
            del parent[key]
        elif isinstance(old, list) and dice.random() < 0.5:
            parent[key] = dice.choice(([], old[:-1], old + old[-1:], old[::-1]))
        elif isinstance(old, int) and not isinstance(old, bool) and dice.random() < 0.7:
            parent[key] = dice.choice((old - 1, old + 1, old // 2, old * 2, 0, old + 64, max(0, old - 64)))
        else:
            parent[key] = copy.deepcopy(dice.choice(NUMBERS))
        said.append(f"{key}: {old!r:.40}")
    return json.dumps(data, indent=1).encode(), ", ".join(said)


def changed_words(data: bytes, dice: random.Random) -> tuple[bytes, str]:
    words, said = list(struct.unpack(f"<{len(data) // 8}q", data)), []
    for _ in range(dice.randint(1, 2)):
        at = dice.randrange(len(words))
        number = dice.choice((words[at] - 1, words[at] + 1, 0, 64, 2**20, 2**40, -1, dice.choice(words)))
        words[at] = max(-(2**63), min(number, 2**63 - 1))
        said.append(f"word {at}")
    return struct.pack(f"<{len(words)}q", *words), ", ".join(said)


def changed_bytes(data: bytes, dice: random.Random) -> tuple[bytes, str]:
    at = dice.randrange(max(1, len(data)))
    match dice.randrange(5):
        case 0:
            return b"", "empty"
        case 1:
            return data[:at], f"cut at {at}"
        case 2:
            return data + bytes(64), "longer"
        case 3:
            return data[:at] + b"\xff\xff\xff\x7f" + data[at + 4 :], f"other numbers at {at}"
    return data[64:] + data[:64], "moved"


def changed_metadata(metadata: Any, dice: random.Random) -> tuple[dict[str, Any], str]:
    data = dict(metadata)
    key = dice.choice(list(data))
    if dice.random() < 0.2:
        del data[key]
    else:
        data[key] = dice.choice((0, 1, 5, 6, 8, -1, 2**63, "fp32", "bf16", [], None, True))
    return data, f"metadata {key}"


def changed_types(manifest: Manifest, dice: random.Random) -> tuple[Manifest, str]:
    """Returns a manifest in which a value has another size, rank or type, wherever it is named."""
    name = dice.choice(list(manifest.values))
    kind = manifest.values[name]
    assert isinstance(kind, TensorType)
    shape = list(kind.shape or ())
    match dice.randrange(4):
        case 0:
            kind = TensorType(dice.choice(DTYPES), kind.shape)
        case 1:
            kind = TensorType(kind.dtype, (*shape, 1))
        case 2:
            kind = TensorType(kind.dtype, tuple(shape[:-1]))
        case _:
            axis = dice.randrange(len(shape))
            shape[axis] = dice.choice((0, 1, 2, 64, 10**6, 2**40, "n"))
            kind = TensorType(kind.dtype, tuple(shape))
    values = {**manifest.values, name: kind}
    inputs, outputs = (
        tuple(replace(one, type=kind) if one.name == name else one for one in side)
        for side in (manifest.inputs, manifest.outputs)
    )
    return replace(manifest, values=values, inputs=inputs, outputs=outputs), f"{name} is {kind}"


def with_submodel(manifest: Manifest, submodel: Submodel) -> Manifest:
    return replace(manifest, submodels=(submodel,))


def mutant(manifest: Manifest, members: dict[str, bytes], seed: int) -> tuple[Manifest, dict[str, bytes], str]:
    dice = random.Random(seed)  # noqa: S311 - no secret
    members, (submodel,) = dict(members), manifest.submodels
    variant = submodel.variants[0]
    files = variant.files
    plan = dice.choice([name for name in files if name not in ("weights.bin", "plan.json")])
    match dice.randrange(11):
        case 0:
            name = dice.choice(("weights.bin", plan))
            members[files[name]], said = changed_bytes(members[files[name]], dice)
            said = f"{OTHER_NUMBERS} {name} {said}"
        case 8 | 9 | 10:
            members[files[plan]], said = changed_words(members[files[plan]], dice)
            said = f"{OTHER_NUMBERS} {plan} {said}"
        case 1:
            metadata, said = changed_metadata(variant.metadata, dice)
            manifest = with_submodel(manifest, replace(submodel, variants=(replace(variant, metadata=metadata),)))
        case 2 | 3:
            manifest, said = changed_types(manifest, dice)
        case 4:
            swapped = replace(submodel, inputs=submodel.inputs[::-1]), replace(submodel, inputs=submodel.inputs[:1])
            manifest, said = with_submodel(manifest, dice.choice(swapped)), "inputs"
        case _:
            members[files["plan.json"]], said = changed_plan(members[files["plan.json"]], dice)
    return manifest, members, said


def main() -> None:
    path, first, count = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    with open_bundle(path) as bundle:
        manifest = replace(bundle.manifest, compressed={})
        kept = [name for name in manifest.members if name not in ("report.json",)]
        members = {name: bytes(bundle.member(name)) for name in kept}
    numbers = np.random.default_rng(0)
    shapes = {one.name: [size if isinstance(size, int) else 8 for size in one.type.shape] for one in manifest.inputs}
    inputs = {name: numbers.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    with nndeploy.load_bundle(path, nndeploy.LoadOptions(threads=1)) as program:
        wanted = program.run(inputs)
    shapes_wanted = {name: array.shape for name, array in wanted.items()}
    wrong = refused = 0
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(first, first + count):
            changed, files, said = mutant(manifest, members, seed)
            print(f"{seed}: {said}", flush=True)
            try:
                write_bundle(Path(folder) / "m.nnd", changed, files, {})
                with nndeploy.load_bundle(Path(folder) / "m.nnd", nndeploy.LoadOptions(threads=1)) as program:
                    found = program.run(inputs)
            except NndeployError as err:
                refused += 1
                if err.exit_code not in (65, 69) or "\n" in str(err):
                    wrong += 1
                    print(f"WRONG {seed}: exit code {err.exit_code}: {err}", flush=True)
                continue
            same = {name: array.shape for name, array in found.items()} == shapes_wanted
            if not same or (
                not said.startswith(OTHER_NUMBERS)
                and any(found[name].tobytes() != wanted[name].tobytes() for name in wanted)
            ):
                wrong += 1
                print(f"WRONG {seed}: other numbers", flush=True)
    print(f"{count} mutants, {refused} refused, {wrong} wrong")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
