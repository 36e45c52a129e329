# SPDX-License-Identifier: Apache-2.0
"""The gate: every refusal, with its exit code, its place and its hint; and what passes."""

import os
import tracemalloc
from pathlib import Path

import onnx
import pytest
from frontend_builders import HEADER, OPSET_17, block, model, model_bytes, node, number, tensor

from nndeploy.errors import InputOutputError, MissingInputError, ModelError, NndeployError, PolicyError
from nndeploy.graph.operator_rules import ANY_DOMAIN, IR_VERSIONS, OPSETS
from nndeploy.onnx_gate.gate import check_bytes, check_file
from nndeploy.onnx_gate.limits import Limits
from nndeploy.onnx_gate.tensor_rules import ELEMENT_TYPES

RELU = "g (float[1] x) => (float[1] y) { y = Relu(x) }"
IF = """g (float[1] x, bool c) => (float[1] y) {
    y = If(c) <then_branch = a () => (float[1] p) { p = %s(x) }, else_branch = b () => (float[1] q) { q = Relu(x) }>
}"""
CALL = "g (float[1] x) => (float[1] y) { y = local.f(x) }\n"
LOCAL = '<ir_version: 8, opset_import: ["" : 17, "local" : 1]>\n'
OTHER = '<ir_version: 8, opset_import: ["" : 17, "%s" : 1]>\n'


def refusal(data: bytes, **options: object) -> NndeployError:
    with pytest.raises(NndeployError) as caught:
        check_bytes(data, **options)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500
    return caught.value


def text(body: str, header: str = HEADER) -> bytes:
    return model(body, header).SerializeToString()


def opset(domain: str, version: int | None) -> bytes:
    return block(8, block(1, domain.encode()), b"" if version is None else number(2, version))


def of_domain(op_type: str, domain: str) -> bytes:
    return model_bytes(node(op_type, domain=domain), after=OPSET_17 + opset(domain, 1))


def function(name: str, body: str, imports: str = '"" : 17, "local" : 1, "other" : 1') -> str:
    return f'<domain: "local", opset_import: [{imports}]> {name} (a) => (b) {{ {body} }}\n'


def doubling(depth: int) -> bytes:
    functions = [function(f"f{i}", f"c = local.f{i + 1}(a) b = local.f{i + 1}(c)") for i in range(depth)]
    return text(CALL.replace("f(x)", "f0(x)") + "".join([*functions, function(f"f{depth}", "b = Relu(a)")]), LOCAL)


def nested(depth: int) -> bytes:
    """Returns a model with `depth` graphs inside one another."""
    graph = b""
    for _ in range(depth - 1):
        graph = node("If", block(5, block(1, b"then_branch"), block(6, graph)))
    return model_bytes(graph)


def typed(depth: int) -> bytes:
    """Returns a model with an input whose type has so many types inside."""
    inner = block(1, number(1, 1))
    for _ in range(depth - 1):
        inner = block(4, block(1, inner))
    return model_bytes(block(11, block(1, b"x"), block(2, inner)))


def sparse(*dims: int) -> bytes:
    values = block(1, number(1, 1), number(2, 1), block(8, b"s"), block(9, b"\0" * 4))
    indices = block(2, number(1, 1), number(2, 7), block(9, b"\0" * 8))
    return model_bytes(block(15, values, indices, *[number(3, dim) for dim in dims]))


def test_tells_what_a_sound_model_holds() -> None:
    facts = check_bytes(text(IF % "Abs"))
    assert (facts.ir_version, facts.opset_imports, facts.has_external_data) == (8, {"": 17}, False)
    assert facts.operators == {("", "If"): 1, ("", "Abs"): 1, ("", "Relu"): 1}
    assert (facts.num_nodes, facts.num_expanded_nodes) == (3, 3)


