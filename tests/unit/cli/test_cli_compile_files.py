# SPDX-License-Identifier: Apache-2.0
"""What `compile` reads beside the model: a file of options, and how an image becomes the input."""

import pytest

from nndeploy.cli.main import run_command

IMAGE = {
    "name": '"x"',
    "height": "8",
    "width": "8",
    "channels": '"L"',
    "layout": '"NCHW"',
    "mean": "[0]",
    "std": "[1]",
}


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


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('shap = "x"', "a.toml: unknown key 'shap' (hint: did you mean 'shape'?)"),
        ("shape = 3", "a.toml: shape must be a text or a list of texts, is 3"),
        ("shape = [3]", "a.toml: shape must be a text or a list of texts, is [3]"),
        ('backends = ["openvino"]', "a.toml: backends takes one value, not ['openvino']"),
    ],
)
def test_a_file_of_options_says_what_is_wrong_in_it(refused, text, message) -> None:
    code, error = refused(text, "--config")
    assert code == 65
    assert message in error


def test_an_option_that_may_be_repeated_is_one_text_or_several(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    for value in ('"x=1,2"', '["x=1,2"]'):
        (tmp_path / "a.toml").write_text(f"shape = {value}\nthreads = 2\n")
        assert run_command(["compile", "m.onnx", "--config", "a.toml", "--dump-config"]) == 0
        assert capsys.readouterr().out.splitlines() == ['shape = ["x=1,2"]', "threads = 2"]


def test_a_switch_that_was_turned_off_stays_off(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.toml").write_text("fallback = false\npace = true\noptimise = true\n")
    assert run_command(["compile", "m.onnx", "--config", "a.toml", "--dump-config"]) == 0
    assert capsys.readouterr().out.splitlines() == ["pace = true", "fallback = false"]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"name": "3"}, "a.toml: name: expected text, got 3"),
        ({"height": "-8"}, "a.toml: height: expected an integer from 1 to "),
        ({"channels": '"RGBA"'}, "a.toml: channels: expected one of RGB, BGR, L, got 'RGBA'"),
        ({"layout": '"CHW"'}, "a.toml: layout: expected one of NCHW, NHWC, got 'CHW'"),
        ({"mean": "0"}, "a.toml: mean: expected "),
        ({"heigth": "8"}, "a.toml: unknown field 'heigth' (hint: did you mean 'height'?)"),
        ({"std": None}, "a.toml: the field 'std' is missing"),
    ],
)
def test_the_description_of_an_image_says_what_is_wrong_in_it(refused, changed, message) -> None:
    lines = [f"{key} = {value}\n" for key, value in (IMAGE | changed).items() if value is not None]
    code, error = refused("".join(lines), "--image")
    assert code == 65
    assert f"error[bad-data]: {message}" in error
