# SPDX-License-Identifier: Apache-2.0
"""What processors tell of the shapes that they give, beside the shapes of what they then give."""

import io

import numpy as np
import pytest
from PIL import Image

from nndeploy.processors.known_shapes import EachOf, common
from nndeploy.stream.description import given_shapes

IMAGE = np.zeros((9, 14, 3), np.uint8)
TENSOR = np.zeros((6, 4, 3), np.float32)
SOUND = np.zeros(3000, np.float32)


def png() -> bytes:
    file = io.BytesIO()
    Image.fromarray(IMAGE).save(file, "PNG")
    return file.getvalue()


def known_of(value):
    """Returns all that can be known of a value."""
    if isinstance(value, list):
        return EachOf(known_of(value[0]))
    return value if isinstance(value, int) else value.shape


def holds(known, value) -> bool:
    if known is None:
        return True
    if isinstance(known, EachOf):
        return all(holds(known.element, one) for one in value)
    if isinstance(known, int):
        return known == value
    sizes = zip(known, value.shape, strict=True)
    return all(size in (None, found) for size, found in sizes)


@pytest.mark.parametrize(("use", "parameters", "fields", "found"), [
    ("decode", {}, {"data": png()}, ((None, None, 3),)),
    ("letterbox", {"width": 32, "height": 16}, {"image": IMAGE}, ((16, 32, 3), (6,))),
    ("resize", {"width": 32, "height": 16}, {"image": IMAGE}, ((16, 32, 3), (6,))),
    ("scale", {"height": 32, "multiple": 16}, {"image": IMAGE}, ((32, None, 3), (6,))),
    ("scale", {"width": 64, "width_at_most": 40}, {"image": IMAGE}, ((None, 40, 3), (6,))),
    ("scale", {"height": 40, "multiple": 16}, {"image": IMAGE}, ((None, None, 3), (6,))),
    ("scale", {"longest": 32}, {"image": IMAGE}, ((None, None, 3), (6,))),
    ("normalise", {}, {"image": IMAGE}, ((9, 14, 3),)),
    ("pad", {"width": 3, "height": 8}, {"tensor": TENSOR}, ((8, 4, 3),)),
    ("layout", {}, {"tensor": TENSOR}, ((1, 3, 6, 4),)),
    ("layout", {"channels": "L", "order": "HWC", "batch": False}, {"tensor": TENSOR}, ((6, 4, 1),)),
    ("crop", {}, {"image": IMAGE, "boxes": np.float32([[0, 0, 3, 4]])}, (EachOf((None, None, 3)),)),
    ("crop-quads", {}, {"image": IMAGE, "quads": np.float32([[[0, 0], [5, 0], [5, 4], [0, 4]]])},
     (EachOf((None, None, 3)),)),
    ("constant", {"value": [[1, 2]]}, {}, ((1, 2),)),
    ("constant", {"value": 16000, "dtype": "int64"}, {}, ((),)),
    ("byte-window", {"begin": 5, "end": 6}, {"data": b"some bytes"}, ((1, 11),)),
    ("resample", {"rate": 4000}, {"samples": SOUND, "rate": 8000}, ((None,), 4000)),
    ("log-mel", {"bins": 8, "seconds": 1.5}, {"samples": SOUND, "rate": 8000}, ((1, 8, 75),)),
    ("log-mel", {"bins": 8, "seconds": 0.1, "whole": True}, {"samples": SOUND, "rate": 8000}, ((1, 8, None),)),
    ("next-window", {"frames": 20}, {"features": np.zeros((1, 8, 31), np.float32)}, ((1, 8, 20),)),
    ("filter-bank", {"bins": 7}, {"samples": SOUND, "rate": 8000}, ((None, 7),)),
    ("stack-frames", {"size": 3, "batch": True}, {"frames": np.zeros((5, 4), np.float32)}, ((1, None, 12),)),
    ("windows", {"size": 512, "context": 64}, {"samples": SOUND}, (EachOf((576,)),)),
    ("windows", {"size": 512, "rest": "drop", "batch": True}, {"samples": SOUND}, (EachOf((1, 512)),)),
    ("stft", {"size": 64, "hop": 32}, {"samples": SOUND}, ((None, 33, 2), None)),
    ("prompt", {}, {"input_ids": np.ones((1, 3), np.int64)},
     ((None,), (0,), (1, None), (1, None), (1, None), (1,))),
    ("next-inputs", {}, {"prompt": np.ones(3, np.int64), "tokens": np.ones(2, np.int64)},
     ((1, None), (1, None), (1, None), (1,))),
    ("l2-normalise", {"in": ["embedding"]}, {"embedding": np.ones(3, np.float32)}, (None,)),  # tells nothing
])  # fmt: skip
def test_what_is_known_is_so(step, use, parameters, fields, found) -> None:
    one = step(use, **parameters)
    known = given_shapes(one, {name: known_of(value) for name, value in fields.items() if not isinstance(value, bytes)})
    assert tuple(known.values()) == found
    given = one(fields)
    assert given.keys() == known.keys()
    assert all(holds(known[name], given[name]) for name in given)


@pytest.mark.parametrize(("use", "parameters", "found"), [
    ("layout", {}, (1, None, None, None)), ("layout", {"channels": "L"}, (1, 1, None, None)),
    ("pad", {"height": 8}, (None, None, None)), ("normalise", {}, None), ("log-mel", {}, (1, 80, None)),
    ("next-window", {}, (1, None, 3000)), ("stack-frames", {"size": 2}, (None, None)),
])  # fmt: skip
def test_of_a_field_of_which_nothing_is_known_little_is_told(step, use, parameters, found) -> None:
    (known,) = given_shapes(step(use, **parameters), {}).values()
    assert known == found


@pytest.mark.parametrize(("parameters", "found"), [
    ({}, (1, None)), ({"max_length": 8}, (1, None)), ({"pad_to": 8}, (1, None)),
    ({"pad_to": 8, "max_length": 8}, (1, 8)), ({"pad_to": 8, "max_length": 6}, (1, 8)),
    ({"pad_to": 8, "max_length": 12}, (1, None)),
])  # fmt: skip
def test_tokens_have_a_length_where_each_text_is_filled_up_to_it(step, tmp_path, parameters, found) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel({"[PAD]": 0, "a": 1, "[UNK]": 2}, "[UNK]"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    made.add_special_tokens(["[PAD]"])
    made.save(str(tmp_path / "t.json"))
    one = step("tokenize", tokenizer="t.json", **parameters)
    known = given_shapes(one, {})
    assert set(known.values()) == {found}
    assert all(holds(known[name], value) for text in ("a", "a a " * 9) for name, value in one({"text": text}).items())


def test_what_two_ways_have_in_common() -> None:
    assert common((1, 2, None), (1, 3, None)) == (1, None, None)
    assert common((1,), (1, 2)) is None
    assert common(EachOf((1, 2)), EachOf((1, 3))) == EachOf((1, None))
    assert common(5, 5) == 5
    assert common(5, 6) is None
    assert common((5,), None) is None
