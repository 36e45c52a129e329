# SPDX-License-Identifier: Apache-2.0
"""The load stage on one page: an untrusted model becomes a checked one that passes and backends can work on.

    gate -> parse -> external data -> normal form -> wiring -> operators -> one operator set, no functions
         -> shapes -> onnx's checks -> internal model

Nothing but the gate sees a file before it was found sound, and no library ever resolves a path that the model names.
The caller decides in which process this runs: the libraries behind it are not proof against every malformed model.
"""

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import onnx
import onnx_ir as ir

from nndeploy.bundle.manifest import NamedType
from nndeploy.errors import ModelError, NndeployError
from nndeploy.frontend.default_inputs import AUTO, make_constants, take_defaults
from nndeploy.frontend.external_data import embed_external_data
from nndeploy.frontend.graph_rules import check_graphs
from nndeploy.frontend.inference import forget_remarks
from nndeploy.frontend.internal_model import internal_model_from_onnx, without_large_weights
from nndeploy.frontend.node_names import name_nodes
from nndeploy.frontend.normal_form import make_normal
from nndeploy.frontend.onnx_checks import check_operators, check_with_onnx
from nndeploy.frontend.operator_sets.one_set import use_one_set
from nndeploy.frontend.shape_texts import ShapeSpec, shape_spec_from_value
from nndeploy.frontend.shapes import apply_shapes, name_sizes, symbolic_dims
from nndeploy.frontend.stored_weights import StoredWeights, is_worth_a_file
from nndeploy.graph.onnx_types import named_types_from_onnx
from nndeploy.onnx_gate.gate import check_bytes, check_file
from nndeploy.onnx_gate.limits import DEFAULT_LIMITS, Limits
from nndeploy.values.types import DimRange, Value

if TYPE_CHECKING:
    from hashlib import _Hash

ModelSource: TypeAlias = str | os.PathLike[str] | bytes | onnx.ModelProto | ir.Model
Shapes: TypeAlias = Mapping[str, str | ShapeSpec | Sequence[object]]
ShapesFor: TypeAlias = Callable[["Interface"], Shapes]
"""Returns the shapes to ask for of a model that declares this."""


@dataclass(frozen=True, slots=True)
class Interface:
    """What a model declares: its inputs, the names of those that have a default, and the names of its outputs."""

    inputs: tuple[NamedType, ...]
    defaults: frozenset[str]
    outputs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A checked model, twice.

    `original` is what the reference runs: not optimised, weights embedded, the asked shapes applied. `model` is for
    passes and backends: types inferred; it shares the large weights with `original`, so neither may be changed in place
    after the other is used. Both have no functions, no weights among their inputs and a name for every node. `sha256`
    is that of the file's bytes, followed by those of its external tensors in the model's order. `ranges` holds the
    sizes of the symbols that `shapes` gave a range. `warnings` say what could not be learnt of it. `stored` has the
    large weights of a large model; in both they only name their place.
    `defaults` are the values of inputs that may be left out.
    """

    model: ir.Model
    original: onnx.ModelProto
    name: str
    sha256: str
    ranges: Mapping[str, DimRange]
    inputs: tuple[NamedType, ...]
    outputs: tuple[NamedType, ...]
    warnings: tuple[str, ...] = ()
    stored: StoredWeights | None = None
    defaults: Mapping[str, Value] = field(default_factory=dict)

    def filled(self, samples: Sequence[Mapping[str, Value]]) -> list[Mapping[str, Value]]:
        """Returns samples in which each input that was left out and has a default has it."""
        return [sample if self.defaults.keys() <= sample.keys() else self._filled(sample) for sample in samples]

    def _filled(self, sample: Mapping[str, Value]) -> Mapping[str, Value]:
        whole = copy(sample)  # what it says of the file that it came from stays
        whole.update({**self.defaults, **sample})  # type: ignore[attr-defined]
        return whole

    def without_defaults(self) -> "LoadedModel":
        """Returns the model without the inputs that have a default: as `original` computes it where none is given."""
        original = onnx.ModelProto()
        original.CopyFrom(self.original)
        make_constants(original, self.defaults)
        inputs = tuple(named for named in self.inputs if named.name not in self.defaults)
        return replace(self, original=original, inputs=inputs)


def load_model(
    source: ModelSource,
    *,
    shapes: Shapes | ShapesFor | None = None,
    extra_domains: Set[str] = frozenset(),
    limits: Limits = DEFAULT_LIMITS,
    folder: Path | None = None,
    folder_for_weights: Callable[[], Path] | None = None,
    initializer_inputs: str = AUTO,
    independent: Set[str] = frozenset(),
) -> LoadedModel:
    """Returns the model of a file, of serialised bytes, or of an onnx or onnx_ir model, checked.

    `shapes` maps inputs to what `--shape` takes after the "=", or makes that mapping. `extra_domains` are operator
    domains that a library named by the user implements. `folder` is where external data of a model that comes from no
    file lie. `initializer_inputs` says what initializers are that are listed as inputs too (`default_inputs.py`). The
    symbols in `independent` are another size wherever they occur.
    `folder_for_weights` makes a private folder, which must stay as long as the model is used; it is called where the
    weights are too many to travel inside the model.

    Raises:
        ModelError: the model is malformed, or holds something that cannot run.
        PolicyError: it uses an operator or a path that is not allowed.
        UsageError: `shapes` do not fit the model.
        MissingInputError: the file, or one with its weights, does not exist.
        InputOutputError: a file cannot be read.
    """
    with _naming(source):
        original, digest, num_weight_bytes = _gated_and_parsed(source, limits, extra_domains)
        stored = None
        if folder_for_weights is not None and is_worth_a_file(original, num_weight_bytes):
            stored = StoredWeights(folder_for_weights())
        for tensor in embed_external_data(original, _folder_of(source, folder), stored):
            for piece in [tensor.raw_data] if stored is None else stored.pieces_of(tensor):
                digest.update(piece)
        make_normal(original, independent)
        if stored is not None:
            original = stored.add_large(original)
        defaults, notes = take_defaults(original, initializer_inputs)
        name_nodes(original)
        check_graphs(original)
        check_operators(original)
        use_one_set(original)
        name_nodes(original)
        ranges = apply_shapes(original, _specs(original, frozenset(defaults), shapes or {}))
        inputs = named_types_from_onnx(original.graph.input, "input")
        named_types_from_onnx([output for output in original.graph.output if output.HasField("type")], "output")
        light, large = without_large_weights(original)
        check_with_onnx(light)
        name_sizes(light)
        model, flat, warnings = internal_model_from_onnx(light, large)
        outputs = _without_invented_symbols(flat.graph.output, original)
        for output, found in zip(original.graph.output, outputs, strict=True):
            output.CopyFrom(found)
        forget_remarks(original, flat)
        return LoadedModel(
            model=model,
            original=original,
            name=_name_of(source, original),
            sha256=digest.hexdigest(),
            ranges=ranges,
            inputs=inputs,
            outputs=named_types_from_onnx(outputs, "output"),
            warnings=(*notes, *warnings),
            stored=stored,
            defaults=defaults,
        )


def _specs(original: onnx.ModelProto, defaults: frozenset[str], shapes: Shapes | ShapesFor) -> Mapping[str, ShapeSpec]:
    if not isinstance(shapes, Mapping):
        outputs = tuple(output.name for output in original.graph.output)
        shapes = shapes(Interface(named_types_from_onnx(original.graph.input, "input"), defaults, outputs))
    return {name: shape_spec_from_value(value, f"shape of {name!r}") for name, value in shapes.items()}


@contextmanager
def _naming(source: ModelSource) -> Iterator[None]:
    """Puts the file's name into errors."""
    try:
        yield
    except NndeployError as err:
        if isinstance(source, str | os.PathLike):
            err.within(os.fspath(source))
        raise


