# SPDX-License-Identifier: Apache-2.0
"""The original model's own outputs on the samples: what the whole bundle is compared with; they travel as goldens."""

import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from nndeploy.bundle.manifest import NamedType
from nndeploy.checking.drawn_sizes import Drawn, text_of
from nndeploy.checking.open_sizes import OpenSizes, Sizes, open_sizes
from nndeploy.checking.other_sizes import other_sizes
from nndeploy.checking.reference import Reference
from nndeploy.checking.samples import MadeUpSample, generated_samples, given_samples, has_free_size
from nndeploy.errors import BuildRefusedError, ModelError
from nndeploy.frontend.load import LoadedModel
from nndeploy.values.types import TensorType, Value, shapes_text

NUM_GENERATED = 2
MAX_SECONDS = 120.0
"""The time that all attempts at one sample have together."""
MAX_EVALUATED = 3
"""Samples that a library refused and that ONNX's evaluator, which takes a thousand times as long, is asked about."""
LARGE_SECONDS = 0.1  # estimated compute; larger models are checked on one generated sample
NUM_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Original:
    """Samples and the original model's outputs on them; `warnings` say why there are none, or none of some sizes.

    `origin` is "sample" (given by the user) or "generated"; of these `sizes` are those of the first, one of the choices
    for `unknown`. `hint` is what to type where nothing ran.
    """

    samples: tuple[Mapping[str, Value], ...]
    outputs: tuple[Mapping[str, Value], ...]
    origin: str
    warnings: tuple[str, ...] = ()
    hint: str = ""
    unknown: OpenSizes | None = None
    sizes: Sizes = field(default_factory=dict)

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
    if samples is None:
        found = _on_generated(loaded, reference, drawn)
        return replace(found, warnings=(*drawn.warnings, *found.warnings))
    given = given_samples(samples, loaded.inputs, loaded.ranges)
    try:
        return Original(given, tuple(reference.evaluate(loaded.original.SerializeToString(), given)), "sample")
    except BuildRefusedError as err:
        raise ModelError(f"the original model does not run on the given samples: {err}") from err


def _on_generated(loaded: LoadedModel, reference: Reference, drawn: Drawn) -> Original:
    model, unknown = loaded.original.SerializeToString(), drawn.unknown or open_sizes(loaded.model)
    tried = _Tried(loaded.outputs)
    found: list[tuple[MadeUpSample, Mapping[str, Value]]] = []
    failed: list[str] = []
    count = 1 if drawn.seconds > LARGE_SECONDS else NUM_GENERATED
    for seed, chosen in enumerate(drawn.sizes if loaded.ranges else [{}] * count):
        known = found[0][0].sizes if found and not loaded.ranges else chosen
        attempts = generated_samples(
            loaded.model, loaded.inputs, known, seed, unknown, drawn.costs or (lambda _sizes: 0.0)
        )
        before = len(tried.samples)
        made = tried.first_that_runs(attempts, lambda sample: reference.evaluate_made_up(model, sample))
        if made is None and (reference.has_soon_evaluator or not has_free_size(loaded.inputs, chosen)):
            # it may be the library that is wrong: nothing says that other sizes would do
            again = _each(tried.samples[before:][:MAX_EVALUATED])
            made = tried.first_that_runs(again, lambda sample: reference.evaluate(model, [sample])[0])
        if made is None:
            failed.append(f"the original model does not run at {text_of(chosen)}, inside its ranges: {tried.reason}")
        else:
            found.append(made)
    if not found:
        nothing = f"outputs were not compared: no made-up input runs ({tried.reason}){tried.text}; give --samples"
        return Original((), (), "generated", (nothing,), _hint(loaded, unknown, tried.samples))
    samples, outputs = zip(*found, strict=True)
    return Original(
        samples, outputs, "generated", tuple(failed) if loaded.ranges else (), "", unknown, samples[0].sizes
    )


def _hint(loaded: LoadedModel, unknown: OpenSizes, samples: Sequence[MadeUpSample]) -> str:
    """Returns what to type: the sizes of the inputs that have open ones, as they were tried first."""
    if not unknown.kinds or not samples:
        return ""
    sizes = " ".join(
        f"--shape {named.name}={','.join(map(str, samples[0][named.name].shape))}"
        for named in loaded.inputs
        if isinstance(named.type, TensorType) and has_free_size([named])
    )
    return f"give the sizes that the model takes, as {sizes}, or inputs with --samples FOLDER" if sizes else ""


def samples_of_other_sizes(loaded: LoadedModel, reference: Reference, original: Original) -> list[MadeUpSample]:
    """Returns inputs of sizes around those that were made up, as far as they run; none where inputs were given."""
    if not original.is_made_up or original.unknown is None or loaded.ranges:
        return []
    model = loaded.original.SerializeToString()
    found = []
    for sizes in other_sizes(original.unknown, original.sizes):
        try:
            sample = next(generated_samples(loaded.model, loaded.inputs, sizes, 0, original.unknown))
            reference.evaluate_made_up(model, sample)
        except (StopIteration, BuildRefusedError):
            continue  # too large, or no sizes that go together
        found.append(sample)
    return found


@dataclass(slots=True)
class _Tried:
    """Samples that were refused, and the last reason; `declared` are the model's outputs."""

    declared: Sequence[NamedType]
    reason: str = "none could be made"
    samples: list[MadeUpSample] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The sizes that were tried, "" where none was open."""
        sizes = list(dict.fromkeys(text_of(sample.sizes) for sample in self.samples if sample.sizes))
        more = f", and {len(sizes) - NUM_SHOWN} more" if len(sizes) > NUM_SHOWN else ""
        return f"; tried {'; '.join(sizes[:NUM_SHOWN])}{more}" if sizes else ""

    def first_that_runs(
        self, attempts: Generator[MadeUpSample, str, None], run: Callable[[MadeUpSample], Mapping[str, Value]]
    ) -> tuple[MadeUpSample, Mapping[str, Value]] | None:
        """Returns the first attempt that runs, and its outputs; None where there is none.

        One that gives what the model declares goes before one that contradicts it: that may be no legal input.
        """
        contradicting = None
        refusal: str | None = None
        until = time.monotonic() + MAX_SECONDS
        while (sample := _next(attempts, refusal)) is not None and time.monotonic() < until:
            try:
                outputs = run(sample)
            except BuildRefusedError as err:
                refusal = str(err)
            else:
                refusal = _contradiction(outputs, self.declared)
                if not refusal:
                    return sample, outputs
                contradicting = contradicting or (sample, outputs)
            self.reason = refusal
            self.samples.append(sample)
        return contradicting


def _contradiction(outputs: Mapping[str, Value], declared: Sequence[NamedType]) -> str:
    """Returns which output has not the rank that the model declares, "" where all have."""
    for named in declared:
        value, kind = outputs.get(named.name), named.type
        rank = len(kind.shape) if isinstance(kind, TensorType) and kind.shape is not None else None
        if isinstance(value, np.ndarray) and rank not in (None, value.ndim):
            return f"it gives {named.name!r} of rank {value.ndim}, the model says {kind}"
    return ""


def _each(samples: Sequence[MadeUpSample]) -> Generator[MadeUpSample, str, None]:
    for sample in tuple(samples):  # noqa: UP028 - it takes the reasons that are sent, as `yield from` would not
        yield sample


def _next(attempts: Generator[MadeUpSample, str, None], refusal: str | None) -> MadeUpSample | None:
    try:
        return next(attempts) if refusal is None else attempts.send(refusal)
    except StopIteration:
        return None
