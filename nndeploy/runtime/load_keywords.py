# SPDX-License-Identifier: Apache-2.0
"""The fields of `LoadOptions` as keywords of `load_bundle`, for type checkers."""

from typing import TypedDict

from nndeploy.runtime.load_options import Isolated
from nndeploy.target.place_limits import PlaceLimit


class LoadKeywords(TypedDict, total=False):
    """Each means what the field of `LoadOptions` of its name does."""

    threads: int | None
    device: str
    places: tuple[PlaceLimit, ...]
    strict: bool
    cache_dir: str | None
    share_weights: bool
    custom_op_libraries: tuple[str, ...]
    allow_native_code: bool
    allow_unsigned_code: bool
    isolate: Isolated
    item_timeout: float | None
    memory_limit: int | None