def test_reads_a_file_once(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(text(RELU))
    data, facts = check_file(path)
    assert (data, facts.num_nodes) == (path.read_bytes(), 1)


def test_what_is_no_file_is_refused_without_waiting_for_a_writer(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.onnx")
    (tmp_path / "file").write_bytes(b"")
    for name, error, words in (
        ("none.onnx", MissingInputError, "no such model file"), (".", ModelError, "not a regular file"),
        ("pipe.onnx", ModelError, "not a regular file"), ("file/m", InputOutputError, "the model cannot be read"),
    ):  # fmt: skip
        with pytest.raises(error, match=words):
            check_file(tmp_path / name)


def test_more_than_2_gib_is_refused_by_size_without_reading(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(b"\x08\x08")
    os.truncate(path, 2_200_000_000)
    tracemalloc.start()
    try:
        with pytest.raises(ModelError, match=r"more than 2147483647 .*use external data"):
            check_file(path)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


ZIP = b"PK\x03\x04" + b"\0" * 40
VERSIONS = "(hint: nndeploy reads the versions 1 to 28)"
REFUSED = [
    ("the file is empty", b""), ("is it an ONNX model", b"hello, this is text"),
    ("looks like a pickle", b"\x80\x04\x95\x0b\0\0\0\0\0\0\0}\x94"),
    ("this is a PyTorch file", ZIP + b"archive/data.pkl"), ("`nndeploy run`", ZIP + b"manifest.json"),
    ("this is a ZIP archive", ZIP), ("`git lfs pull`", b"version https://git-lfs.example/spec/v1\noid sha256:0\n"),
    ("compressed with gzip", b"\x1f\x8b\x08\0"), ("HDF5", b"\x89HDF\r\n"), ("GGUF", b"GGUF\x03\0\0\0"),
    ("TensorFlow Lite", b"\x1c\0\0\0TFL3"), (".ort file", b"\x1c\0\0\0ORTM"),
    ("this is XML", b"<?xml version='1.0'?><net/>"), ("web page", b"<!DOCTYPE html>"), ("web page", b"<html>"),
    ("ONNX text", HEADER.encode() + RELU.encode()), ("JSON", b'{"irVersion": 8}'),
    ("the model has no graph", number(1, 8) + OPSET_17), ("the model has no IR version", block(7) + OPSET_17),
    ("is the file complete", text(RELU)[:30]), ("the node names no operator", model_bytes(block(1))),
    ("its operator set com.microsoft is not imported", model_bytes(node("Gelu", domain="com.microsoft"))),
    ("the attribute 'axis' is there twice",
     model_bytes(node("Concat", *[block(5, block(1, b"axis"), number(3, 1))] * 2))),
    ("the function 'local::f' is defined twice",
     model_bytes(after=OPSET_17 + block(25, block(1, b"f"), block(10, b"local"), block(9, number(2, 17))) * 2)),
    ("more than 1000000 entries of GraphProto.node", model_bytes(b"\x0a\x00" * 1_000_001)),
    ("NodeProto.name is a name of 1048576 bytes (hint: at most 65536)",
     model_bytes(block(1, block(3, b"a" * (1 << 20)), block(4, b"Relu")))),
    ("has no values or no indices", model_bytes(block(15, block(1, number(2, 1))))),
    *((f"IR version {version} (hint: nndeploy reads the versions 1 to 14)", model_bytes(ir_version=version))
      for version in (-1, 0, 15, 9999, 1 << 62)),
    ("", model_bytes(node("Relu"), ir_version=3, after=b"")),
    ("no operator set is imported (hint: nndeploy reads ai.onnx versions 1 to 28)", model_bytes(after=b"")),
    (f"ai.onnx has version 0 {VERSIONS}", model_bytes(after=opset("", 0))),
    ("ai.onnx has no version", model_bytes(after=opset("", None))),
    (f"ai.onnx has version 29 {VERSIONS}", model_bytes(after=opset("", 29))),
    (f"ai.onnx.ml has version 9999 {VERSIONS[:-3]}5)", model_bytes(after=opset("ai.onnx.ml", 9999))),
    (f"com.microsoft has version 2 {VERSIONS[:-7]})", model_bytes(after=opset("com.microsoft", 2))),
    ("some.domain has version -1", model_bytes(after=opset("some.domain", -1))),
    ("the operator set ai.onnx is imported in the versions 17 and 18",
     model_bytes(after=opset("", 17) + opset("", 18))),
    ("the operator set ai.onnx is imported in the versions 17 and 16",
     model_bytes(after=opset("", 17) + opset("ai.onnx", 16))),
    *(("the function 'local::f' calls itself, directly or through others", text(CALL + functions, LOCAL))
      for functions in (function("f", "b = local.f(a)"),
                        function("f", "b = local.h(a)") + function("h", "b = local.f(a)"))),
    *(("more than 1000000 nodes once its functions are put in place", doubling(depth)) for depth in (20, 63, 200)),
    ("function 'local::f': no operator set is imported",
     model_bytes(after=OPSET_17 + block(25, block(1, b"f"), block(10, b"local")))),
    *(("graphs lie more than 16 deep in one another", nested(depth)) for depth in (17, 200, 2000)),
    *(("types lie more than 8 deep", typed(depth)) for depth in (9, 3000)),
    *(("a value has the unknown element type", model_bytes(block(12, block(1, b"y"), block(2, inner))))
      for inner in (block(1, number(1, 46)), block(5, number(1, 29)), block(8, number(1, -1)))),
    ("node 'Constant_0' (Constant): attribute 'value': tensor '': ",
     model_bytes(node("Constant", block(5, block(1, b"value"), block(5, number(1, 2), number(2, 1)))))),
    *(("sparse tensor 's': ", sparse(*dims)) for dims in ((1 << 36,), (-1,), (1 << 20, 1 << 20))),
    *(("has no field 9", number(1, 8) + (b"" if broken[0] == 0x3A else block(7)) + OPSET_17 + broken)
      for broken in (block(14, block(9)), block(26, block(9)), block(7, block(13, block(9))))),
]  # fmt: skip


@pytest.mark.parametrize(("words", "data"), REFUSED, ids=lambda value: value if isinstance(value, str) else "")
def test_what_is_no_sound_model_is_refused_with_a_hint(words: str, data: bytes) -> None:
    error = refusal(data)
    assert error.exit_code == 65
    assert words in str(error)


@pytest.mark.parametrize(("data", "num_nodes", "num_expanded"), [
    (model_bytes(node("Relu"), ir_version=1, after=b""), 1, 1),
    (model_bytes(node("Relu"), ir_version=2, after=b""), 1, 1),
    (model_bytes(after=OPSET_17 + opset("com.microsoft.nchwc", 1)), 0, 0),
    *((model_bytes(node("Any", domain=domain), after=OPSET_17), 1, 1) for domain in ("", "ai.onnx")),
    *((of_domain("Any", domain), 1, 1) for domain in ("ai.onnx.ml", "com.microsoft")),
    (text("g (float[1] x) => (float[1] z) { y = local.f(x)  z = local.f(y) }\n"
          + function("f", "c = Relu(a)  d = Abs(c)  b = Neg(d)"), LOCAL), 5, 6),
    (doubling(10), 22, 1024), (nested(16), 15, 15), (typed(8), 0, 0),
    (model_bytes(after=OPSET_17 + b"".join(
        block(25, block(1, b"f"), block(9, number(2, 17)), block(13, overload)) for overload in (b"a", b"b")
    )), 0, 0),
], ids=lambda value: str(value) if isinstance(value, int) else "")  # fmt: skip
def test_what_is_sound_passes_and_is_counted(data: bytes, num_nodes: int, num_expanded: int) -> None:
    facts = check_bytes(data)
    assert (facts.num_nodes, facts.num_expanded_nodes) == (num_nodes, num_expanded)


def test_the_first_ir_versions_import_operator_set_1() -> None:
    assert check_bytes(model_bytes(node("Relu"), ir_version=2, after=b"")).opset_imports == {"": 1}


def test_the_tables_know_all_that_the_onnx_library_knows() -> None:
    assert onnx.IR_VERSION in IR_VERSIONS
    for schema in onnx.defs.get_all_schemas_with_history():
        assert schema.since_version in OPSETS[schema.domain]
    theirs = {number: name for name, number in onnx.TensorProto.DataType.items() if number}
    assert theirs.items() <= {number: e.name for number, e in ELEMENT_TYPES.items()}.items()


def test_a_foreign_domain_is_refused_by_policy_and_the_node_is_named() -> None:
    data = text("g (float[1] x) => (float[1] y) { y = onnx.brevitas.Trunc(x) }", OTHER % "onnx.brevitas")
    error = refusal(data)
    assert isinstance(error, PolicyError)
    assert str(error) == (
        "node 'Trunc_0' (Trunc): the operator onnx.brevitas::Trunc is not allowed: the domain 'onnx.brevitas' is not "
        "one of ONNX or ONNX Runtime (hint: `--custom-ops LIBRARY` can name a library that implements the domain)"
    )
    assert check_bytes(data, extra_domains={"onnx.brevitas"}).num_nodes == 1
    assert check_bytes(of_domain("Op", "whoever"), extra_domains=ANY_DOMAIN).num_nodes == 1


@pytest.mark.parametrize(("words", "data", "allowed"), [
    ("node 'If_0' (If): attribute 'then_branch': node 'Op_0' (Op): ", text(IF % "other.Op", OTHER % "other"), ()),
    ("function 'local::f': node 'Op_0' (Op): ", text(CALL + function("f", "b = other.Op(a)"), LOCAL), ()),
    *((f"{domain}::{op_type} is not allowed: it ", of_domain(op_type, domain), {"mine"})
      for op_type in ("EPContext", "PyOp", "PythonOp", "Snpe", "ATen", "TritonOp")
      for domain in ("com.microsoft", "mine")),
    ("local::PyOp", text(CALL.replace(".f", ".PyOp") + function("PyOp", "b = Relu(a)"), LOCAL), ()),
    *(("compile the original model", of_domain("Conv", domain), allowed)
      for domain in ("com.microsoft.nchwc", "com.ms.internal.nhwc") for allowed in ((), ANY_DOMAIN)),
    ("whoever::EPContext", of_domain("EPContext", "whoever"), ANY_DOMAIN),
    ("foreign::Op", model_bytes(after=OPSET_17 + block(20, block(2, node("Op", domain="foreign")))), ()),
    ("aaa", model_bytes(block(1, block(3, b"a" * 60_000), block(4, b"Op"), block(7, b"foreign"))), ()),
], ids=lambda value: value if isinstance(value, str) else "")  # fmt: skip
def test_what_nobody_implements_or_carries_code_is_refused_by_policy(words: str, data: bytes, allowed: object) -> None:
    error = refusal(data, extra_domains=allowed)
    assert error.exit_code == 77
    assert words in str(error)


def test_control_characters_in_names_do_not_reach_the_terminal() -> None:
    data = model_bytes(block(1, block(3, b"\x1b[31m\nx"), block(4, b"Op"), block(7, b"foreign")))
    assert "\x1b" not in str(refusal(data))


EXTERNAL = model_bytes(tensor(number(1, 1000) + number(2, 3) + number(14, 1) + block(13, block(1, b"location"))))


@pytest.mark.parametrize(("data", "limit", "passes", "refuses", "words"), [
    (text(RELU), "max_file_bytes", len(text(RELU)), len(text(RELU)) - 1, "use external data"),
    (doubling(10), "max_total_bytes", 1 << 30, 5000, "more than 5000 bytes once its functions"),
    (text(IF % "Abs"), "max_nodes", 3, 2, "the model has more than 2 nodes"),
    (model_bytes(node("Op", *[block(5, block(1, f"a{i}".encode())) for i in range(5)])), "max_attributes", 5, 4,
     "more than 4 attributes"),
    (model_bytes(*[tensor(number(1, 10) + number(2, 3) + block(9, b"\0" * 10))] * 3), "max_total_bytes", 30, 29,
     "together have more than 29 bytes"),
    (EXTERNAL, "max_tensor_bytes", 1000, 999, "the tensor has 1000 bytes (hint: at most 999)"),
    (text(RELU), "max_fields", 1000, 10, "more fields than the gate reads"),
], ids=lambda value: str(value) if isinstance(value, str | int) else "")  # fmt: skip
def test_everything_is_limited(data: bytes, limit: str, passes: int, refuses: int, words: str) -> None:
    check_bytes(data, limits=Limits(**{limit: passes}))
    assert words in str(refusal(data, limits=Limits(**{limit: refuses})))


def test_weights_are_counted_external_and_dense() -> None:
    facts = check_bytes(EXTERNAL)
    assert (facts.has_external_data, facts.num_weight_bytes) == (True, 1000)
    assert check_bytes(sparse(10, 10)).num_weight_bytes == 400 + 4 + 8
    ten = tensor(number(1, 10) + number(2, 3) + block(9, b"\0" * 10))
    assert check_bytes(model_bytes(ten, ten, ten)).num_weight_bytes == 30


FLOATS_2_3 = number(1, 2) + number(1, 3) + number(2, 1)


@pytest.mark.parametrize("fields", [
    number(1, 2) + number(2, 1) + block(9, b"\0" * 8), number(1, 2) + number(2, 1) + block(4, b"\0" * 8),
    number(2, 7) + block(7, b"\x05"), number(1, 0) + number(2, 1), number(1, 1 << 40) + number(1, 0) + number(2, 1),
    number(1, 3) + number(2, 8) + block(6, b"a") * 3, number(1, 3) + number(2, 22) + block(9, b"\0\0"),
    number(1, 3) + number(2, 22) + block(5, b"\0\0"), number(1, 5) + number(2, 26) + block(9, b"\0\0"),
    number(1, 5) + number(2, 27) + block(9, b"\0" * 4), number(1, 5) + number(2, 27) + block(5, b"\0" * 5),
    number(1, 2) + number(2, 14) + block(4, b"\0" * 16), number(1, 2) + number(2, 15) + block(10, b"\0" * 32),
    number(1, 2) + number(2, 12) + block(11, b"\1\1"), number(1, 2) + number(2, 10) + block(5, b"\1\1"),
])  # fmt: skip
def test_data_that_fit_pass(fields: bytes) -> None:
    check_bytes(model_bytes(tensor(fields)))


@pytest.mark.parametrize(("fields", "words"), [
    (number(1, -1) + number(2, 1), "the tensor has the size -1"),
    (number(1, 1) * 65 + number(2, 1), "the tensor has 65 dimensions"),
    (number(1, 1 << 33) * 2 + number(2, 1), "the sizes [8589934592, 8589934592], more than memory can hold"),
    (number(1, (1 << 62) + 1) + number(1, 4) + number(2, 1) + block(9, b"\0" * 16), "more than memory can"),
    (number(1, 1 << 30) + number(2, 1), "the tensor has 4294967296 bytes"),
    (number(1, 2), "the unknown element type None"), (number(2, 0), "the unknown element type 0"),
    (number(2, 29), "the unknown element type 29"), (number(2, (1 << 32) + 1), "the unknown element type 4294967297"),
    (FLOATS_2_3, "has 0 entries in float_data, but its type FLOAT and sizes [2, 3] need 6"),
    (FLOATS_2_3 + block(9, b"\0" * 23), "has 23 bytes of raw data, but its type FLOAT and sizes [2, 3] need 24"),
    (FLOATS_2_3 + block(9, b"\0" * 25), "has 25 bytes of raw data"),
    (FLOATS_2_3 + block(4, b"\0" * 20), "has 5 entries in float_data"),
    (FLOATS_2_3 + block(9, b"\0" * 24) + block(4, b"\0" * 24), "has its data twice, in float_data and raw_data"),
    (FLOATS_2_3 + block(7, b"\0" * 6), "of type FLOAT, whose data cannot lie in int64_data"),
    (number(1, 2) + number(2, 8) + block(9, b"ab"), "of type STRING, whose data cannot lie in raw_data"),
    (number(1, 2) + number(2, 8) + block(6, b"ab"), "has 1 entries in string_data"),
    (FLOATS_2_3 + block(9, b"\0" * 24) + block(3, number(1, 0)), "one segment of several"),
    (FLOATS_2_3 + number(14, 2), "the unknown data location 2"),
    (FLOATS_2_3 + number(14, 1), "its data is external, but not where"),
    (FLOATS_2_3 + number(14, 1) + block(13) + block(9, b"a"), "has external data and raw_data too"),
    (FLOATS_2_3 + block(9, b"\0" * 24) + block(13), "but says that its data is in the model"),
    (number(1, 2) + number(2, 8) + number(14, 1) + block(13), "strings cannot lie in an external file"),
])  # fmt: skip
def test_data_that_do_not_fit_are_refused_and_the_tensor_is_named(fields: bytes, words: str) -> None:
    error = refusal(model_bytes(tensor(fields)))
    assert (error.exit_code, error.where) == (65, "tensor 'w'")
    assert words in str(error)