def _gated_and_parsed(
    source: ModelSource, limits: Limits, extra_domains: Set[str]
) -> "tuple[onnx.ModelProto, _Hash, int]":
    """Returns the model, a running hash of its bytes, which are not kept, and the bytes of its weights."""
    if isinstance(source, str | os.PathLike):
        data, facts = check_file(Path(source), limits, extra_domains)
    else:
        data = _serialised(source)
        facts = check_bytes(data, limits, extra_domains)
    try:
        return onnx.load_from_string(data), hashlib.sha256(data), facts.num_weight_bytes
    except Exception as err:  # protobuf's own errors differ between its implementations
        raise ModelError(f"the model cannot be parsed: {err}") from err


def _serialised(source: bytes | onnx.ModelProto | ir.Model) -> bytes:
    if isinstance(source, bytes):
        return source
    try:
        proto: onnx.ModelProto = ir.to_proto(source) if isinstance(source, ir.Model) else source
        return bytes(proto.SerializeToString(deterministic=True))
    except Exception as err:  # see above; the usual one is a model of more than 2 GiB
        raise ModelError(f"the model cannot be serialised: {err}", hint="a model has less than 2 GiB") from err


def _folder_of(source: ModelSource, folder: Path | None) -> Path | None:
    return Path(source).parent if isinstance(source, str | os.PathLike) and folder is None else folder


def _name_of(source: ModelSource, model: onnx.ModelProto) -> str:
    return Path(source).stem if isinstance(source, str | os.PathLike) else model.graph.name or "model"


def _without_invented_symbols(
    outputs: Sequence[onnx.ValueInfoProto], original: onnx.ModelProto
) -> list[onnx.ValueInfoProto]:
    """Returns the inferred outputs without the symbols that the inference made up (`unk__0`)."""
    declared = {d.dim_param for v in (*original.graph.input, *original.graph.output) for d in symbolic_dims(v.type)}
    results = []
    for output in outputs:
        result = onnx.ValueInfoProto()
        result.CopyFrom(output)
        for dim in symbolic_dims(result.type):
            if dim.dim_param not in declared:
                dim.ClearField("dim_param")
        results.append(result)
    return results
