# SPDX-License-Identifier: Apache-2.0
"""What the bytes of a bundle are for: every member has its row, and weights that stand twice say why."""

from dataclasses import replace

from nndeploy.bundle.contents import CODE, OTHERS, PLANS, REPEATS_LITTLE, SAMPLES, WEIGHTS, bytes_by_kind, contents_of
from nndeploy.bundle.manifest import Compressed, Golden, Manifest, Member, Submodel, TargetChain, Variant
from nndeploy.values.types import TensorType

FLOAT = TensorType("float32", (2,))
SIZES = {
    "a/plan.bin": 100, "a/weights.bin": 500_000, "b/model.xml": 900, "b/model.bin": 30, "b/model.blob": 200_000,
    "c/model.onnx": 400_000, "gpu/engine.trt": 450_000, "g/i": 7, "g/o": 8, "report.json": 5, "k": 3,
}  # fmt: skip


def variant(name: str, *files: str, native_code: bool = False) -> Variant:
    return Variant(name, name, "host", {file: f"{name}/{file}" for file in files}, native_code=native_code)


MANIFEST = Manifest(
    "m", "0" * 64, (), (),
    (Submodel("s", (), ("y",), (
        variant("a", "plan.bin", "weights.bin"),
        variant("b", "model.xml", "model.bin", "model.blob", native_code=True),
        variant("c", "model.onnx"),
    )),),
    {"y": FLOAT},
    target_chains=(
        TargetChain("t", "box", (Submodel("t.s", (), ("y",), (variant("gpu", "engine.trt", native_code=True),)),), {}),
    ),
    constants="k",
    goldens=(Golden("g/i", "g/o", "", "sample"),),
    members={name: Member("0" * 64, size) for name, size in SIZES.items()},
    compressed={"b/model.bin": Compressed("1" * 64, 500_000, ("a/weights.bin",)), "g/i": Compressed("1" * 64, 70)},
)  # fmt: skip


def test_each_member_has_a_row_and_a_purpose() -> None:
    rows = contents_of(MANIFEST)
    assert [row.size_bytes for row in rows] == sorted(SIZES.values(), reverse=True)
    assert {row.member: row.what for row in rows} == {
        "a/plan.bin": PLANS, "a/weights.bin": WEIGHTS, "b/model.xml": PLANS, "b/model.bin": WEIGHTS,
        "b/model.blob": CODE, "c/model.onnx": PLANS, "gpu/engine.trt": CODE, "g/i": SAMPLES, "g/o": SAMPLES,
        "report.json": OTHERS, "k": WEIGHTS,
    }  # fmt: skip
    by_kind = bytes_by_kind(rows)
    assert by_kind == {WEIGHTS: 500_033, PLANS: 401_000, CODE: 650_000, SAMPLES: 15, OTHERS: 5}
    assert sum(by_kind.values()) == sum(SIZES.values())


def test_a_row_says_what_a_member_really_is_and_of_which_others() -> None:
    rows = {row.member: row for row in contents_of(MANIFEST)}
    assert (rows["b/model.bin"].real_bytes, rows["b/model.bin"].bases) == (500_000, ("a/weights.bin",))
    assert (rows["g/i"].real_bytes, rows["g/i"].bases) == (70, ())
    assert (rows["a/weights.bin"].real_bytes, rows["a/weights.bin"].bases) == (500_000, ())


def test_large_files_beside_others_say_why() -> None:
    noted = {row.member: row.note for row in contents_of(MANIFEST) if row.note}
    assert noted == dict.fromkeys(("b/model.blob", "c/model.onnx", "gpu/engine.trt"), REPEATS_LITTLE)
    first = replace(MANIFEST.submodels[0], variants=MANIFEST.submodels[0].variants[:1])
    alone = replace(MANIFEST, submodels=(first,), target_chains=())
    assert not any(row.note for row in contents_of(alone))
