# SPDX-License-Identifier: Apache-2.0
"""Whether the parts of a manifest fit together: each way in which they may not has its own message."""

from dataclasses import replace

import pytest

from nndeploy.bundle.compressed_member import MAX_OWN_BYTES
from nndeploy.bundle.manifest import (
    Compressed,
    Golden,
    ImageInput,
    Manifest,
    Member,
    NamedType,
    PlacedSubmodel,
    Placing,
    Submodel,
    TargetChain,
    Variant,
)
from nndeploy.bundle.manifest_check import check_manifest
from nndeploy.errors import BundleError
from nndeploy.values.types import DimRange, MapType, OptionalType, SequenceType, TensorType, ValueType

FLOAT = TensorType("float32", (2,))
VARIANTS = (Variant("v", "onnxruntime", "host", {}),)
REPORT = {"report.json": Member("00" * 32, 2)}


def chain(*submodels: tuple[str, tuple[str, ...], tuple[str, ...]], output: str = "y") -> Manifest:
    """A manifest from the input x to one output, through (id, inputs, outputs)."""
    names = {"x", output}.union(*(set(i) | set(o) for _, i, o in submodels))
    return Manifest(
        model_name="m", model_sha256="0" * 64, inputs=(NamedType("x", FLOAT),), outputs=(NamedType(output, FLOAT),),
        submodels=tuple(Submodel(identifier, i, o, VARIANTS) for identifier, i, o in submodels),
        values=dict.fromkeys(names, FLOAT), members=REPORT,
    )  # fmt: skip


ONE = chain(("a", ("x",), ("y",)))


def smaller(what: Compressed, name: str = "w") -> Manifest:
    """ONE with a member `w`, of which one is said to be stored compressed."""
    return replace(ONE, members={**REPORT, "w": Member("0" * 64, 9)}, compressed={name: what})


def also(*chains: Manifest, ids: tuple[str, ...] = ("gpu", "gpu2")) -> Manifest:
    """ONE with the submodels and types of others as chains for targets."""
    found = [TargetChain(name, "box", one.submodels, one.values) for name, one in zip(ids, chains, strict=False)]
    return replace(ONE, target_chains=tuple(found))


def placed(place: str = "cpu:0", name: str = "portable", submodel: str = "a", value: str = "x") -> Manifest:
    """ONE, and a chain for GPUs, of which one is said to be placed."""
    both = also(chain(("g.a", ("x",), ("y",))))
    return replace(both, placings={name: Placing({submodel: PlacedSubmodel(place, 1, 2)}, {value: 4})})


@pytest.mark.parametrize("manifest", [
    ONE, chain(("a", ("x",), ("h",)), ("b", ("h", "x"), ("y",))), chain(("a", (), ("y",))), chain(output="x"),
    replace(chain(output="x"), aliases={"x": "x"}), replace(chain(), aliases={"y": "x"}),
    replace(chain(), constants="tables/c", members={**REPORT, "tables/c": Member("0" * 64, 1)}),
    replace(ONE, ranges={"N": DimRange(3, 3, 3)}), smaller(Compressed("0" * 64, MAX_OWN_BYTES + 2, ("report.json",))),
    replace(ONE, ranges={"N": DimRange(1, 9, 5, 4)}), also(chain(("g.a", ("x",), ("h",)), ("g.b", ("h",), ("y",)))),
    placed(), placed("cuda:1", "gpu", "g.a"), also(chain(("g.a", ("x",), ("y",))), chain(("k.a", ("x",), ("y",)))),
    replace(ONE, values={"x": TensorType("float32", None), "y": TensorType("float32", ("N",))}),
])  # fmt: skip
def test_takes(manifest: Manifest) -> None:
    check_manifest(manifest)


def test_takes_a_manifest_with_everything_in_it(full_manifest: Manifest) -> None:
    check_manifest(full_manifest)


