# SPDX-License-Identifier: Apache-2.0
"""Steps beside plans without Python: texts, maps and what is found come out of nndeploy-run as of `nndeploy run`."""

import json
import subprocess
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from node_runs import NodeRefusalError, in_node, outputs_of, ran
from onnx import TensorProto, helper
from runner_answers import answer, with_reference

import nndeploy
from nndeploy.errors import InputError

TEXT, FLOAT, INT64, BOOL = TensorProto.STRING, TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
ml = partial(helper.make_node, domain="ai.onnx.ml")
node, info = helper.make_node, helper.make_tensor_value_info
NAMES = ["setosa", "äö €", "", 'a"b\\']
Line = Mapping[str, Any]


def maps_of(name: str, key: int) -> onnx.ValueInfoProto:
    score = helper.make_tensor_type_proto(FLOAT, [])
    return helper.make_value_info(name, helper.make_sequence_type_proto(helper.make_map_type_proto(key, score)))


def model_of(
    nodes: Sequence[onnx.NodeProto], inputs: Sequence[onnx.ValueInfoProto], outputs: Sequence[onnx.ValueInfoProto],
    constants: Mapping[str, Any] | None = None,
) -> onnx.ModelProto:  # fmt: skip
    stored = [onnx.numpy_helper.from_array(array, name) for name, array in (constants or {}).items()]
    graph = helper.make_graph(nodes, "g", inputs, outputs, stored)
    imports = [helper.make_opsetid(*each) for each in (("", 19), ("ai.onnx.ml", 3), ("com.microsoft", 1))]
    return helper.make_model(graph, opset_imports=imports, ir_version=8)


def classifier(key: int) -> onnx.ModelProto:
    names = {"classlabels_strings": NAMES} if key == TEXT else {"classlabels_ints": [7, -2, 0, 1 << 40]}
    labels = {"classlabels_strings": NAMES} if key == TEXT else {"classlabels_int64s": [7, -2, 0, 1 << 40]}
    draw = np.random.default_rng(1)
    weights = {"coefficients": draw.standard_normal(12).tolist(), "intercepts": draw.standard_normal(4).tolist()}
    nodes = [
        ml("LinearClassifier", ["x"], ["label", "scores"], post_transform="SOFTMAX", **weights, **names),
        ml("ZipMap", ["scores"], ["maps"], **labels),
    ]
    return model_of(nodes, [info("x", FLOAT, ["n", 3])], [info("label", key, ["n"]), maps_of("maps", key)])


def columns() -> onnx.ModelProto:
    nodes = [
        ml("OneHotEncoder", ["town"], ["t"], cats_strings=["York", "Ely"], zeros=0),
        ml("OneHotEncoder", ["size"], ["s"], cats_int64s=[40, 38], zeros=1),
        node("Reshape", ["t", "shape"], ["u"]), node("Reshape", ["s", "shape"], ["v"]),
        node("Concat", ["x", "u", "v"], ["y"], axis=1),
    ]  # fmt: skip
    inputs = [info("x", FLOAT, ["n", 2]), info("town", TEXT, ["n", 1]), info("size", INT64, ["n", 1])]
    return model_of(nodes, inputs, [info("y", FLOAT, ["n", 6])], {"shape": np.array([-1, 2])})


def tables() -> onnx.ModelProto:
    nodes = [
        ml("LabelEncoder", ["x"], ["whole"], keys_strings=["b", "a", "ä"], values_int64s=[3, -1, 1 << 40],
           default_int64=5),
        ml("LabelEncoder", ["x"], ["real"], keys_strings=["b", "a"], values_floats=[0.1, 3e38], default_float=-2.5),
        ml("LabelEncoder", ["x"], ["other"], keys_strings=["b", "a"], values_strings=["B", ""], default_string="?"),
        ml("LabelEncoder", ["k"], ["named"], keys_int64s=[3, -1], values_strings=["three", "less"],
           default_string="none"),
    ]  # fmt: skip
    outputs = [info("whole", INT64, ["n", 2]), info("real", FLOAT, ["n", 2]), info("other", TEXT, ["n", 2])]
    inputs = [info("x", TEXT, ["n", 2]), info("k", INT64, ["n"])]
    return model_of(nodes, inputs, [*outputs, info("named", TEXT, ["n"])])


