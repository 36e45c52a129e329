# SPDX-License-Identifier: Apache-2.0
"""Models of more weights than a protobuf message holds: what the gate lets through, and where the weights go."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import onnx
import onnx.numpy_helper
import onnx_ir as ir
import pytest
from frontend_builders import block, model, model_bytes, number, tensor

from nndeploy.errors import ModelError
from nndeploy.frontend import stored_weights
from nndeploy.frontend.load import LoadedModel, load_model
from nndeploy.frontend.stored_weights import MIN_STORED_BYTES, embedded, model_from_bytes, stored_bytes
from nndeploy.onnx_gate.gate import check_bytes
from nndeploy.onnx_gate.limits import Limits, limits_within

GIB = 1 << 30
WEIGHTS = {
    "w": np.arange(2048, dtype=np.float32), "half": np.arange(4096).astype(np.float16),
    "count": np.arange(1024, dtype=np.int64), "axis": np.array([1], dtype=np.int64),
}  # fmt: skip


@pytest.fixture(autouse=True)
def small_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_weights, "MIN_MODEL_BYTES", 16 << 10)


def network(path: Path, *, external: bool) -> Path:
    proto = model(
        "g (float[N,2048] x) => (float[N,2048] y, float16[4096] h, int64[1024] c, int64[1] a)"
        "{ y = Mul(x, w) h = Identity(half) c = Identity(count) a = Identity(axis) }"
    )
    proto.graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in WEIGHTS.items())
    listed = proto.graph.initializer[0]
    if not external:
        listed.ClearField("raw_data")
        listed.float_data.extend(WEIGHTS["w"])
    onnx.save(proto, path, save_as_external_data=external, location="net.weights", size_threshold=0)
    return path


def loaded_with_file(source: Path, folder: Path) -> LoadedModel:
    folder.mkdir()
    return load_model(source, folder_for_weights=lambda: folder)


def external_bytes(num_elements: int) -> bytes:
    return model_bytes(
        tensor(number(1, num_elements) + number(2, 1) + number(14, 1) + block(13, block(1, b"location")))
    )


def test_the_gate_takes_what_the_memory_holds() -> None:
    three_gib = external_bytes(3 * GIB // 4)
    assert check_bytes(three_gib, limits_within(4 * GIB)).num_weight_bytes == 3 * GIB
    for limits in (Limits(), limits_within(3 * GIB - 1)):
        with pytest.raises(ModelError, match=f"has {3 * GIB} bytes"):
            check_bytes(three_gib, limits)


def test_what_lies_in_the_file_itself_is_never_more_than_a_message() -> None:
    assert limits_within(64 * GIB).max_file_bytes == Limits().max_file_bytes
    assert limits_within(1 * GIB) == Limits()


@pytest.mark.parametrize("external", [True, False], ids=["beside the model", "in the model"])
def test_large_weights_go_to_the_file_and_small_ones_stay(external: bool, tmp_path: Path) -> None:
    loaded = loaded_with_file(network(tmp_path / "net.onnx", external=external), tmp_path / "private")
    assert len(loaded.original.SerializeToString()) < MIN_STORED_BYTES
    values = loaded.model.graph.initializers
    assert {name for name, v in values.items() if isinstance(v.const_value, ir.ExternalTensor)} == {
        "w", "half", "count",
    }  # fmt: skip
    for name, array in WEIGHTS.items():
        np.testing.assert_array_equal(values[name].const_value.numpy(), array, strict=True)
    assert {str(v.const_value.path) for v in values.values() if isinstance(v.const_value, ir.ExternalTensor)} == {
        str(tmp_path / "private" / "weights.data")
    }


def test_the_hash_is_that_of_a_model_that_is_not_stored(tmp_path: Path) -> None:
    source = network(tmp_path / "net.onnx", external=True)
    assert loaded_with_file(source, tmp_path / "private").sha256 == load_model(source).sha256


def test_what_happens_to_the_models_own_file_afterwards_changes_nothing(tmp_path: Path) -> None:
    source = network(tmp_path / "net.onnx", external=True)
    loaded = loaded_with_file(source, tmp_path / "private")
    (tmp_path / "net.weights").write_bytes(b"\0" * 64)
    np.testing.assert_array_equal(loaded.model.graph.initializers["w"].const_value.numpy(), WEIGHTS["w"])


def test_a_model_of_less_makes_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_weights, "MIN_MODEL_BYTES", 1 << 20)
    loaded = load_model(network(tmp_path / "net.onnx", external=True), folder_for_weights=lambda: pytest.fail("asked"))
    assert loaded.stored is None
    assert not stored_bytes(loaded.model)


def test_weights_that_passes_made_are_stored_too(tmp_path: Path) -> None:
    loaded = loaded_with_file(network(tmp_path / "net.onnx", external=True), tmp_path / "private")
    made = WEIGHTS["w"] * 2
    loaded.model.graph.initializers["w"].const_value = ir.tensor(made, name="w")
    assert loaded.stored is not None
    loaded.stored.add_made(loaded.model)
    tensor_of_w = loaded.model.graph.initializers["w"].const_value
    assert isinstance(tensor_of_w, ir.ExternalTensor)
    np.testing.assert_array_equal(tensor_of_w.numpy(), made, strict=True)
    assert len(ir.to_proto(loaded.model).SerializeToString()) < MIN_STORED_BYTES


def test_weights_that_bodies_may_read_stay_while_a_message_holds_them(tmp_path: Path, monkeypatch) -> None:
    proto = model(
        "g (float[2048] x, bool c) => (float[2048] y)"
        "{ y = If(c) <then_branch = t () => (float[2048] a) { a = Mul(x, w) },"
        "             else_branch = e () => (float[2048] b) { b = Add(x, w) }> }"
    )
    proto.graph.initializer.append(onnx.numpy_helper.from_array(np.arange(8192, dtype=np.float32)[::4], "w"))
    proto.graph.initializer.append(onnx.numpy_helper.from_array(np.arange(8192, dtype=np.float32), "unused"))
    onnx.save(proto, tmp_path / "net.onnx")
    assert loaded_with_file(tmp_path / "net.onnx", tmp_path / "first").stored is None
    monkeypatch.setattr(stored_weights, "MAX_EMBEDDED_BYTES", 16 << 10)
    loaded = loaded_with_file(tmp_path / "net.onnx", tmp_path / "second")
    assert loaded.stored is not None
    assert loaded.stored.is_beyond_a_message


def test_all_tensors_of_a_file_are_mapped_once(tmp_path: Path) -> None:
    loaded = loaded_with_file(network(tmp_path / "net.onnx", external=True), tmp_path / "private")
    again = model_from_bytes(ir.to_proto(loaded.model).SerializeToString())
    tensors = {name: again.graph.initializers[name].const_value for name in ("w", "half", "count")}
    arrays = {name: tensor_of.numpy() for name, tensor_of in tensors.items()}
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, WEIGHTS[name], strict=True)
        assert tensors[name].tobytes() == WEIGHTS[name].tobytes()
    assert Path("/proc/self/maps").read_text().count(str(tmp_path / "private")) == 1


def test_what_is_embedded_is_the_model_that_names_no_file(tmp_path: Path) -> None:
    source = network(tmp_path / "net.onnx", external=True)
    loaded = loaded_with_file(source, tmp_path / "private")
    plain = load_model(source)
    whole = embedded(loaded.model)
    assert not stored_bytes(whole)
    assert stored_bytes(loaded.model) == sum(WEIGHTS[name].nbytes for name in ("w", "half", "count"))
    assert ir.to_proto(whole).SerializeToString(deterministic=True) == ir.to_proto(plain.model).SerializeToString(
        deterministic=True
    )


def test_elements_of_four_bits_are_unpacked_and_stored_as_they_were(tmp_path: Path) -> None:
    numbers = np.arange(40_000).astype(np.uint8) % 16
    packed = (numbers[1::2] << 4 | numbers[::2]).tobytes()
    proto = model("g () => (uint4[40000] y) { y = Identity(w) }")
    proto.opset_import[0].version, proto.ir_version = 21, 10
    proto.graph.initializer.add(name="w", dims=[40_000], data_type=onnx.TensorProto.UINT4, raw_data=packed)
    onnx.save(proto, tmp_path / "net.onnx")
    loaded = loaded_with_file(tmp_path / "net.onnx", tmp_path / "private")
    tensor_of = loaded.model.graph.initializers["w"].const_value
    assert stored_bytes(loaded.model) == len(packed)
    assert tensor_of.tobytes() == packed
    np.testing.assert_array_equal(tensor_of.numpy().astype(np.uint8), numbers)


@pytest.mark.parametrize(("memory_bytes", "free", "lacking"), [(1, 1 << 40, ["memory"]), (1 << 40, 1, ["TMPDIR"])])
def test_what_a_compile_may_lack_is_said(memory_bytes, free, lacking, tmp_path: Path, monkeypatch) -> None:
    loaded = loaded_with_file(network(tmp_path / "net.onnx", external=True), tmp_path / "private")
    assert loaded.stored is not None
    assert loaded.stored.lacking(1 << 40) == []
    monkeypatch.setattr(stored_weights.shutil, "disk_usage", lambda _: SimpleNamespace(free=free))
    lines = loaded.stored.lacking(memory_bytes)
    assert len(lines) == len(lacking)
    assert all(word in line for word, line in zip(lacking, lines, strict=True))