@pytest.mark.parametrize(("manifest", "message"), [
    (chain(("a", ("lost",), ("y",))), "submodel a: 'lost' is read, but nothing produces it"),
    (chain(("a", ("h",), ("k",)), ("b", ("k",), ("h", "y"))), "a: 'h' is read before b produces it: a cycle"),
    (chain(("a", ("y",), ("y",))), "submodel a: 'y' is read before a produces it: a cycle"),
    (chain(("b", ("h",), ("y",)), ("a", ("x",), ("h",))), "submodel b: 'h' is read before a produces it"),
    (chain(("a", ("x",), ("y",)), ("b", ("x",), ("y",))), "'y' is produced twice, by a and by b"),
    (chain(("a", ("x",), ("y", "y"))), "'y' is produced twice, by a and by a"),
    (chain(("a", ("x",), ("x", "y"))), "'x' is produced twice, by the program's inputs and by a"),
    (chain(("a", ("x",), ("y",)), ("a", ("x",), ("z",))), "the submodel 'a' stands twice"),
    (chain(), "outputs: nothing produces the output 'y'"),
    (smaller(Compressed("0" * 64, 1), name="lost"), r"compressed\['lost'\]: no member that could be compressed"),
    (smaller(Compressed("0" * 64, 1), name="report.json"), "no member that could be compressed"),
    (smaller(Compressed("0" * 64, 1, ("lost",))), r"\['w'\]: its base 'lost' is compressed, or no member"),
    (smaller(Compressed("0" * 64, 1, ("w",))), "its base 'w' is compressed"),
    (smaller(Compressed("0" * 64, 1, ("manifest.json",))), "its base 'manifest.json' is compressed, or no member"),
    (smaller(Compressed("0" * 64, 0)), "claims 0 bytes; 1 to 67108864 are allowed"),
    (smaller(Compressed("0" * 64, MAX_OWN_BYTES + 1)), "claims 67108865 bytes"),
    (smaller(Compressed("0" * 64, MAX_OWN_BYTES + 3, ("report.json", "report.json"))), "1 to 67108866 are allowed"),
    (also(chain(("a", ("x",), ("y",)))), "the submodel 'a' stands twice"),
    (placed(name="lost"), r"placings\['lost'\]: the bundle has no such chain"),
    (placed(submodel="lost"), "submodel 'a' has no place, or is none of the chain"),
    (placed(value="lost"), "'lost' is no value of the chain"),
    (placed("cuda:0"), "the portable chain runs on any CPU, and never on a GPU"),
    (also(ONE, ONE, ids=("g", "g")), "the chain 'g' stands twice"),
    (also(chain(("b", ("lost",), ("y",)))), "chain gpu: submodel b: 'lost' is read, but nothing produces it"),
    (also(chain(("b", ("x",), ("h",)))), "chain gpu: outputs: nothing produces the output 'y'"),
    (also(replace(chain(("b", ("x",), ("y",))), values={"x": FLOAT})), "chain gpu: the value 'y' has no type"),
    (replace(ONE, inputs=ONE.inputs * 2), "the input 'x' stands twice"),
    (replace(ONE, defaults={"y": "report.json"}), "defaults: 'y' has a default, but is no input"),
    (replace(ONE, defaults={"x": "w"}), "'w', which is not listed"),
    (replace(ONE, outputs=ONE.outputs * 2), "the output 'y' stands twice"),
    (replace(ONE, aliases={"y": "x"}), "the alias 'y' is also produced by a"),
    (replace(chain(), aliases={"y": "z"}), "the alias 'y' of 'z' does not lead from an output to an input"),
    (replace(chain(), aliases={"z": "x"}), "the alias 'z' of 'x' does not lead from an output to an input"),
    (replace(ONE, values={"x": FLOAT}), "the value 'y' has no type"),
    (replace(chain(("a", ("x",), ("y", "h"))), values={"x": FLOAT, "y": FLOAT}), "the value 'h' has no type"),
    (replace(ONE, values={"x": FLOAT, "y": TensorType("int8", (2,))}), "the value 'y' has two types"),
    (replace(ONE, ranges={"N": DimRange(4, 2, 3)}), r"ranges\['N'\]: expected min <= best <= max, got 4, 3, 2"),
    (replace(ONE, ranges={"N": DimRange(1, 2, 3)}), "expected min <= best <= max, got 1, 3, 2"),
    (replace(ONE, ranges={"N": DimRange(1, 8, 5, 4)}), "best 5 and max 8 must be 1 and a multiple of the step 4"),
    (replace(ONE, ranges={"N": DimRange(1, 9, 4, 4)}), "best 4 and max 9 must be 1 and a multiple of the step 4"),
    (replace(ONE, ranges={"N": DimRange(1, 9, 1, 0)}), "must be 1 and a multiple of the step 0"),
    (replace(ONE, ranges={"N": DimRange(2, 3, 1)}), "expected min <= best <= max, got 2, 1, 3"),
    (replace(ONE, members={}), "members: the member 'report.json' is missing"),
    (replace(ONE, members={**REPORT, "manifest.json": Member("0" * 64, 1)}), "must not list 'manifest.json'"),
    (replace(ONE, members={**REPORT, "signature": Member("0" * 64, 1)}), "must not list 'signature'"),
    (
        replace(ONE, members={**REPORT, **{f"weights/{i}": Member("0" * 64, 1) for i in range(4094)}}),
        "4095 members, more than a bundle can hold",
    ),
    (replace(ONE, constants="tables/c"), "constants: it names the member 'tables/c', which is not listed"),
    (replace(ONE, goldens=(Golden("g/i", "g/o", "", "sample"),)), r"goldens\[0\]: it names the member 'g/i'"),
    (
        replace(ONE, goldens=(Golden("report.json", "report.json", "g/b", "sample"),)),
        r"goldens\[0\]: it names the member 'g/b'",
    ),
    (
        replace(ONE, submodels=(replace(ONE.submodels[0], variants=VARIANTS * 2),)),
        "submodel a: the variant 'v' stands twice",
    ),
    (
        replace(ONE, submodels=(replace(ONE.submodels[0], variants=(replace(VARIANTS[0], files={"f": "m"}),)),)),
        "variant v of submodel a: it names the member 'm', which is not listed",
    ),
], ids=lambda value: value if isinstance(value, str) else "")  # fmt: skip
def test_refuses(manifest: Manifest, message: str) -> None:
    with pytest.raises(BundleError, match=message):
        check_manifest(manifest)


