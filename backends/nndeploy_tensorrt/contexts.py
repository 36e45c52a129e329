# SPDX-License-Identifier: Apache-2.0
"""One execution context for each optimisation profile of an engine; a call's shapes choose one.

A context that changed its profile from call to call would set itself up anew each time.

Source: TensorRT-RTX 1.7, ICudaEngine.getProfileShape, IExecutionContext.setOptimizationProfileAsync.
"""

from collections.abc import Callable, Mapping, Sequence

from nndeploy.errors import UnavailableError
from nndeploy_tensorrt.library import TensorRt

Shapes = Mapping[str, tuple[int, ...]]


class Contexts:
    """The contexts of an engine; `new_context` makes one."""

    def __init__(
        self, engine: TensorRt, dynamic_inputs: Sequence[str], stream: int, new_context: Callable[[], TensorRt]
    ) -> None:
        """Makes all contexts.

        Raises:
            UnavailableError: a context cannot be made or does not take up its profile.
        """
        count = max(1, engine.num_optimization_profiles)
        self._contexts = [new_context() for _ in range(count)]
        for i, context in enumerate(self._contexts[1:], 1):
            if not context.set_optimization_profile_async(i, stream):
                raise UnavailableError(f"TensorRT does not take up optimisation profile {i} of {count}")
        self._limits = [_limits(engine, dynamic_inputs, i) for i in range(count)]

    @property
    def first(self) -> TensorRt:
        """The first profile's context: the only one of an engine with fixed sizes."""
        return self._contexts[0]

    def holding(self, shapes: Shapes) -> TensorRt | None:
        """Returns the context of the first profile that all shapes lie in, None where there is none."""
        fits = (
            all(_lies_between(shapes[name], least, most) for name, (least, most) in limits.items())
            for limits in self._limits
        )
        return next((context for context, fit in zip(self._contexts, fits, strict=True) if fit), None)


def _limits(
    engine: TensorRt, dynamic_inputs: Sequence[str], profile: int
) -> dict[str, tuple[tuple[int, ...], tuple[int, ...]]]:
    """Returns the smallest and the largest shape of each dynamic input in a profile."""
    shapes = {name: engine.get_tensor_profile_shape(name, profile) for name in dynamic_inputs}
    return {name: (tuple(found[0]), tuple(found[2])) for name, found in shapes.items()}


def _lies_between(shape: tuple[int, ...], least: tuple[int, ...], most: tuple[int, ...]) -> bool:
    return len(shape) == len(least) and all(a <= b <= c for a, b, c in zip(least, shape, most, strict=True))