def movement() -> onnx.ModelProto:
    nodes = [
        node("Transpose", ["x"], ["t"], perm=[1, 0]), node("Concat", ["x", "z"], ["c"], axis=1),
        node("Gather", ["c", "places"], ["g"], axis=1), node("Reshape", ["c", "shape"], ["r"]),
        node("Equal", ["x", "words"], ["e"]),
    ]  # fmt: skip
    outputs = [
        info("t", TEXT, [3, "n"]), info("g", TEXT, ["n", 2, 2]), info("r", TEXT, ["m", 1, 4]), info("e", BOOL, ["n", 3])
    ]  # fmt: skip
    constants = {
        "places": np.array([[0, -1], [3, 1]]), "shape": np.array([-1, 1, 4]),
        "words": np.array(["a", "b", "ä"], object),
    }  # fmt: skip
    return model_of(nodes, [info("x", TEXT, ["n", 3]), info("z", TEXT, ["n", 1])], outputs, constants)


def grams() -> onnx.ModelProto:
    pool = ["go", "gone", "ä", "on", "go on", "gone on"]
    attributes = {
        "mode": "TF", "min_gram_length": 1, "max_gram_length": 1, "max_skip_count": 0, "pool_strings": pool[:4],
        "ngram_counts": [0], "ngram_indexes": [3, 1, 0, 2],
    }  # fmt: skip
    nodes = [
        node("StringNormalizer", ["x"], ["l"], case_change_action="LOWER"),
        node("Tokenizer", ["l"], ["t"], domain="com.microsoft", mark=0, mincharnum=1, pad_value="#",
             tokenexp="[a-zA-Z0-9_]+"),
        node("Flatten", ["t"], ["f"]), node("TfIdfVectorizer", ["f"], ["y"], **attributes),
    ]  # fmt: skip
    return model_of(nodes, [info("x", TEXT, ["n"])], [info("y", FLOAT, ["n", 4])])


def found() -> onnx.ModelProto:
    nodes = [
        node("Greater", ["s", "half"], ["k"]), node("NonZero", ["k"], ["places"]),
        node("Squeeze", ["s", "first"], ["row"]), node("Greater", ["row", "half"], ["kept"]),
        node("Compress", ["b", "kept"], ["rows"], axis=1), node("Compress", ["row", "kept"], ["scores"]),
        node("Relu", ["s"], ["positive"]), node("Unsqueeze", ["positive", "first"], ["cubed"]),
        node("NonMaxSuppression", ["b", "cubed", "most", "overlap", "half"], ["chosen"]),
        node("NonMaxSuppression", ["b", "cubed", "most"], ["centred"], center_point_box=1),
    ]  # fmt: skip
    outputs = [
        info("places", INT64, [2, "found"]), info("rows", FLOAT, [1, "kept", 4]), info("scores", FLOAT, ["kept"]),
        info("chosen", INT64, ["boxes", 3]), info("centred", INT64, ["others", 3]),
    ]  # fmt: skip
    constants = {
        "half": np.array(0.5, np.float32), "overlap": np.array(0.25, np.float32), "most": np.array([2]),
        "first": np.array([0]),
    }  # fmt: skip
    return model_of(nodes, [info("b", FLOAT, [1, "n", 4]), info("s", FLOAT, [1, "n"])], outputs, constants)


