# SPDX-License-Identifier: Apache-2.0
"""The original model's own outputs on the samples: what the whole bundle is compared with; they travel as goldens."""

import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from nndeploy.bundle.manifest import NamedType
from nndeploy.checking.drawn_sizes import Drawn, Sizes, text_of
from nndeploy.checking.other_sizes import other_sizes
from nndeploy.checking.reference import Reference
from nndeploy.checking.samples import Sample, generated_samples, given_samples, has_free_size
from nndeploy.errors import BuildRefusedError, ModelError
from nndeploy.frontend.load import LoadedModel
from nndeploy.values.types import TensorType, Value, shapes_text

NUM_GENERATED = 2
MAX_SECONDS = 120.0  # for all attempts at one sample
LARGE_SECONDS = 0.1  # estimated compute; larger models are checked on one generated sample


@dataclass(frozen=True, slots=True)
class Original:
    """Samples and the original model's outputs on them; `warnings` say why there are none, or none of some sizes.

    `origin` is "sample" (given by the user) or "generated".
    """

    samples: tuple[Mapping[str, Value], ...]
    outputs: tuple[Mapping[str, Value], ...]
    origin: str
    warnings: tuple[str, ...] = ()

    @property
    def is_made_up(self) -> bool:
        """Whether there are samples, and nobody gave them."""
        return bool(self.samples) and self.origin == "generated"

    @property
    def shapes(self) -> tuple[str, ...]:
        """The shapes of each sample."""
        return tuple(shapes_text(sample) for sample in self.samples)


def original_outputs(
    loaded: LoadedModel,
    reference: Reference,
    samples: Sequence[Mapping[str, Value]] | None,
    drawn: Drawn,
) -> Original:
    """Returns the outputs on the given samples, or on generated ones that the reference can run.

    `drawn` are the sizes of the declared ranges to generate samples of.

    Raises:
        InputError: a given sample does not fit the model's inputs.
        ModelError: the reference cannot run the model on a given sample.
    """
    model = loaded.original.SerializeToString()
    if samples is None:
        count = 1 if drawn.seconds > LARGE_SECONDS else NUM_GENERATED
        found = _on_generated(loaded, reference, model, drawn.sizes if loaded.ranges else [{}] * count)
        return replace(found, warnings=(*drawn.warnings, *found.warnings))
    given = given_samples(samples, loaded.inputs, loaded.ranges)
    try:
        return Original(given, tuple(reference.evaluate(model, given)), "sample")
    except BuildRefusedError as err:
        raise ModelError(f"the original model does not run on the given samples: {err}") from err


def _on_generated(loaded: LoadedModel, reference: Reference, model: bytes, sizes: Sequence[Sizes]) -> Original:
    found: list[Sample] = []
    outputs: list[Mapping[str, Value]] = []
    failed: list[str] = []
    reason = "none could be made"
    for seed, chosen in enumerate(sizes):
        attempts = generated_samples(loaded.model.graph, loaded.inputs, chosen, seed)
        refused = _Refused(reason)
        made = _that_runs(attempts, lambda sample: reference.evaluate_made_up(model, sample), loaded.outputs, refused)
        if made is None and (reference.has_soon_evaluator or not has_free_size(loaded.inputs, chosen)):
            # it may be the library that is wrong: nothing says that other sizes would do
            again = _each(refused.samples)
            made = _that_runs(again, lambda sample: reference.evaluate(model, [sample])[0], loaded.outputs, refused)
        if made is not None:
            found.append(made[0])
            outputs.append(made[1])
        else:
            reason = refused.reason
            failed.append(f"the original model does not run at {text_of(chosen)}, inside its ranges: {reason}")
    if not found:
        nothing = f"outputs were not compared: no generated input runs ({reason}); give --samples"
        return Original((), (), "generated", (nothing,))
    return Original(tuple(found), tuple(outputs), "generated", tuple(failed) if loaded.ranges else ())


def samples_of_other_sizes(loaded: LoadedModel, reference: Reference, original: Original) -> list[Sample]:
    """Returns inputs of sizes around those that were made up, as far as they run; none where inputs were given."""
    if not original.is_made_up or loaded.ranges:
        return []
    model = loaded.original.SerializeToString()
    found = []
    for sizes in other_sizes(original.samples[0], loaded.inputs):
        try:
            sample = next(generated_samples(loaded.model.graph, loaded.inputs, sizes, 0))
            reference.evaluate_made_up(model, sample)
        except (StopIteration, BuildRefusedError):
            continue  # too large, or no sizes that go together
        found.append(sample)
    return found


@dataclass(slots=True)
class _Refused:
    """The last reason why a sample was refused, and the samples that were.

    `contradicting` is the first that runs but gives outputs of other ranks than the model declares.
    """

    reason: str
    samples: list[Sample] = field(default_factory=list)
    contradicting: tuple[Sample, Mapping[str, Value]] | None = None


def _that_runs(
    attempts: Generator[Sample, str, None],
    run: Callable[[Sample], Mapping[str, Value]],
    declared: Sequence[NamedType],
    refused: _Refused,
) -> tuple[Sample, Mapping[str, Value]] | None:
    """Returns the first attempt that runs, and its outputs; None where there is none. `refused` is added to.

    One that gives what the model declares goes before one that contradicts it: that may be no legal input.
    """
    refusal: str | None = None
    until = time.monotonic() + MAX_SECONDS
    while (sample := _next(attempts, refusal)) is not None and time.monotonic() < until:
        try:
            outputs = run(sample)
        except BuildRefusedError as err:
            refusal = str(err)
        else:
            refusal = _contradiction(outputs, declared)
            if not refusal:
                return sample, outputs
            refused.contradicting = refused.contradicting or (sample, outputs)
        refused.reason = refusal
        refused.samples.append(sample)
    return refused.contradicting


def _contradiction(outputs: Mapping[str, Value], declared: Sequence[NamedType]) -> str:
    """Returns which output has not the rank that the model declares, "" where all have."""
    for named in declared:
        value, kind = outputs.get(named.name), named.type
        rank = len(kind.shape) if isinstance(kind, TensorType) and kind.shape is not None else None
        if isinstance(value, np.ndarray) and rank not in (None, value.ndim):
            return f"it gives {named.name!r} of rank {value.ndim}, the model says {kind}"
    return ""


def _each(samples: Sequence[Sample]) -> Generator[Sample, str, None]:
    for sample in tuple(samples):  # noqa: UP028 - it takes the reasons that are sent, as `yield from` would not
        yield sample


def _next(attempts: Generator[Sample, str, None], refusal: str | None) -> Sample | None:
    try:
        return next(attempts) if refusal is None else attempts.send(refusal)
    except StopIteration:
        return None
