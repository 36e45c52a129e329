# SPDX-License-Identifier: Apache-2.0
"""Processors are found by name, made from tables, and put in their place in a pipeline."""

import json
import subprocess
import sys
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from typing import ClassVar

import numpy as np
import pytest

from nndeploy.errors import DataError, UnavailableError
from nndeploy.plugin import entry_points
from nndeploy.plugin.entry_points import Plugins
from nndeploy.processors import registry
from nndeploy.processors.processor import ProcessorStep
from nndeploy.processors.registry import processor_class, processor_from_table


@pytest.mark.parametrize("name", registry.PLUGINS.names())
def test_name_file_and_class_of_a_processor_agree(name) -> None:
    kind = processor_class(name)
    module = kind.__module__.rpartition(".")[2]
    assert kind.name == name == module.replace("_", "-")
    assert kind.__name__ == "".join(part.capitalize() for part in name.split("-"))
    assert kind.__doc__


def test_nothing_is_imported_before_it_is_used() -> None:
    script = (
        "import sys, json; from nndeploy.processors.registry import processor_from_table as make;"
        "make({'use': 'softmax'}, 'x'); make({'use': 'decode'}, 'x');"
        "print(json.dumps([m for m in sys.modules if 'builtin.' in m or m.partition('.')[0] in ('PIL', 'av', 'onnx')]))"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    builtin = "nndeploy.processors.builtin."
    assert sorted(json.loads(result.stdout)) == [f"{builtin}decode", f"{builtin}softmax"]


def test_fields_can_be_renamed() -> None:
    step = processor_from_table({"use": "sigmoid", "in": ["raw"], "out": ["sure"]}, "p.toml")
    assert (step.takes, step.gives) == (("raw",), ("sure",))
    fields = {"raw": np.zeros(2, np.float32)}
    assert step(fields)["sure"].tolist() == [0.5, 0.5]
    assert set(fields) == {"raw"}


@pytest.mark.parametrize(("table", "message"), [
    ({}, r'p.toml: needs use = "..."'),
    ({"use": 3}, r'p.toml: needs use = "..."'),
    ({"use": "resise", "width": 1}, r"p.toml: no processor is called 'resise' \(hint: did you mean 'resize'"),
    ({"use": "nms", "in": ["a"]}, r"p.toml: nms: in names 1 fields, but it takes 3: boxes, scores, classes"),
    ({"use": "nms", "out": ["a", "a", "b"]}, r"p.toml: nms: out names a field twice: a, a, b"),
    ({"use": "nms", "out": "boxes"}, r"p.toml: nms: out must be a list of names of fields, is 'boxes'"),
    ({"use": "nms", "in": ["a", "b", 3]}, r"in must be a list of names of fields"),
    ({"use": "nms", "iuo": 0.5}, r"p.toml: nms: has no parameter 'iuo' \(hint: did you mean 'iou'\?\)"),
    ({"use": "decode", "width": 1}, r"decode: has no parameter 'width' \(hint: it has none\)"),
    ({"use": "resize", "width": 4}, r"resize: needs the parameter 'height' \(hint: a whole number, 1 to 32768\)"),
    ({"use": "resize", "width": 4, "height": "4"}, r"height must be a whole number, is '4'"),
    ({"use": "resize", "width": 4, "height": True}, r"height must be a whole number, is True"),
    ({"use": "resize", "width": 4, "height": 0}, r"height must be 1 to 32768, is 0"),
    ({"use": "resize", "width": 4, "height": 4, "filter": "bilinaer"}, r"did you mean 'bilinear'"),
    ({"use": "nms", "iou": float("nan")}, r"iou must be a number, is nan"),
    ({"use": "nms", "across-classes": 1}, r"across-classes must be true or false, is 1"),
    ({"use": "letterbox", "width": 4, "height": 4, "fill": [1, 2]}, r"fill must be a list of 3, each a whole number"),
    ({"use": "letterbox", "width": 4, "height": 4, "fill": [1, 2, 256]}, r"fill\[2\] must be 0 to 255, is 256"),
    ({"use": "normalise", "mean": 3}, r"mean must be a list, each a number, is 3"),
    ({"use": "normalise", "mean": []}, r"mean is an empty list"),
    ({"use": "normalise", "std": [0.0]}, r"std\[0\] must be at least 1e-06, is 0.0"),
    ({"use": "scale"}, r"scale: needs one of width, height, longest and longest-at-most"),
    ({"use": "draw", "show": []}, r"draw: show must name what to draw"),
    ({"use": "draw", "show": ["boxes", "quads"]}, r"show names boxes and quads"),
    ({"use": "boxes", "unit": "fractions"}, r'width and height, .* go with unit = "fractions"'),
    ({"use": "labels", "labels": []}, r"labels: labels: must be the name of a file .* or a list of texts, is \[\]"),
    ({"use": "labels", "labels": "coco.txt"}, r"the file 'coco.txt' cannot be read here"),
    ({"use": "voice-segments", "hop-ms": 32, "end-threshold": 0.6}, r"end-threshold 0.6 must not be above"),
    ({"use": "constant", "value": "x"}, r"value: must be a number, or nested lists of numbers, is 'x'"),
    ({"use": "constant", "value": [[1], [1, 2]]}, r"value is no float32 array"),
    ({"use": "constant", "value": 1.5, "dtype": "int64"}, r"value 1.5 is not exactly int64"),
    ({"use": "constant", "value": 300, "dtype": "uint8"}, r"value 300 is not exactly uint8|no uint8 array"),
])  # fmt: skip
def test_a_wrong_table_is_one_line_that_names_file_step_and_key(table, message) -> None:
    with pytest.raises(Exception, match=message) as caught:
        processor_from_table(table, "p.toml")
    assert caught.value.exit_code in (2, 65)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith("p.toml: ")


def test_a_missing_field_names_the_step_and_what_there_is() -> None:
    step = processor_from_table({"use": "sigmoid", "in": ["scroes"]}, "p.toml")
    with pytest.raises(
        DataError, match=r"step 'sigmoid': the record has no field 'scroes' \(hint: did you mean 'scores'"
    ):
        step({"scores": 1})


@dataclass(frozen=True)
class Odd:
    name: ClassVar[str] = "odd"
    takes: ClassVar[tuple[str, ...]] = ("x",)
    gives: ClassVar[tuple[str, ...]] = ("a", "b")

    def __call__(self, x):
        return 1 / x if isinstance(x, int) else x


def test_what_a_processor_of_somebody_else_does_wrong_is_that_records_error() -> None:
    step = ProcessorStep(Odd(), ("x",), ("a", "b"))
    assert step({"x": (1, 2)}) == {"a": 1, "b": 2}
    with pytest.raises(DataError, match=r"step 'odd': failed: ZeroDivisionError: division by zero"):
        step({"x": 0})
    with pytest.raises(DataError, match=r"step 'odd': gives 2 fields, but returned a float"):
        step({"x": 1})
    with pytest.raises(DataError, match=r"step 'odd': gives 2 fields, but returned 3 values"):
        step({"x": (1, 2, 3)})


@pytest.fixture
def others(monkeypatch):
    """Returns a function that pretends another distribution brings processors: name -> object."""

    def install(**points):
        found = [EntryPoint(name.replace("_", "-"), value, registry.GROUP) for name, value in points.items()]
        monkeypatch.setattr(entry_points, "entry_points", lambda group: found)
        monkeypatch.setattr(registry, "PLUGINS", Plugins(registry.GROUP, "processor", DataError))
        registry.processor_class.cache_clear()

    yield install
    registry.processor_class.cache_clear()


def test_processors_of_others_are_found_and_cannot_take_our_names(others) -> None:
    others(odd=f"{__name__}:Odd", sigmoid=f"{__name__}:Odd")
    assert "odd" in registry.PLUGINS.names()
    assert processor_class("odd").__name__ == "Odd"
    assert processor_class("sigmoid").__name__ == "Sigmoid"


def test_a_processor_that_cannot_be_loaded_is_unavailable(others) -> None:
    others(gone="no_such_module:X", number="math:pi")
    with pytest.raises(UnavailableError, match=r"p.toml: .*processor 'gone' cannot be loaded: No module"):
        processor_from_table({"use": "gone"}, "p.toml")
    with pytest.raises(UnavailableError, match=r"math:pi: processor 'number' cannot be loaded: it is no dataclass"):
        processor_from_table({"use": "number"}, "p.toml")
