# SPDX-License-Identifier: Apache-2.0
"""What `compile` reads beside the model: a file of options, and how an image becomes the input."""

import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from nndeploy.cli.main import run_command
from nndeploy.compiler import cached_compile
from nndeploy.errors import CheckError

IMAGE = {"name": '"x"', "height": "8", "width": "8", "channels": '"L"', "layout": '"NCHW"', "mean": "[0]", "std": "[1]"}


@pytest.fixture
def refused(tmp_path, monkeypatch, capsys):
    """Returns a function: text of a TOML file, option that names it -> exit code and the line of the error."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.onnx").write_bytes(b"no model")

    def run(text: str, option: str) -> tuple[int, str]:
        (tmp_path / "a.toml").write_text(text)
        code = run_command(["compile", "m.onnx", "-o", "m.nnd", option, "a.toml"])
        error = capsys.readouterr().err
        assert error.count("\n") == 1, error
        return code, error

    return run


@pytest.mark.parametrize(("text", "message"), [
    ('shap = "x"', "a.toml: unknown key 'shap' (hint: did you mean 'shape'?)"),
    ("shape = 3", "a.toml: shape must be a text or a list of texts, is 3"),
    ("shape = [3]", "a.toml: shape must be a text or a list of texts, is [3]"),
    ('backends = ["openvino"]', "a.toml: backends takes one value, not ['openvino']"),
    ("recipe = 1", "a.toml: recipe must be a table, is 1"),
    ("[recipe]", "a.toml: recipe: files must contain the SHA-256 of the model"),
    ("[recipe.files]\nmodel = 'x'", "a.toml: recipe: files must contain the SHA-256 of the model"),
    ("[recipe.files]\nmodel = 1", "a.toml: recipe: files must be a table of texts"),
    (f"[recipe]\nfils = 1\n[recipe.files]\nmodel = '{'0' * 64}'", "a.toml: recipe: unknown key 'fils'"),
])  # fmt: skip
def test_a_file_of_options_or_a_recipe_says_what_is_wrong_in_it(refused, text, message) -> None:
    code, error = refused(text, "--config")
    assert code == 65
    assert message in error


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """m.onnx, of which the weights lie beside it, in the folder in which commands run."""
    monkeypatch.chdir(tmp_path)
    weight = helper.make_tensor("w", TensorProto.FLOAT, (2,), bytes(8), raw=True)
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, (2,)) for name in "xy")
    graph = helper.make_graph([helper.make_node("Add", ["x", "w"], ["y"])], "g", [x], [y], [weight])
    made = helper.make_model(graph)
    onnx.save(made, "m.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)
    return tmp_path / "m.onnx"


@pytest.fixture
def dumped(model: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    """Returns a function: arguments of `compile` -> the text that --dump-config prints."""
    assert model.is_file()

    def run(*arguments: str) -> str:
        assert run_command(["compile", *arguments, "--dump-config"]) == 0
        return capsys.readouterr().out

    return run


def test_an_option_that_may_be_repeated_is_one_text_or_several(dumped: Any) -> None:
    for value in ('"x=1,2"', '["x=1,2"]'):
        Path("a.toml").write_text(f"shape = {value}\nthreads = 2\n")
        found = tomllib.loads(dumped("m.onnx", "--config", "a.toml"))
        assert (found["shape"], found["threads"]) == (["x=1,2"], 2)


def test_a_switch_that_was_turned_off_stays_off(dumped: Any) -> None:
    Path("a.toml").write_text("fallback = false\npace = true\noptimise = true\n")
    found = tomllib.loads(dumped("m.onnx", "--config", "a.toml"))
    assert (found["pace"], found["fallback"], found["optimise"]) == (True, False, True)


def test_a_recipe_names_the_model_all_files_defaults_and_packages(dumped: Any) -> None:
    Path("samples").mkdir()
    np.savez("samples/1.npz", x=np.zeros(2, np.float32))
    found = tomllib.loads(dumped("m.onnx", "--samples", "samples", "--target", "x86-64-v3", "--cache-size", "1GiB"))
    files = {"model", "external:w.bin", "option:samples:0:1.npz", "option:targets"}
    assert set(found["recipe"]["files"]) == files
    assert (found["model"], found["samples"], found["cache-size"]) == ("m.onnx", "samples", "1GiB")
    assert (found["objective"], found["precision"], found["goldens"]) == ("latency", "fp32", 1), "defaults"
    assert "config" not in found
    assert {"onnx", "numpy", "python"} <= set(found["recipe"]["packages"])


def test_a_recipe_of_a_recipe_is_the_same(dumped: Any) -> None:
    first = dumped("m.onnx", "--goldens", "3", "--no-sandbox", "--pin", "Add=native", "--threads", "2")
    Path("a.toml").write_text(first)
    assert dumped("--config", "a.toml") == first


@pytest.fixture
def compiles(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Returns a function: arguments of `compile` -> its exit code, 1 where the compile would begin, and its lines."""

    def begins(*_: object) -> None:
        raise CheckError("it begins")

    monkeypatch.setattr(cached_compile, "compile_cached", begins)

    def run(*arguments: str) -> tuple[int, str]:
        return run_command(["compile", *arguments]), capsys.readouterr().err

    return run