BOXES = [[[0, 0, 2, 2], [0.1, 0, 2, 2], [3, 3, 1, 1], [5, 5, 6, 6]]]
CASES: dict[str, tuple[Callable[[], onnx.ModelProto], Sequence[Line]]] = {
    "names": (partial(classifier, TEXT), [
        {"x": [[1, 2, 3], [0.5, -1, 2]]}, {"x": [[-9, 4, "NaN"]]}, {"x": [[0, 0, 0]]},
    ]),
    "numbers": (partial(classifier, INT64), [{"x": [[1, 2, 3], [0.5, -1, 2]]}]),
    "columns": (columns, [
        {"x": [[1, 2]], "town": [["Ely"]], "size": [[38]]}, {"x": [[1, 2]], "town": [["York"]], "size": [[7]]},
        {"x": [[1, 2]], "town": [["Bath"]], "size": [[38]]}, {"x": [[1, 2]], "town": [["Ely"]]},
        {"x": [[3, 4]], "town": [["Ely"]], "size": [[40]]},
    ]),
    "tables": (tables, [{"x": [["a", "b"], ["ä", "c"]], "k": [3, 4]}, {"x": [["", "b"]], "k": [-1]}]),
    "found": (found, [
        {"b": BOXES, "s": [[0.9, 0.8, 0.7, 0.1]]}, {"b": BOXES, "s": [[0, 0.1, -1, 0.5]]},
        {"b": [[[0, 0, 1, 1]]], "s": [[0.6]]}, {"b": BOXES, "s": [[0.6]]},
    ]),
    "movement": (movement, [{"x": [["a", "", "ä"], ["b", "b", "a"]], "z": [["€"], ["z"]]}]),
}  # fmt: skip


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    folder = tmp_path_factory.mktemp("tables")

    def of(name: str) -> Path:
        bundle, model = folder / f"{name}.nnd", grams() if name == "grams" else CASES[name][0]()
        if not bundle.exists():
            options: dict[str, Any] = {"backends": ("native",), "objective": "priority", "threads": 1}
            if name == "grams":
                options["samples"] = [{"x": np.array(["Go on", "gone"], object)}]
            if name == "columns":
                sample = {
                    "x": np.ones((1, 2), np.float32),
                    "town": np.array([["Ely"]], object),
                    "size": np.array([[40]]),
                }
                options["samples"] = [sample]
            nndeploy.compile_model(model, bundle, **options)
        return bundle

    return of


