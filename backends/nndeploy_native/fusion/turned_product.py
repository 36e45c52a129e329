# SPDX-License-Identifier: Apache-2.0
"""product -> copy in another order of its axes  =>  product: rows are stored where the copy would put them.

Only where columns stay side by side, and no residual, which lies as the product does, is added. So the heads of
attention lie side by side in the rows that the next layer reads.
"""

from collections.abc import Set
from dataclasses import replace

from nndeploy.backend_kit.kernels.joining import with_makers_joined
from nndeploy_native.steps.matmul import Product
from nndeploy_native.steps.movement import Gather, StridedCopy, View, contiguous, strides_of
from nndeploy_native.steps.step import NativeStep
from nndeploy_native.tensors import fixed_shape


def fuse_turned_product(steps: list[NativeStep], kept: Set[str]) -> list[NativeStep]:
    """Returns the steps with such copies as part of the product; `kept` names the roots that are read outside."""
    return with_makers_joined(steps, kept, _copied, _joined)


def _copied(step: NativeStep) -> list[str | None]:
    """Returns the name of what a step copies, which is plain."""
    match step:
        case StridedCopy():
            return [step.view.base.name]
        case Gather(x=x) if not x.is_blocked:
            return [x.name]
    return []


def _joined(maker: NativeStep, step: NativeStep, _: int) -> NativeStep | None:
    if not isinstance(maker, Product) or maker.epilogue.residual is not None or maker.strides is not None:
        return None
    view = step.view if isinstance(step, StridedCopy) else _view_of(step)
    if view is None or view.offset != 0:
        return None
    axes = zip(view.sizes, view.strides, contiguous(view.sizes), strict=True)
    places = {(size, by): to for size, by, to in axes if size != 1}
    found = [
        0 if size == 1 else places.pop((size, by), None)
        for size, by in zip(maker.sizes, contiguous(maker.sizes), strict=True)
    ]
    strides = tuple(one for one in found if one is not None)
    if places or len(strides) < len(found) or (strides[-1] != 1 and maker.sizes[-1] != 1):
        return None
    return replace(maker, output=step.output, strides=strides)


def _view_of(step: NativeStep) -> View | None:
    assert isinstance(step, Gather)
    even = strides_of(step.places.reshape(fixed_shape(step.output.shape)))
    return None if even is None else View(step.x, *even)