@pytest.mark.parametrize(("options", "change", "said"), [
    ((), lambda text: text, ""), (("--decisions", "decisions.json"), lambda text: text, ""),
    ((), lambda text: text.replace('"numpy" = "', '"numpy" = "0.1 of '), "recipe: numpy"),
], ids=["nothing changed", "decisions were written", "another package"])  # fmt: skip
def test_a_recipe_admits_its_own_compile_without_a_model_being_named(dumped, compiles, options, change, said) -> None:
    Path("a.toml").write_text(change(dumped("m.onnx", *options)))
    Path("decisions.json").write_text("{}")
    code, lines = compiles("--config", "a.toml", "-o", "m.nnd")
    assert (code, said in lines) == (1, True)


@pytest.mark.parametrize(("changed", "words"), [
    ("m.onnx", "another model"), ("w.bin", "another file w.bin beside the model"),
    ("samples/1.npz", "another file of --samples (1.npz)"), ("samples/2.npz", "another file of --samples (2.npz)"),
    ("decisions.json", "another file of --decisions"), ("box.toml", "another file of --target"),
])  # fmt: skip
def test_a_recipe_refuses_a_file_that_is_not_its_own(dumped: Any, compiles: Any, changed: str, words: str) -> None:
    Path("samples").mkdir()
    np.savez("samples/1.npz", x=np.zeros(2, np.float32))
    Path("decisions.json").write_text("{}")
    Path("box.toml").write_text('name = "box"\narch = "x86_64"\n')
    options = ("--samples", "samples", "--decisions", "decisions.json", "--target", "box.toml")
    Path("a.toml").write_text(dumped("m.onnx", *options))
    assert compiles("--config", "a.toml", "-o", "m.nnd")[0] == 1
    if changed == "box.toml":
        Path(changed).write_text('name = "box"\narch = "aarch64"\n')
    elif changed == "m.onnx":
        made = onnx.load(changed, load_external_data=False)
        made.producer_name = "another"
        Path(changed).write_bytes(made.SerializeToString())
    else:
        Path(changed).write_bytes(b"another")
    code, line = compiles("--config", "a.toml", "-o", "m.nnd")
    assert code == 65
    assert f"error[bad-data]: a.toml: the recipe has {words} (hint: " in line


@pytest.mark.parametrize(("changed", "message"), [
    ({"name": "3"}, "a.toml: name: expected text, got 3"),
    ({"height": "-8"}, "a.toml: height: expected an integer from 1 to "),
    ({"channels": '"RGBA"'}, "a.toml: channels: expected one of RGB, BGR, L, got 'RGBA'"),
    ({"layout": '"CHW"'}, "a.toml: layout: expected one of NCHW, NHWC, got 'CHW'"),
    ({"mean": "0"}, "a.toml: mean: expected "),
    ({"heigth": "8"}, "a.toml: unknown field 'heigth' (hint: did you mean 'height'?)"),
    ({"std": None}, "a.toml: the field 'std' is missing"),
])  # fmt: skip
def test_the_description_of_an_image_says_what_is_wrong_in_it(refused, changed, message) -> None:
    lines = [f"{key} = {value}\n" for key, value in (IMAGE | changed).items() if value is not None]
    code, error = refused("".join(lines), "--image")
    assert code == 65
    assert f"error[bad-data]: {message}" in error