def lines_of(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize("name", CASES)
def test_lines_of_json_give_the_lines_of_python(nndeploy_command, runner, compiled, tmp_path, name) -> None:
    lines, bundle = CASES[name][1], compiled(name)
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    done = nndeploy_command("run", bundle, "-i", tmp_path / "in.jsonl", "-o", tmp_path / "out.jsonl", "--threads", "1")
    wanted = lines_of((tmp_path / "out.jsonl").read_text())
    mine = subprocess.run(
        [runner, bundle, "-i", tmp_path / "in.jsonl", "-o", "-"], capture_output=True, text=True, check=False
    )
    assert mine.returncode == done.returncode, mine.stderr
    found = lines_of(mine.stdout)
    assert [line.get("outputs") for line in found] == [line.get("outputs") for line in wanted]
    assert [line["origin"] for line in found] == [line["origin"] for line in wanted]
    codes = [[line.get("error", {}).get("code") for line in lines] for lines in (found, wanted)]
    assert codes[0] == codes[1]
    assert any("outputs" in line for line in found)


@pytest.mark.parametrize("name", [*CASES, "grams"])
def test_an_exported_table_verifies_itself(nndeploy_command, compiled, tmp_path, name) -> None:
    program = tmp_path / "program"
    assert nndeploy_command("export", compiled(name), "-o", program, "--verify").returncode == 0
    done = subprocess.run([program, "--verify", "--json"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    wanted = json.loads(nndeploy_command("verify", compiled(name), "--threads", "1", "--json").stdout)["outputs"]
    found = json.loads(done.stdout)["outputs"]
    exact = ("golden", "output", "ok", "max_abs", "max_rel", "rule")
    assert [{key: one[key] for key in exact} for one in found] == [{key: one[key] for key in exact} for one in wanted]


@pytest.mark.parametrize("name", ["names", "columns"])
def test_a_page_has_no_form_for_texts_and_maps(nndeploy_command, compiled, tmp_path, name) -> None:
    done = nndeploy_command("export", compiled(name), "-o", tmp_path / "out", "--for", "html")
    assert done.returncode == 69
    assert not (tmp_path / "out").exists()


DTYPES = {
    "x": np.float32,
    "b": np.float32,
    "s": np.float32,
    "size": np.int64,
    "town": object,
    "k": np.int64,
    "z": object,
}


@pytest.mark.parametrize("name", CASES)
def test_texts_and_maps_are_the_same_in_node(nndeploy_command, compiled, tmp_path, name) -> None:
    module = tmp_path / "table.mjs"
    assert nndeploy_command("export", compiled(name), "-o", module, "--for", "wasm").returncode == 0
    dtypes = DTYPES | ({"x": object} if name in ("tables", "movement") else {})
    runs = [{key: np.array(value, dtypes[key]) for key, value in line.items()} for line in CASES[name][1]]
    found = in_node([None], runs, module=module)[0]["runs"]
    with nndeploy.load_bundle(compiled(name), threads=1) as program:
        for inputs, result in zip(runs, found, strict=True):
            try:
                wanted = program.run(inputs)
            except InputError:
                assert result["error"]["code"] == 65
                continue
            outputs = outputs_of(result)
            assert outputs.keys() == wanted.keys()
            for output, value in wanted.items():
                assert outputs[output].shape == np.shape(value)
                assert outputs[output].ravel().tolist() == [alike(one) for one in np.ravel(value).tolist()], output


def alike(one: Any) -> Any:
    """Returns what an element equals in Node, whose kernels are those of another processor."""
    if isinstance(one, dict):
        one = {str(key): score for key, score in one.items()}
    return one if isinstance(one, str | int) else pytest.approx(one, rel=1e-5, nan_ok=True)


@pytest.mark.parametrize("text", ["a\0b", "\ud800"])
def test_what_is_no_text_is_refused_in_node(compiled, text) -> None:
    with pytest.raises(NodeRefusalError) as caught:
        ran(compiled("tables"), {"x": np.array([[text, "b"]], object), "k": np.array([3])})
    assert caught.value.code == 65


def test_reference_texts_and_scores_that_differ_are_found(runner, compiled, tmp_path) -> None:
    def other(wanted: dict[str, Any]) -> None:
        wanted["label"] = np.array(["another"] * len(wanted["label"]), object)
        wanted["maps"] = [{key: score + 1 for key, score in row.items()} for row in wanted["maps"].tolist()]

    bundle = with_reference(compiled("names"), tmp_path / "m.nnd", other, {}, {})
    found = answer([runner, bundle, "--verify"], 1)["outputs"]
    assert [one["ok"] for one in found] == [False, False]
    assert found[1]["max_abs"] == pytest.approx(1)


def test_texts_pass_through_files_of_numpy(runner, compiled, tmp_path) -> None:
    texts = np.array([["a", "b"], ["ä", "€ and more"]])
    np.save(tmp_path / "x.npy", texts)
    np.save(tmp_path / "k.npy", np.array([3, 4]))
    given = ["-i", f"x=@{tmp_path / 'x.npy'}", "-i", f"k=@{tmp_path / 'k.npy'}"]
    done = subprocess.run(
        [runner, compiled("tables"), *given, "-o", tmp_path / "out"], capture_output=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")
    found = {path.stem: np.load(path) for path in (tmp_path / "out").iterdir()}
    assert found["other"].tolist() == [["", "B"], ["?", "?"]]
    assert found["named"].tolist() == ["three", "none"]
    assert found["whole"].tolist() == [[-1, 3], [1 << 40, 5]]


def test_maps_are_written_as_json(runner, compiled, tmp_path) -> None:
    command = [runner, compiled("names"), "-i", "x=[[1, 2, 3]]", "-o", tmp_path / "out"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    (row,) = json.loads((tmp_path / "out" / "maps.json").read_text())
    assert [*row] == NAMES
    assert sum(row.values()) == pytest.approx(1)
    assert np.load(tmp_path / "out" / "label.npy").tolist() == [max(row, key=lambda name: row[name])]


def test_texts_are_counted_as_python_counts_them(nndeploy_command, runner, compiled, tmp_path) -> None:
    """Letters beyond ASCII have upper and lower case by the tables of Python alone."""
    lines = [{"x": ["Go on", "gone GO", ""]}, {"x": ["on"]}]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    given = ("-i", tmp_path / "in.jsonl")
    assert nndeploy_command("run", compiled("grams"), *given, "-o", tmp_path / "out.jsonl").returncode == 0
    done = subprocess.run([runner, compiled("grams"), *given, "-o", "-"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert lines_of(done.stdout) == lines_of((tmp_path / "out.jsonl").read_text())
    beyond = [runner, compiled("grams"), "-i", 'x=["Ärger"]']
    assert subprocess.run(beyond, capture_output=True, check=False).returncode == 69


def test_what_needs_python_is_refused_by_name(nndeploy_command, runner, tmp_path) -> None:
    nodes = [node("StringNormalizer", ["x"], ["y"], case_change_action="UPPER")]
    model = model_of(nodes, [info("x", TEXT, ["n"])], [info("y", TEXT, ["m"])])
    bundle = tmp_path / "m.nnd"
    sample = {"x": np.array(["a", "b"], object)}
    nndeploy.compile_model(model, bundle, backends=("native",), objective="priority", threads=1, samples=[sample])
    done = nndeploy_command("export", bundle, "-o", tmp_path / "program")
    assert done.returncode == 69
    assert "StringNormalizer" in done.stderr
    alone = subprocess.run([runner, bundle, "--info"], capture_output=True, text=True, check=False)
    assert alone.returncode == 69
    assert "StringNormalizer" in alone.stderr


@pytest.mark.parametrize(("value", "code"), [
    ("[[1, 2, 3]]", 0), ("[[1, 2], [3]]", 65), ('[["a", 2, 3]]', 65), ("[[1e39, 2, 3]]", 65), ("1", 65), ("[]", 65),
    ('[["NaN", "-Infinity", 0.1]]', 0), ("[[true, 2, 3]]", 65), ("[[[[[[[[[[1]]]]]]]]]]", 65), ("[[1, 2, 3]", 2),
])  # fmt: skip
def test_a_value_on_the_command_line_is_exactly_of_its_type(runner, compiled, value, code) -> None:
    done = subprocess.run([runner, compiled("names"), "-i", f"x={value}"], capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    assert len(done.stderr.splitlines()) == (code != 0)


@pytest.mark.parametrize("where", ["-", "out.jsonl"])
def test_one_value_gives_one_line(nndeploy_command, runner, compiled, tmp_path, where) -> None:
    given = ("-i", "x=[[1, 2, 3], [4, 5, 6]]")
    command = [runner, compiled("names"), *given, "-o", where]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    (found,) = lines_of(done.stdout if where == "-" else (tmp_path / where).read_text())
    (wanted,) = lines_of(nndeploy_command("run", compiled("names"), *given, "-o", "-", "--threads", "1").stdout)
    assert found["outputs"] == wanted["outputs"]
    assert [*tmp_path.iterdir()] == ([] if where == "-" else [tmp_path / where])


def test_lines_of_standard_input_are_answered_one_by_one(runner, compiled) -> None:
    command = [runner, compiled("names"), "--input", "-", "--output", "-"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for number in range(3):
            process.stdin.write(json.dumps({"x": [[number, 1, 2]]}) + "\n")
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["index"] == number
        process.stdin.close()
        assert process.wait(30) == 0
