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
LOCAL = '<ir_version: 8, opset_import: ["" : 17, "local" : 1]>\n'


def refusal(data: bytes, **options: object) -> NndeployError:
    with pytest.raises(NndeployError) as caught:
        check_bytes(data, **options)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)
    return caught.value


def opset(domain: str, version: int | None) -> bytes:
    return block(8, block(1, domain.encode()), b"" if version is None else number(2, version))


def test_tells_what_a_sound_model_holds() -> None:
    facts = check_bytes(model(IF % "Abs").SerializeToString())
    assert facts.ir_version == 8
    assert facts.opset_imports == {"": 17}
    assert facts.operators == {("", "If"): 1, ("", "Abs"): 1, ("", "Relu"): 1}
    assert (facts.num_nodes, facts.num_expanded_nodes) == (3, 3)
    assert not facts.has_external_data


class TestFiles:
    def test_reads_a_file_once(self, tmp_path: Path) -> None:
        path = tmp_path / "m.onnx"
        path.write_bytes(model(RELU).SerializeToString())
        data, facts = check_file(path)
        assert data == path.read_bytes()
        assert facts.num_nodes == 1

    def test_a_missing_file_is_a_missing_input(self, tmp_path: Path) -> None:
        with pytest.raises(MissingInputError, match="no such model file"):
            check_file(tmp_path / "none.onnx")

    def test_a_folder_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(ModelError, match="not a regular file"):
            check_file(tmp_path)

    def test_a_pipe_is_refused_without_waiting_for_a_writer(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "pipe.onnx")
        with pytest.raises(ModelError, match="not a regular file"):
            check_file(tmp_path / "pipe.onnx")

    def test_a_path_through_a_file_is_an_io_error(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_bytes(b"")
        with pytest.raises(InputOutputError, match="the model cannot be read"):
            check_file(tmp_path / "file" / "m.onnx")

    def test_more_than_2_gib_is_refused_by_size_without_reading(self, tmp_path: Path) -> None:
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


class TestWhatIsNoModel:
    @pytest.mark.parametrize(("data", "words"), [
        (b"", "the file is empty"), (b"hello, this is text", "is it an ONNX model"),
        (b"\x80\x04\x95\x0b\0\0\0\0\0\0\0}\x94", "looks like a pickle"),
        (b"PK\x03\x04" + b"\0" * 40 + b"archive/data.pkl", "this is a PyTorch file"),
        (b"PK\x03\x04" + b"\0" * 40 + b"manifest.json", "`nndeploy run`"),
        (b"PK\x03\x04" + b"\0" * 40, "this is a ZIP archive"),
        (b"version https://git-lfs.example/spec/v1\noid sha256:0\n", "`git lfs pull`"),
        (b"\x1f\x8b\x08\0", "compressed with gzip"), (b"\x89HDF\r\n", "HDF5"), (b"GGUF\x03\0\0\0", "GGUF"),
        (b"\x1c\0\0\0TFL3", "TensorFlow Lite"), (b"\x1c\0\0\0ORTM", ".ort file"),
        (b"<?xml version='1.0'?><net/>", "this is XML"), (b"<!DOCTYPE html>", "web page"), (b"<html>", "web page"),
        (HEADER.encode() + RELU.encode(), "ONNX text"), (b'{"irVersion": 8}', "JSON"),
    ])  # fmt: skip
    def test_is_refused_with_a_hint_what_it_is(self, data: bytes, words: str) -> None:
        error = refusal(data)
        assert error.exit_code == 65
        assert words in str(error)

    def test_bytes_beyond_the_limit_are_refused(self) -> None:
        data = model(RELU).SerializeToString()
        error = refusal(data, limits=Limits(max_file_bytes=len(data) - 1))
        assert "use external data" in str(error)


MALFORMED = {
    "the model has no graph": number(1, 8) + OPSET_17,
    "the model has no IR version": block(7) + OPSET_17,
    "is the file complete": model(RELU).SerializeToString()[:30],
    "its operator set com.microsoft is not imported": model_bytes(node("Gelu", domain="com.microsoft")),
    "the node names no operator": model_bytes(block(1)),
    "the attribute 'axis' is there twice": model_bytes(
        node("Concat", *[block(5, block(1, b"axis"), number(3, 1))] * 2)
    ),
    "the function 'local::f' is defined twice": model_bytes(
        after=OPSET_17 + block(25, block(1, b"f"), block(10, b"local"), block(9, number(2, 17))) * 2
    ),
    "more than 1000000 entries of GraphProto.node": model_bytes(b"\x0a\x00" * 1_000_001),
    "NodeProto.name is a name of 1048576 bytes (hint: at most 65536)": model_bytes(
        block(1, block(3, b"a" * (1 << 20)), block(4, b"Relu"))
    ),
    "has no values or no indices": model_bytes(block(15, block(1, number(2, 1)))),
}


@pytest.mark.parametrize("words", MALFORMED)
def test_what_is_malformed_is_refused(words: str) -> None:
    error = refusal(MALFORMED[words])
    assert error.exit_code == 65
    assert words in str(error)


class TestVersions:
    @pytest.mark.parametrize("version", [-1, 0, 15, 9999, 1 << 62])
    def test_an_unknown_ir_version_is_refused_with_the_known_ones(self, version: int) -> None:
        error = refusal(model_bytes(ir_version=version))
        assert f"IR version {version} (hint: nndeploy reads the versions 1 to 14)" in str(error)
        assert error.exit_code == 65

    @pytest.mark.parametrize(("ir_version", "is_right"), [(1, True), (2, True), (3, False)])
    def test_the_first_ir_versions_import_no_operator_set(self, ir_version: int, is_right: bool) -> None:
        data = model_bytes(node("Relu"), ir_version=ir_version, after=b"")
        if is_right:
            assert check_bytes(data).opset_imports == {"": 1}
        else:
            assert refusal(data).exit_code == 65

    @pytest.mark.parametrize(("imports", "words"), [
        (b"", "no operator set is imported (hint: nndeploy reads ai.onnx versions 1 to 28)"),
        (opset("", 0), "ai.onnx has version 0 (hint: nndeploy reads the versions 1 to 28)"),
        (opset("", None), "ai.onnx has no version"),
        (opset("", 29), "ai.onnx has version 29 (hint: nndeploy reads the versions 1 to 28)"),
        (opset("ai.onnx.ml", 9999), "ai.onnx.ml has version 9999 (hint: nndeploy reads the versions 1 to 5)"),
        (opset("com.microsoft", 2), "com.microsoft has version 2 (hint: nndeploy reads the versions 1)"),
        (opset("some.domain", -1), "some.domain has version -1"),
        (opset("", 17) + opset("", 18), "the operator set ai.onnx is imported in the versions 17 and 18"),
        (opset("", 17) + opset("ai.onnx", 16), "the operator set ai.onnx is imported in the versions 17 and 16"),
    ])  # fmt: skip
    def test_a_wrong_operator_set_is_refused(self, imports: bytes, words: str) -> None:
        error = refusal(model_bytes(after=imports))
        assert words in str(error)
        assert error.exit_code == 65

    def test_an_unknown_domain_may_be_imported_as_long_as_nobody_uses_it(self) -> None:
        assert check_bytes(model_bytes(after=OPSET_17 + opset("com.microsoft.nchwc", 1))).num_nodes == 0

    def test_the_tables_know_all_that_the_onnx_library_knows(self) -> None:
        assert onnx.IR_VERSION in IR_VERSIONS
        for schema in onnx.defs.get_all_schemas_with_history():
            assert schema.since_version in OPSETS[schema.domain]

    def test_every_element_type_of_the_onnx_library_is_known(self) -> None:
        theirs = {number: name for name, number in onnx.TensorProto.DataType.items() if number}
        assert theirs.items() <= {number: e.name for number, e in ELEMENT_TYPES.items()}.items()


class TestOperators:
    def test_a_foreign_domain_is_refused_by_policy_and_the_node_is_named(self) -> None:
        text = model(
            "g (float[1] x) => (float[1] y) { y = onnx.brevitas.Trunc(x) }",
            '<ir_version: 8, opset_import: ["" : 17, "onnx.brevitas" : 1]>\n',
        )
        error = refusal(text.SerializeToString())
        assert isinstance(error, PolicyError)
        assert error.exit_code == 77
        assert str(error) == (
            "node 'Trunc_0' (Trunc): the operator onnx.brevitas::Trunc is not allowed: the domain 'onnx.brevitas' is "
            "not one of ONNX or ONNX Runtime (hint: `--custom-ops LIBRARY` can name a library that implements the "
            "domain)"
        )
        assert check_bytes(text.SerializeToString(), extra_domains={"onnx.brevitas"}).num_nodes == 1

    def test_operators_in_bodies_count(self) -> None:
        text = model(IF % "other.Op", '<ir_version: 8, opset_import: ["" : 17, "other" : 1]>\n')
        error = refusal(text.SerializeToString())
        assert error.exit_code == 77
        assert error.where == "node 'If_0' (If): attribute 'then_branch': node 'Op_0' (Op)"

    def test_operators_in_functions_count(self) -> None:
        text = model(
            "g (float[1] x) => (float[1] y) { y = local.f(x) }\n"
            '<domain: "local", opset_import: ["" : 17, "other" : 1]> f (a) => (b) { b = other.Op(a) }',
            LOCAL,
        )
        error = refusal(text.SerializeToString())
        assert error.exit_code == 77
        assert error.where == "function 'local::f': node 'Op_0' (Op)"

    @pytest.mark.parametrize("op_type", ["EPContext", "PyOp", "PythonOp", "Snpe", "ATen", "TritonOp"])
    @pytest.mark.parametrize("domain", ["com.microsoft", "mine"])
    def test_operators_that_carry_code_are_refused_in_every_domain(self, op_type: str, domain: str) -> None:
        data = model_bytes(node(op_type, domain=domain), after=OPSET_17 + opset(domain, 1))
        error = refusal(data, extra_domains={"mine"})
        assert error.exit_code == 77
        assert f"{domain}::{op_type} is not allowed: it " in str(error)

    def test_a_function_that_is_called_like_such_an_operator_is_refused_too(self) -> None:
        text = model(
            "g (float[1] x) => (float[1] y) { y = local.PyOp(x) }\n"
            '<domain: "local", opset_import: ["" : 17]> PyOp (a) => (b) { b = Relu(a) }',
            LOCAL,
        )
        assert refusal(text.SerializeToString()).exit_code == 77

    @pytest.mark.parametrize("domain", ["com.microsoft.nchwc", "com.ms.internal.nhwc"])
    def test_operators_made_for_one_machine_are_refused(self, domain: str) -> None:
        error = refusal(model_bytes(node("Conv", domain=domain), after=OPSET_17 + opset(domain, 1)))
        assert error.exit_code == 77
        assert "compile the original model" in str(error)

    def test_with_a_library_for_any_domain_only_what_is_made_for_one_machine_or_carries_code_is_refused(self) -> None:
        def data(op_type: str, domain: str) -> bytes:
            return model_bytes(node(op_type, domain=domain), after=OPSET_17 + opset(domain, 1))

        assert check_bytes(data("Op", "whoever"), extra_domains=ANY_DOMAIN).num_nodes == 1
        assert refusal(data("Conv", "com.microsoft.nchwc"), extra_domains=ANY_DOMAIN).exit_code == 77
        assert refusal(data("EPContext", "whoever"), extra_domains=ANY_DOMAIN).exit_code == 77

    @pytest.mark.parametrize("domain", ["", "ai.onnx", "ai.onnx.ml", "com.microsoft"])
    def test_operators_of_onnx_and_onnx_runtime_pass(self, domain: str) -> None:
        imports = OPSET_17 if domain in ("", "ai.onnx") else opset(domain, 1)
        assert check_bytes(model_bytes(node("Any", domain=domain), after=imports)).num_nodes == 1


class TestFunctions:
    def test_calls_of_the_models_own_functions_pass_and_are_counted_with_their_bodies(self) -> None:
        text = model(
            "g (float[1] x) => (float[1] z) { y = local.f(x)  z = local.f(y) }\n"
            '<domain: "local", opset_import: ["" : 17]> f (a) => (b) { c = Relu(a)  d = Abs(c)  b = Neg(d) }',
            LOCAL,
        )
        facts = check_bytes(text.SerializeToString())
        assert (facts.num_nodes, facts.num_expanded_nodes) == (5, 6)

    @pytest.mark.parametrize("functions", [
        '<domain: "local", opset_import: ["local" : 1]> f (a) => (b) { b = local.f(a) }',
        '<domain: "local", opset_import: ["local" : 1]> f (a) => (b) { b = local.h(a) }\n'
        '<domain: "local", opset_import: ["local" : 1]> h (a) => (b) { b = local.f(a) }',
    ])  # fmt: skip
    def test_functions_that_call_themselves_are_refused(self, functions: str) -> None:
        error = refusal(
            model("g (float[1] x) => (float[1] y) { y = local.f(x) }\n" + functions, LOCAL).SerializeToString()
        )
        assert error.exit_code == 65
        assert "the function 'local::f' calls itself, directly or through others" in str(error)

    def doubling(self, depth: int) -> bytes:
        functions = [
            f'<domain: "local", opset_import: ["local" : 1]> f{i} (a) => (b) {{ c = local.f{i + 1}(a) '
            f"b = local.f{i + 1}(c) }}"
            for i in range(depth)
        ]
        last = f'<domain: "local", opset_import: ["" : 17]> f{depth} (a) => (b) {{ b = Relu(a) }}'
        text = "g (float[1] x) => (float[1] y) { y = local.f0(x) }\n" + "\n".join([*functions, last])
        return model(text, LOCAL).SerializeToString()

    def test_functions_that_double_are_counted_with_what_they_become(self) -> None:
        assert check_bytes(self.doubling(10)).num_expanded_nodes == 1024

    @pytest.mark.parametrize("depth", [20, 63, 200])
    def test_functions_that_become_too_many_nodes_are_refused(self, depth: int) -> None:
        error = refusal(self.doubling(depth))
        assert error.exit_code == 65
        assert "more than 1000000 nodes once its functions are put in place" in str(error)

    def test_functions_that_become_too_many_bytes_are_refused(self) -> None:
        error = refusal(self.doubling(10), limits=Limits(max_total_bytes=5000))
        assert "more than 5000 bytes once its functions" in str(error)

    def test_functions_with_different_overloads_are_different(self) -> None:
        function = [block(25, block(1, b"f"), block(9, number(2, 17)), block(13, o)) for o in (b"a", b"b")]
        assert check_bytes(model_bytes(after=OPSET_17 + b"".join(function))).num_nodes == 0

    def test_a_function_must_import_its_operators(self) -> None:
        function = block(25, block(1, b"f"), block(10, b"local"))
        error = refusal(model_bytes(after=OPSET_17 + function))
        assert error.where == "function 'local::f'"
        assert "no operator set is imported" in str(error)


class TestBombs:
    def nested(self, depth: int) -> bytes:
        """Returns a model with `depth` graphs inside one another."""
        graph = b""
        for _ in range(depth - 1):
            graph = node("If", block(5, block(1, b"then_branch"), block(6, graph)))
        return model_bytes(graph)

    def test_sixteen_graphs_inside_one_another_pass(self) -> None:
        assert check_bytes(self.nested(16)).num_nodes == 15

    @pytest.mark.parametrize("depth", [17, 200, 2000])
    def test_deeper_graphs_are_refused(self, depth: int) -> None:
        error = refusal(self.nested(depth))
        assert "graphs lie more than 16 deep in one another" in str(error)
        assert error.exit_code == 65
        assert len(str(error)) < 300

    def test_types_inside_one_another_are_limited(self) -> None:
        def value(depth: int) -> bytes:
            inner = block(1, number(1, 1))
            for _ in range(depth - 1):
                inner = block(4, block(1, inner))
            return block(11, block(1, b"x"), block(2, inner))

        assert check_bytes(model_bytes(value(8))).num_nodes == 0
        assert "types lie more than 8 deep" in str(refusal(model_bytes(value(9))))
        assert "types lie more than 8 deep" in str(refusal(model_bytes(value(3000))))

    @pytest.mark.parametrize("inner", [block(1, number(1, 46)), block(5, number(1, 29)), block(8, number(1, -1))])
    def test_a_type_of_unknown_elements_is_refused(self, inner: bytes) -> None:
        data = model_bytes(block(12, block(1, b"y"), block(2, inner)))
        assert "a value has the unknown element type" in str(refusal(data))

    def test_nodes_are_limited_over_all_graphs(self) -> None:
        data = model(IF % "Abs").SerializeToString()
        assert check_bytes(data, Limits(max_nodes=3)).num_nodes == 3
        error = refusal(data, limits=Limits(max_nodes=2))
        assert str(error).endswith("the model has more than 2 nodes")

    def test_attributes_are_limited(self) -> None:
        data = model_bytes(node("Op", *[block(5, block(1, f"a{i}".encode())) for i in range(5)]))
        assert check_bytes(data, Limits(max_attributes=5)).num_nodes == 1
        assert "more than 4 attributes" in str(refusal(data, limits=Limits(max_attributes=4)))

    def test_fields_are_limited(self) -> None:
        assert "more fields than the gate reads" in str(
            refusal(model(RELU).SerializeToString(), limits=Limits(max_fields=10))
        )

    def test_a_long_name_is_shortened_in_messages(self) -> None:
        data = model_bytes(block(1, block(3, b"a" * 60_000), block(4, b"Op"), block(7, b"foreign")))
        assert len(str(refusal(data))) < 500

    def test_control_characters_in_names_do_not_reach_the_terminal(self) -> None:
        data = model_bytes(block(1, block(3, b"\x1b[31m\nx"), block(4, b"Op"), block(7, b"foreign")))
        assert "\x1b" not in str(refusal(data))


class TestTensors:
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
    def test_data_that_fit_pass(self, fields: bytes) -> None:
        check_bytes(model_bytes(tensor(fields)))

    @pytest.mark.parametrize(("fields", "words"), [
        (number(1, -1) + number(2, 1), "the tensor has the size -1"),
        (number(1, 1) * 65 + number(2, 1), "the tensor has 65 dimensions"),
        (number(1, 1 << 33) * 2 + number(2, 1), "the sizes [8589934592, 8589934592], more than memory can hold"),
        (number(1, (1 << 62) + 1) + number(1, 4) + number(2, 1) + block(9, b"\0" * 16), "more than memory can"),
        (number(1, 1 << 30) + number(2, 1), "the tensor has 4294967296 bytes"),
        (number(1, 2), "the unknown element type None"), (number(2, 0), "the unknown element type 0"),
        (number(2, 29), "the unknown element type 29"),
        (number(2, (1 << 32) + 1), "the unknown element type 4294967297"),
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
    def test_data_that_do_not_fit_are_refused_and_the_tensor_is_named(self, fields: bytes, words: str) -> None:
        error = refusal(model_bytes(tensor(fields)))
        assert error.exit_code == 65
        assert words in str(error)
        assert error.where == "tensor 'w'"

    def test_tensors_in_attributes_are_checked_and_the_node_is_named(self) -> None:
        constant = node("Constant", block(5, block(1, b"value"), block(5, number(1, 2), number(2, 1))))
        error = refusal(model_bytes(constant))
        assert error.where == "node 'Constant_0' (Constant): attribute 'value': tensor ''"

    def test_all_tensors_together_are_limited(self) -> None:
        data = model_bytes(*[tensor(number(1, 10) + number(2, 3) + block(9, b"\0" * 10))] * 3)
        assert check_bytes(data, Limits(max_total_bytes=30)).num_weight_bytes == 30
        assert "together have more than 29 bytes" in str(refusal(data, limits=Limits(max_total_bytes=29)))

    def test_the_size_of_external_data_counts(self) -> None:
        external = tensor(number(1, 1000) + number(2, 3) + number(14, 1) + block(13, block(1, b"location")))
        facts = check_bytes(model_bytes(external))
        assert facts.has_external_data
        assert facts.num_weight_bytes == 1000
        error = refusal(model_bytes(external), limits=Limits(max_tensor_bytes=999))
        assert "the tensor has 1000 bytes (hint: at most 999)" in str(error)

    def sparse(self, *dims: int) -> bytes:
        values = block(1, number(1, 1), number(2, 1), block(8, b"s"), block(9, b"\0" * 4))
        indices = block(2, number(1, 1), number(2, 7), block(9, b"\0" * 8))
        return block(15, values, indices, *[number(3, dim) for dim in dims])

    def test_a_sparse_tensor_counts_with_its_dense_size(self) -> None:
        assert check_bytes(model_bytes(self.sparse(10, 10))).num_weight_bytes == 400 + 4 + 8

    @pytest.mark.parametrize("dims", [(1 << 36,), (-1,), (1 << 20, 1 << 20)])
    def test_a_sparse_tensor_that_is_too_large_when_dense_is_refused(self, dims: tuple[int, ...]) -> None:
        error = refusal(model_bytes(self.sparse(*dims)))
        assert error.exit_code == 65
        assert error.where == "sparse tensor 's'"


def test_training_graphs_are_walked_too() -> None:
    training = block(20, block(2, node("Op", domain="foreign")))
    assert refusal(model_bytes(after=OPSET_17 + training)).exit_code == 77


def test_messages_without_rules_must_be_well_formed() -> None:
    for broken in (block(14, block(9)), block(26, block(9)), block(7, block(13, block(9)))):
        data = number(1, 8) + (b"" if broken[0] == 0x3A else block(7)) + OPSET_17 + broken
        assert "has no field 9" in str(refusal(data))
