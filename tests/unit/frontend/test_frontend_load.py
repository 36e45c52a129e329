# SPDX-License-Identifier: Apache-2.0
"""The load stage as a whole: what comes out for what goes in, and what each later check refuses."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnx.helper
import onnx.numpy_helper
import onnx.reference
import onnx_ir as ir
import pytest
from frontend_builders import HEADER, model, outputs_of

from nndeploy.errors import MissingInputError, ModelError, NndeployError, UsageError
from nndeploy.frontend.load import load_model
from nndeploy.graph.map_types import map_type_of
from nndeploy.graph.onnx_types import value_type_from_onnx
from nndeploy.values.types import MapType, OptionalType, SequenceType, TensorType

MLP = """net (float[N,4] x) => (float[N,2] y) <float[4,2] w = {1,2,3,4,5,6,7,8}, float[2] b = {1,1}> {
    h = MatMul(x, w)
    y = Add(h, b)
}"""


def refusal(body: str, header: str = HEADER) -> NndeployError:
    with pytest.raises(NndeployError) as caught:
        load_model(model(body, header))
    assert "\n" not in str(caught.value)
    return caught.value


def types(loaded_values: tuple[object, ...]) -> list[str]:
    return [f"{v.name}: {v.type}" for v in loaded_values]  # type: ignore[attr-defined]


class TestSources:
    def test_a_path_bytes_an_onnx_model_and_an_ir_model_load_alike(self, tmp_path: Path) -> None:
        proto = model(MLP)
        path = tmp_path / "mlp.v1.onnx"
        path.write_bytes(proto.SerializeToString())
        for source in (path, str(path), path.read_bytes(), proto, ir.from_proto(proto)):
            loaded = load_model(source)
            assert types(loaded.inputs) == ["x: float32[N,4]"]
            assert types(loaded.outputs) == ["y: float32[N,2]"]
            assert [node.op_type for node in loaded.model.graph] == ["MatMul", "Add"]

    def test_the_name_is_the_files_or_the_graphs(self, tmp_path: Path) -> None:
        path = tmp_path / "mlp.v1.onnx"
        path.write_bytes(model(MLP).SerializeToString())
        assert load_model(path).name == "mlp.v1"
        assert load_model(model(MLP)).name == "net"

    def test_the_source_is_not_changed(self) -> None:
        proto = model(MLP)
        before = proto.SerializeToString()
        load_model(proto, shapes={"x": "3,4"})
        assert proto.SerializeToString() == before

    def test_errors_name_the_file(self, tmp_path: Path) -> None:
        with pytest.raises(MissingInputError) as missing:
            load_model(tmp_path / "none.onnx")
        assert missing.value.where == str(tmp_path / "none.onnx")
        path = tmp_path / "bad.onnx"
        path.write_bytes(model("g (float[1] x) => (float[1] y) { y = Add(x, z) }").SerializeToString())
        with pytest.raises(ModelError) as bad:
            load_model(path)
        assert bad.value.where == f"{path}: node 'Add_0' (Add)"

    @pytest.mark.parametrize(("owner", "name", "words"), [
        (onnx.ModelProto, "SerializeToString", "cannot be serialised: too large"),
        (onnx, "load_from_string", "the model cannot be parsed: too large"),
    ])  # fmt: skip
    def test_a_model_that_protobuf_cannot_write_or_read_is_refused(
        self, owner: object, name: str, words: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(*_: object, **__: object) -> bytes:
            raise ValueError("too large")

        proto = model(MLP)
        monkeypatch.setattr(owner, name, fail)
        with pytest.raises(ModelError, match=words):
            load_model(proto)


class TestOriginalAndModel:
    def test_large_weights_are_whole_in_both(self) -> None:
        weights = np.arange(4000, dtype=np.float32).reshape(4, 1000)
        proto = model("g (float[N,4] x) => (float[N,1000] y) { y = MatMul(x, w) }")
        proto.graph.initializer.append(onnx.numpy_helper.from_array(weights, "w"))
        loaded = load_model(proto)
        assert [value.name for value in loaded.model.graph.inputs] == ["x"]
        np.testing.assert_array_equal(loaded.model.graph.initializers["w"].const_value.numpy(), weights)
        np.testing.assert_array_equal(onnx.numpy_helper.to_array(loaded.original.graph.initializer[0]), weights)
        serialised = ir.to_proto(loaded.model)
        np.testing.assert_array_equal(onnx.numpy_helper.to_array(serialised.graph.initializer[0]), weights)

    @pytest.mark.parametrize(("ir_version", "operator", "choice", "is_input"), [
        (3, "Add", "auto", False), (3, "Add", "inputs", False), (8, "Add", "auto", True),
        (8, "Add", "constants", False), (8, "MatMul", "auto", False), (8, "MatMul", "inputs", True),
    ])  # fmt: skip
    def test_initializers_that_are_listed_as_inputs(
        self, ir_version: int, operator: str, choice: str, is_input: bool
    ) -> None:
        header = f'<ir_version: {ir_version}, opset_import: ["" : 8]>\n'
        proto = model(f"g (float[1,1] x) => (float[1,1] y) <float[1,1] w = {{2}}> {{ y = {operator}(x, w) }}", header)
        proto.graph.input.append(onnx.helper.make_tensor_value_info("w", 1, [1, 1]))
        loaded = load_model(proto, initializer_inputs=choice)
        inputs = ["x", "w"] if is_input else ["x"]
        assert [named.name for named in loaded.inputs] == inputs
        assert [value.name for value in loaded.model.graph.inputs] == inputs
        assert [value.name for value in loaded.original.graph.input] == inputs
        assert list(loaded.model.graph.initializers) == ([] if is_input else ["w"])
        assert {name: value.tolist() for name, value in loaded.defaults.items()} == ({"w": [[2]]} if is_input else {})
        assert loaded.model.ir_version == max(ir_version, 4)
        assert len(loaded.warnings) == (choice == "auto" and operator == "MatMul")
        onnx.checker.check_model(loaded.original)

    def test_initializers_are_inputs_where_some_weights_are_not_listed(self) -> None:
        weights = "<float[1,1] v = {2}, float[1,1] w = {2}>"
        proto = model(f"g (float[1,1] x) => (float[1,1] y) {weights} {{ t = MatMul(x, v)  y = MatMul(t, w) }}")
        proto.graph.input.append(onnx.helper.make_tensor_value_info("w", 1, [1, 1]))
        loaded = load_model(proto)
        assert loaded.defaults.keys() == {"w"}
        closed = loaded.without_defaults()
        assert [named.name for named in closed.inputs] == ["x"]
        assert {tensor.name for tensor in closed.original.graph.initializer} == {"v", "w"}
        (whole,) = loaded.filled([{"x": np.float32([[1]])}])
        assert whole.keys() == {"x", "w"}

    def test_an_output_that_is_listed_again_is_listed_once(self) -> None:
        then = "a () => (float[1] t, float[1] t) { t = Relu(x) }"
        other = "b () => (float[1] u, float[1] v) { u = Abs(x)  v = Abs(x) }"
        nodes = f"y, z = If(c) <then_branch = {then}, else_branch = {other}>"
        loaded = load_model(model(f"g (float[1] x, bool c) => (float[1] y, float[1] y, float[1] z) {{ {nodes} }}"))
        assert [named.name for named in loaded.outputs] == ["y", "z"]
        onnx.checker.check_model(loaded.original)

    def test_a_graph_may_have_no_name_and_an_output_no_type(self) -> None:
        proto = model("g (float[1] x) => (float[1] y) { y = Relu(x) }")
        proto.graph.ClearField("name")
        proto.graph.output[0].ClearField("type")
        assert types(load_model(proto).outputs) == ["y: float32[1]"]

    def test_a_model_of_the_first_ir_version_is_one_of_opset_1(self) -> None:
        proto = model(
            "g (float[2,3] x) => (float[2,3] y) <float[2] b = {1, 2}> { y = Add <broadcast = 1, axis = 0> (x, b) }"
        )
        proto.ir_version = 1
        proto.graph.input.append(onnx.helper.make_tensor_value_info("b", 1, [2]))
        proto.ClearField("opset_import")
        x = np.zeros((2, 3), np.float32)
        np.testing.assert_array_equal(outputs_of(load_model(proto).original, {"x": x})["y"], x + np.float32([[1], [2]]))

    def test_a_model_without_operators_of_onnx_imports_them_all_the_same(self) -> None:
        proto = model(
            "g (float[1] x) => (float[1] y) { y = com.microsoft.Gelu(x) }",
            '<ir_version: 8, opset_import: ["com.microsoft" : 1]>\n',
        )
        assert "" in load_model(proto).model.opset_imports

    def test_training_information_is_left_out(self) -> None:
        proto = model(MLP)
        proto.training_info.add().initialization.name = "init"
        assert not load_model(proto).original.training_info

    def test_a_size_of_minus_one_is_a_size_that_is_not_known(self) -> None:
        proto = model("g (float[1,4] x) => (float[1,4] y) { y = Relu(x) }")
        for value in (*proto.graph.input, *proto.graph.output):
            value.type.tensor_type.shape.dim[0].dim_value = -1
        loaded = load_model(proto)
        assert types(loaded.inputs) == ["x: float32[?,4]"]
        assert types(loaded.outputs) == ["y: float32[?,4]"]

    def test_symbols_that_the_inference_invents_stay_out_of_the_outputs(self) -> None:
        loaded = load_model(model("g (float[N] x) => (int64[1,M] y) { y = NonZero(x) }"))
        assert types(loaded.outputs) == ["y: int64[1,M]"]
        proto = model("g (float[N] x) => (int64[1,M] y) { y = NonZero(x) }")
        proto.graph.output[0].type.tensor_type.shape.dim[1].ClearField("dim_param")
        assert types(load_model(proto).outputs) == ["y: int64[1,?]"]


class TestTypes:
    def test_sizes_without_a_name_have_one_inside(self) -> None:
        loaded = load_model(model("g (float[?,4] x, float[N,?] z) => (float[?,4] y) { y = Relu(x) w = Relu(z) }"))
        assert types(loaded.inputs) == ["x: float32[?,4]", "z: float32[N,?]"]
        assert [str(value.shape) for value in loaded.model.graph.inputs] == ["[x.0,4]", "[N,z.1]"]
        assert types(loaded.outputs) == ["y: float32[?,4]"]

    @pytest.mark.parametrize(("rows", "labels"), [("?", "?"), ("N", "N"), ("1", "1")])
    def test_there_are_as_many_labels_as_rows(self, rows: str, labels: str) -> None:
        """Converters write that there is one, whatever the number of rows."""
        body = f"""g (float[{rows},1] x) => (int64[1] l, float[{rows},2] y) {{
            k, y = ai.onnx.ml.LinearClassifier<coefficients=[1.0, 2.0], intercepts=[0.0, 0.0], classlabels_ints=[0, 1]>
            (x) i = Identity(k) l = Cast<to=7>(i) }}"""
        loaded = load_model(model(body, '<ir_version: 8, opset_import: ["" : 17, "ai.onnx.ml" : 1]>\n'))
        assert types(loaded.outputs)[0] == f"l: int64[{labels}]"

    UNKNOWN = (
        "h = Shape(x)  f = Cast <to = 1> (h)  r = Mul(f, f)  q = Sqrt(r)  s = Cast <to = 7> (q)  y = Reshape(x, s)"
    )

    @pytest.mark.parametrize(("given", "declared", "nodes", "want", "num_warnings"), [
        ("2,3", "2,4", "y = Relu(x)", "float32[2,3]", 1), ("2,3", "6", "y = Relu(x)", "float32[2,3]", 1),
        ("N,3", "1,3", "y = Relu(x)", "float32[N,3]", 0), ("N,3", "3,N", "y = Relu(x)", "float32[N,3]", 0),
        ("N,3", "N,3", "y = Concat <axis = 0> (x, x)", "float32[?,3]", 0),
        ("2,3", "A,B", "y = Relu(x)", "float32[2,3]", 0), ("2,3", "2,3", UNKNOWN, "float32[2,3]", 0),
        ("N,3", "1,3", UNKNOWN, "float32[?,?]", 0), ("N,3", "rows,3", UNKNOWN, "float32[rows,?]", 0),
        ("N,3", "6", UNKNOWN, "float32[?,?]", 1), ("2,3", "2,3", "y = Identity(x)", "float32[2,3]", 0),
    ])  # fmt: skip
    def test_outputs_are_what_the_operators_say_and_what_nothing_contradicts(
        self, given: str, declared: str, nodes: str, want: str, num_warnings: int
    ) -> None:
        loaded = load_model(model(f"g (float[{given}] x) => (float[{declared}] y) {{ {nodes} }}"))
        assert types(loaded.outputs) == [f"y: {want}"]
        assert len(loaded.warnings) == num_warnings
        (output,) = loaded.original.graph.output
        assert str(value_type_from_onnx(output.type)) == want

    @pytest.mark.parametrize(
        ("branches", "want"), [("2,3} 2,3", "float32[2,3]"), ("2,3} 4,3", "float32[?,3]"), ("2,3} 3", "float32[...]")]
    )
    def test_ranks_that_depend_on_a_branch_are_not_declared(self, branches: str, want: str) -> None:
        nodes = {"2,3": "Relu(x)", "4,3": "Concat <axis = 0> (x, x)", "3": "Gather(x, zero)"}
        first, second = (nodes[shape] for shape in branches.split("} "))
        then = f"a () => (float[?] p) {{ zero = Constant <value_int = 0> ()  p = {first} }}"
        other = f"b () => (float[?] q) {{ zero = Constant <value_int = 0> ()  q = {second} }}"
        nodes_text = f"z = If(c) <then_branch = {then}, else_branch = {other}>  y = Identity(z)"
        body = f"g (float[2,3] x, bool c) => (float[7] y) {{ {nodes_text} }}"
        assert types(load_model(model(body)).outputs) == [f"y: {want}"]

    @pytest.mark.parametrize("name", ["?", "*", "-1", "None", "unk__12", "unknown", "_"])
    def test_sizes_with_names_that_say_nothing_are_each_their_own(self, name: str) -> None:
        proto = model("g (float[2,3] x) => (float[2,3] y) { y = Relu(x) }")
        for value in (*proto.graph.input, *proto.graph.output):
            for dim in value.type.tensor_type.shape.dim:
                dim.dim_param = name
        loaded = load_model(proto)
        assert types(loaded.inputs) == ["x: float32[?,?]"]
        assert str(loaded.model.graph.inputs[0].shape) == "[x.0,x.1]"

    def test_sequences_and_optionals_keep_their_types(self) -> None:
        body = "g (float[2] x) => (seq(float[2]) s, optional(float[2]) o) { s = SequenceConstruct(x)  o = Optional(x) }"
        loaded = load_model(model(body))
        assert loaded.outputs[0].type == SequenceType(TensorType("float32", (2,)))
        assert loaded.outputs[1].type == OptionalType(TensorType("float32", (2,)))

    def test_maps_keep_their_types_beside_the_internal_model_which_has_none(self) -> None:
        proto = model(
            "g (float[1,2] x) => (seq(map(int64, float)) z) "
            "{ z = ai.onnx.ml.ZipMap <classlabels_int64s = [1, 2]> (x) }",
            '<ir_version: 8, opset_import: ["" : 17, "ai.onnx.ml" : 1]>\n',
        )
        loaded = load_model(proto)
        want = SequenceType(MapType("int64", TensorType("float32", ())))
        assert [str(o.type) for o in loaded.outputs] == [str(want)]
        (value,) = loaded.model.graph.outputs
        assert value.type is None
        assert str(map_type_of(value)) == str(want)

    def test_a_tensor_may_have_no_shape(self) -> None:
        proto = model("g (float[1] x, float[2] z) => (float[1] y, float[2] w) { y = Relu(x) w = Relu(z) }")
        proto.graph.input[0].type.tensor_type.ClearField("shape")
        for value in proto.graph.output:
            value.type.tensor_type.ClearField("shape")
        loaded = load_model(proto)
        assert types(loaded.inputs) == ["x: float32[...]", "z: float32[2]"]
        assert types(loaded.outputs) == ["y: float32[...]", "w: float32[2]"]

    def test_an_input_with_too_many_dimensions_is_refused_and_named(self) -> None:
        sizes = ",".join(["1"] * 65)
        error = refusal(f"g (float[{sizes}] x) => (float[{sizes}] y) {{ y = Relu(x) }}")
        assert str(error) == "input 'x': it has 65 dimensions (hint: at most 64)"

    @pytest.mark.parametrize(("change", "words"), [
        (lambda kind: kind.Clear(), "it has no type"),
        (lambda kind: setattr(kind.sparse_tensor_type, "elem_type", 1), "it has a sparse tensor type"),
        (lambda kind: setattr(kind.tensor_type, "elem_type", 27), "the element type FLOAT6E2M3, which nndeploy"),
        (lambda kind: setattr(kind.tensor_type, "elem_type", 0), "the element type 0"),
    ])  # fmt: skip
    def test_a_type_that_nothing_runs_is_refused_and_named(
        self, change: Callable[[onnx.TypeProto], None], words: str
    ) -> None:
        proto = model("g (float[1] x) => (float[1] y) { y = Relu(x) }")
        change(proto.graph.input[0].type)
        with pytest.raises(ModelError) as caught:
            load_model(proto)
        assert words in str(caught.value)
        assert caught.value.where == "input 'x'"


class TestOperators:
    @pytest.mark.parametrize(("body", "exit_code", "words"), [
        ("g (float[1] x) => (float[1] y) { y = Reluu(x) }", 77,
         "node 'Reluu_0' (Reluu): the operator Reluu is unknown (hint: did you mean 'Relu'?)"),
        ("g (float[1] x) => (float[1] y) { y = Gelu(x) }", 65,
         "node 'Gelu_0' (Gelu): the operator Gelu is not in version 17 of ai.onnx, which the model imports "
         "(hint: it came with version 20)"),
        ("g (float[1] x, bool c) => (float[1] y) { y = If(c) <then_branch = a () => (float[1] p) { p = Nope(x) }, "
         "else_branch = b () => (float[1] q) { q = Abs(x) }> }", 77, "Nope is unknown"),
        ("g (float[1] x) => (float[1] y) { y = local.f(x) }\n"
         '<domain: "local", opset_import: ["" : 17]> f (a) => (b) { b = Nope(a) }', 77, "Nope is unknown"),
        ("g (float[1] x) => (float[1] y) { y = Concat(x) }", 65, "node 'Concat_0' (Concat): Required attribute 'axis'"),
        ("g (float[1] x) => (float[1] y) { y = Relu <foo = 1> (x) }", 65,
         "Unrecognized attribute: foo for operator Relu"),
        ("g (float[1] x) => (float[1] y) { y = Relu(x, x) }", 65, "node 'Relu_0' (Relu): Node(Relu_0) with schema"),
        ("g (float[1,3] x, float[4,4] w) => (float[1,4] y) { y = MatMul(x, w) }", 65,
         "node 'MatMul_0' (MatMul): Incompatible dimensions for matrix multiplication"),
        ("g (string[1] x) => (string[1] y) { y = Relu(x) }", 65,
         "node 'Relu_0' (Relu): X typestr: T, has unsupported"),
        ("g (float[1] x) => (int64[1] y) { y = Relu(x) }", 65, "output 'y': it is float32, the model declares int64"),
        ("g (float[1] x, bool c) => (float[1] y) { y = If(c) <then_branch = a () => (float[1] p) { p = Concat(x) }, "
         "else_branch = b () => (float[1] q) { q = Abs(x) }> }", 65,
         "node 'Concat_0' (Concat): Required attribute 'axis'"),
    ])  # fmt: skip
    def test_what_cannot_work_is_refused_and_the_node_is_named(self, body: str, exit_code: int, words: str) -> None:
        error = refusal(body, HEADER.replace("17]", '17, "local" : 1]'))
        assert error.exit_code == exit_code
        assert words in str(error)

    def test_operators_of_onnx_runtime_and_of_allowed_domains_are_not_looked_up(self) -> None:
        proto = model(
            "g (float[1] x) => (float[1] y) { a = com.microsoft.AnyOp(x)  y = mine.Op(a) }",
            '<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1, "mine" : 1]>\n',
        )
        loaded = load_model(proto, extra_domains={"mine"})
        assert [node.op_type for node in loaded.model.graph] == ["AnyOp", "Op"]

    def test_a_text_that_is_not_utf8_is_refused(self) -> None:
        proto = model(
            'g (float[1,1,2,2] x, float[4] s) => (float[1,1,4,4] y) { y = Resize <mode = "linear"> (x, , s) }'
        )
        proto.graph.node[0].attribute[0].s = b"\xff\xfe"
        with pytest.raises(ModelError, match="the attribute 'mode' is not UTF-8"):
            load_model(proto)

    @pytest.mark.parametrize(("body", "words"), [
        ("g (float[2,3] x) => (float[2,3] y) { y = LayerNormalization <axis = 2147483648> (x, x) }",
         "node 'LayerNormalization_0' (LayerNormalization): the attribute 'axis' is 2147483648"),
        ("g (float[2,3] x) => (float[2,3] y) { y = MeanVarianceNormalization <axes = [0, -65]> (x) }",
         "the attribute 'axes' is -65"),
        ("g (float[6] x) => (float[2] a, float[2] b, float[2] c) { a, b, c = Split <num_outputs = 2> (x) }",
         "node 'Split_0' (Split): num_outputs is 2, but there are 3 outputs"),
    ])  # fmt: skip
    def test_indices_that_crash_the_inference_are_refused_before(self, body: str, words: str) -> None:
        error = refusal(body, '<ir_version: 8, opset_import: ["" : 18]>\n')
        assert error.exit_code == 65
        assert words in str(error)


class TestShapes:
    def test_a_fixed_size_reaches_every_value(self) -> None:
        loaded = load_model(model(MLP), shapes={"x": "5,4"})
        assert types(loaded.inputs) == ["x: float32[5,4]"]
        assert types(loaded.outputs) == ["y: float32[5,2]"]
        assert [str(v.shape) for node in loaded.model.graph for v in node.outputs] == ["[5,2]", "[5,2]"]
        assert loaded.original.graph.input[0].type.tensor_type.shape.dim[0].dim_value == 5

    def test_stale_symbols_in_between_give_way_to_sizes(self) -> None:
        proto = model(MLP.replace("b = {1,1}", "b = {1,1}, float[Old,2] h"))
        loaded = load_model(proto, shapes={"x": "5,4"})
        assert str(loaded.model.graph.node(0).outputs[0].shape) == "[5,2]"

    def test_a_wrong_shape_is_a_usage_error(self) -> None:
        with pytest.raises(UsageError, match="the model has no input 'z'"):
            load_model(model(MLP), shapes={"z": "1,4"})
        with pytest.raises(UsageError, match="axis 1 of the input 'x' is 4 in the model, not 5"):
            load_model(model(MLP), shapes={"x": "1,5"})
        with pytest.raises(UsageError, match=r"shape of 'x': the range 8\.\.1 is empty"):
            load_model(model(MLP), shapes={"x": "8..1,4"})

    def test_a_size_with_which_a_node_cannot_work_is_refused_and_the_node_is_named(self) -> None:
        body = "g (float[N] x) => (float[M] y) <float[4] b = {1,1,1,1}> { y = Add(x, b) }"
        assert load_model(model(body), shapes={"x": "4"}).outputs[0].type == TensorType("float32", (4,))
        with pytest.raises(ModelError, match="node 'Add_0' \\(Add\\): Incompatible dimensions"):
            load_model(model(body), shapes={"x": "3"})


class TestSparse:
    def sparse(self, indices: list[int] | list[list[int]], dims: list[int]) -> onnx.ModelProto:
        proto = model("g (float[2,3] x) => (float[2,3] y) { y = Add(x, s) }")
        sparse = proto.graph.sparse_initializer.add(dims=dims)
        sparse.values.CopyFrom(onnx.numpy_helper.from_array(np.array([5, 7], np.float32), "s"))
        sparse.indices.CopyFrom(onnx.numpy_helper.from_array(np.array(indices, np.int64)))
        return proto

    @pytest.mark.parametrize("indices", [[1, 5], [[0, 1], [1, 2]]])
    def test_a_sparse_weight_becomes_a_dense_one(self, indices: list[int]) -> None:
        loaded = load_model(self.sparse(indices, [2, 3]))
        np.testing.assert_array_equal(loaded.model.graph.initializers["s"].const_value.numpy(), [[0, 5, 0], [0, 0, 7]])
        assert not loaded.original.graph.sparse_initializer

    def test_a_sparse_constant_becomes_a_dense_one(self) -> None:
        proto = self.sparse([1, 5], [2, 3])
        constant = onnx.helper.make_node("Constant", [], ["s"])
        constant.attribute.add(name="sparse_value", type=11).sparse_tensor.CopyFrom(proto.graph.sparse_initializer[0])
        proto.graph.ClearField("sparse_initializer")
        proto.graph.node.insert(0, constant)
        loaded = load_model(proto)
        value = loaded.model.graph.node(0).attributes["value"].as_tensor().numpy()
        np.testing.assert_array_equal(value, [[0, 5, 0], [0, 0, 7]])

    @pytest.mark.parametrize(("indices", "words"), [
        ([1, 6], "an index lies outside the tensor"), ([-1, 5], "an index lies outside the tensor"),
        ([[0, 1], [1, 3]], "an index lies outside the tensor"), ([[0, 1], [-1, 2]], "an index lies outside the tensor"),
        ([1, 2, 3], "2 values, but indices of shape"),
    ])  # fmt: skip
    def test_wrong_indices_are_refused_and_the_tensor_is_named(self, indices: list[int], words: str) -> None:
        with pytest.raises(ModelError) as caught:
            load_model(self.sparse(indices, [2, 3]))
        assert words in str(caught.value)
        assert caught.value.where == "sparse tensor 's'"

    def test_sparse_texts_are_refused(self) -> None:
        proto = self.sparse([1, 5], [2, 3])
        proto.graph.sparse_initializer[0].values.CopyFrom(onnx.helper.make_tensor("s", 8, [2], [b"a", b"b"]))
        with pytest.raises(ModelError, match="values must be numbers and indices int64"):
            load_model(proto)
