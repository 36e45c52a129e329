# SPDX-License-Identifier: Apache-2.0
"""The original model's own outputs on the samples: what the whole bundle is compared with; they travel as goldens."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nndeploy.errors import ModelError
from nndeploy.frontend.load import LoadedModel
from nndeploy.plugin.interface import BuildRefusedError
from nndeploy.value_types import Value
from nndeploy.verify.reference import Reference
from nndeploy.verify.samples import Sample, generated_samples, given_samples

NUM_GENERATED = 2
LARGE_SECONDS = 0.1  # estimated compute; larger models are checked on one generated sample


@dataclass(frozen=True, slots=True)
class Original:
    """Samples and the original model's outputs on them; `warning` says why there are none, "" otherwise.

    `origin` is "sample" (given by the user) or "generated".
    """

    samples: tuple[Mapping[str, Value], ...]
    outputs: tuple[Mapping[str, Value], ...]
    origin: str
    warning: str = ""


def original_outputs(
    loaded: LoadedModel, reference: Reference, samples: Sequence[Mapping[str, Value]] | None, seconds: float
) -> Original:
    """Returns the outputs on the given samples, or on generated ones that the reference can run.

    `seconds` is the model's estimated compute.

    Raises:
        InputError: a given sample does not fit the model's inputs.
        ModelError: the reference cannot run the model on a given sample.
    """
    model = loaded.original.SerializeToString()
    if samples is None:
        return _on_generated(loaded, reference, model, 1 if seconds > LARGE_SECONDS else NUM_GENERATED)
    given = given_samples(samples, loaded.inputs, loaded.ranges)
    try:
        return Original(given, tuple(reference.evaluate(model, given)), "sample")
    except BuildRefusedError as err:
        raise ModelError(f"the original model does not run on the given samples: {err}") from err


def _on_generated(loaded: LoadedModel, reference: Reference, model: bytes, count: int) -> Original:
    found: list[Sample] = []
    outputs: list[dict[str, Value]] = []
    reason = "none could be made"
    for seed in range(count):
        for sample in generated_samples(loaded.model.graph, loaded.inputs, loaded.ranges, seed):
            try:
                outputs += reference.evaluate(model, [sample])
            except BuildRefusedError as err:
                reason = str(err)
            else:
                found.append(sample)
                break
    warning = "" if found else f"outputs were not compared: no generated input runs ({reason}); give --samples"
    return Original(tuple(found), tuple(outputs), "generated", warning)