@pytest.mark.parametrize(("declared", "in_chain"), [
    (SequenceType(FLOAT), FLOAT),
    (SequenceType(FLOAT), SequenceType(TensorType("int8", (2,)))),
    (OptionalType(FLOAT), SequenceType(FLOAT)),
    (OptionalType(FLOAT), OptionalType(TensorType("bool", (2,)))),
    (MapType("string", FLOAT), MapType("int64", FLOAT)),
    (MapType("string", FLOAT), MapType("string", SequenceType(FLOAT))),
    (TensorType("float32", ("N", 3)), TensorType("float32", ("N", 4))),
    (TensorType("float32", (1,)), TensorType("float32", (1, 1))),
    (SequenceType(TensorType("float32", (1,))), SequenceType(TensorType("float32", (2,)))),
], ids=str)  # fmt: skip
def test_refuses_two_types_of_one_value(declared: ValueType, in_chain: ValueType) -> None:
    manifest = replace(ONE, outputs=(NamedType("y", declared),), values={"x": FLOAT, "y": in_chain})
    with pytest.raises(BundleError, match="the value 'y' has two types"):
        check_manifest(manifest)
    check_manifest(replace(manifest, values={"x": FLOAT, "y": declared}))


IMAGE = ImageInput("x", 8, 8, "RGB", "NCHW", (0.0,) * 3, (1.0,) * 3)


@pytest.mark.parametrize(("image", "message"), [
    (replace(IMAGE, name="z"), "image_input: no input is named 'z'"),
    (replace(IMAGE, mean=(0.0,)), "mean and std need 3 numbers for RGB"),
    (replace(IMAGE, std=(1.0,) * 4), "mean and std need 3 numbers for RGB"),
    (replace(IMAGE, channels="L"), "mean and std need 1 numbers for L"),
    (replace(IMAGE, std=(1.0, 0.0, 1.0)), "a standard deviation of 0"),
])  # fmt: skip
def test_refuses_the_image_input(image: ImageInput, message: str) -> None:
    check_manifest(replace(ONE, image_input=IMAGE))
    with pytest.raises(BundleError, match=message):
        check_manifest(replace(ONE, image_input=image))
