# SPDX-License-Identifier: Apache-2.0
"""Errors: one line of what, where and hint; an exit code each; near names found."""

import pytest

from nndeploy.errors import ERRORS_BY_CODE, InputError, ModelError, NndeployError, did_you_mean, one_line


def test_an_error_is_one_line_of_where_what_and_hint() -> None:
    error = ModelError("no\nkernel", where="node 'a'", hint="use b")
    assert str(error) == "node 'a': no kernel (hint: use b)"
    assert str(error.within("m.onnx")) == "m.onnx: node 'a': no kernel (hint: use b)"
    assert str(NndeployError("bare")) == "bare"


def test_a_hostile_name_cannot_drive_a_terminal() -> None:
    assert one_line("a\x1b[31mb\r\nc\u202ed") == "a\\x1b[31mb c\\u202ed"


def test_every_code_has_one_class_and_an_exit_code() -> None:
    codes = {code: kind.exit_code for code, kind in ERRORS_BY_CODE.items()}
    assert codes == {
        "internal": 70, "usage": 2, "bad-data": 65, "bad-model": 65, "bad-bundle": 65, "bad-input": 65,
        "check-failed": 1, "no-input": 66, "unavailable": 69, "cannot-create": 73, "io": 74, "busy": 75,
        "policy": 77, "time-limit": 124, "memory-limit": 124, "crashed": 65,
    }  # fmt: skip
    assert issubclass(InputError, NndeployError)


@pytest.mark.parametrize(("name", "known", "hint"), [
    ("opnvino", ["openvino", "reference"], "did you mean 'openvino'?"),
    ("X", ["x", "y"], "did you mean 'x'?"),
    ("zzz", ["a", "b"], "known: 'a', 'b'"),
    ("zzz", [f"n{i}" for i in range(13)], "known: " + ", ".join(f"'n{i}'" for i in range(12)) + ", ..."),
    ("zzz", [], ""),
])  # fmt: skip
def test_the_nearest_name_is_proposed(name: str, known: list[str], hint: str) -> None:
    assert did_you_mean(name, known) == hint
