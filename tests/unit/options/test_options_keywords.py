# SPDX-License-Identifier: Apache-2.0
"""Options as keywords: the same names and types as the fields, and they win over the value that is given."""

from dataclasses import fields
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import pytest
from onnx.parser import parse_model

import nndeploy
from nndeploy.compiler.keywords import CompileKeywords
from nndeploy.errors import UsageError
from nndeploy.runtime.load_keywords import LoadKeywords

RELU = '<ir_version: 8, opset_import: ["": 18]> g (float[N,4] x) => (float[N,4] y) { y = Relu(x) }'
QUICK = nndeploy.CompileOptions(backends=("onnxruntime",), num_goldens=2)


@pytest.mark.parametrize(
    ("keywords", "options"), [(CompileKeywords, nndeploy.CompileOptions), (LoadKeywords, nndeploy.LoadOptions)]
)
def test_each_field_is_a_keyword_of_its_type(keywords: Any, options: Any) -> None:
    hints = get_type_hints(options)
    assert get_type_hints(keywords) == {field.name: hints[field.name] for field in fields(options)}


def test_keywords_win_over_the_options_beside_them(tmp_path: Path) -> None:
    out = tmp_path / "m.nnd"
    report = nndeploy.compile_model(parse_model(RELU), out, QUICK, backends=("reference",))
    assert [submodel.backend for submodel in report.submodels] == ["reference"]
    with pytest.raises(UsageError):
        nndeploy.load_bundle(out, threads=0)
    with nndeploy.load_bundle(out, threads=1) as program:
        assert program.run({"x": np.ones((1, 4), np.float32)})["y"].sum() == 4
