# SPDX-License-Identifier: Apache-2.0
"""Which shapes the values of a chain have for shapes of a bundle's inputs; nothing is run.

In: shapes that somebody asked for, else those of the first golden. Out: the shapes of all inputs that are tensors, and
of every value of a chain whose sizes follow from them. A value whose sizes the bundle does not say is left out.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from nndeploy.bundle.manifest import Manifest
from nndeploy.bundle.reader import Bundle
from nndeploy.errors import InputError, UsageError, did_you_mean
from nndeploy.runtime.input_checks import InputChecks
from nndeploy.values.size import evaluated, symbol
from nndeploy.values.size_text import size_from_text
from nndeploy.values.types import TensorType, ValueType, numpy_dtype

Shape = tuple[int, ...]


def shapes_of_inputs(bundle: Bundle, asked: Mapping[str, Sequence[int]]) -> dict[str, Shape]:
    """Returns the shape of each input that is a tensor: as asked, or as the first golden's where nothing is asked.

    Others are as declared. Sizes of one name are one size, and those that nobody says are the best of their range.

    Raises:
        UsageError: an input has open sizes, and nobody says which.
        InputError: what is asked is no input, or no shape that it takes.
    """
    tensors = {one.name: one for one in bundle.manifest.inputs if isinstance(one.type, TensorType)}
    for name in asked:
        if name not in tensors:
            raise InputError(f"no input {name!r:.80}", hint=did_you_mean(name, tensors))
    golden = {} if asked else _golden_shapes(bundle)
    symbols = {name: one.best for name, one in bundle.manifest.ranges.items()}
    symbols |= _symbols(bundle.manifest, golden | {name: tuple(shape) for name, shape in asked.items()})
    found = dict[str, Shape]()
    for name, one in tensors.items():
        shape = asked.get(name, golden.get(name, _shape(one.type, symbols)))
        if shape is None:
            raise UsageError(f"the sizes of input {name!r:.80} are open: {one.type}", hint=f"--shape {name}=SIZES")
        found[name] = tuple(shape)
    _check(bundle.manifest, found)
    return found


def shapes_of_values(
    manifest: Manifest, values: Mapping[str, ValueType], inputs: Mapping[str, Shape]
) -> dict[str, Shape]:
    """Returns the shape of each value of a chain that follows from those of the inputs."""
    symbols = _symbols(manifest, inputs)
    found = {name: _shape(value, symbols) for name, value in values.items()}
    return {name: shape for name, shape in found.items() if shape is not None} | dict(inputs)


def _symbols(manifest: Manifest, inputs: Mapping[str, Shape]) -> dict[str, int]:
    """Returns the sizes that have a name, as shapes of inputs say them."""
    symbols = dict[str, int]()
    for one in manifest.inputs:
        if isinstance(one.type, TensorType) and one.name in inputs:
            pairs = zip(one.type.shape or (), inputs[one.name], strict=False)
            symbols |= {name: size for name, size in pairs if isinstance(name, str)}
    return symbols


def _shape(value: ValueType, symbols: Mapping[str, int]) -> Shape | None:
    if not isinstance(value, TensorType) or value.shape is None:
        return None
    sizes = [size if isinstance(size, int) else _size(size, symbols) for size in value.shape]
    known = tuple(size for size in sizes if size is not None)
    return known if len(known) == len(sizes) else None


def _size(text: str | None, symbols: Mapping[str, int]) -> int | None:
    if text is None:
        return None
    try:
        return evaluated(size_from_text(text, symbol), symbols)
    except (KeyError, ArithmeticError):
        return None


def _golden_shapes(bundle: Bundle) -> dict[str, Shape]:
    if not bundle.manifest.goldens:
        return {}
    values = bundle.values(bundle.manifest.goldens[0].inputs)
    return {name: value.shape for name, value in values.items() if isinstance(value, np.ndarray)}


def _check(manifest: Manifest, shapes: Mapping[str, Shape]) -> None:
    """Passes shapes that a call may have; of each input one element stands for all."""
    inputs = [one for one in manifest.inputs if one.name in shapes]
    checks = InputChecks(inputs, manifest.ranges, strided=list(shapes))
    dtypes = {one.name: numpy_dtype(one.type.dtype) for one in inputs if isinstance(one.type, TensorType)}
    checks({name: np.broadcast_to(np.zeros((), dtypes[name]), shape) for name, shape in shapes.items()})
