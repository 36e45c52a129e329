# SPDX-License-Identifier: Apache-2.0
"""What a session says where a node that needs elements has none: a Reshape before it fails."""

import re

from nndeploy.errors import OtherVariantError

NO_ELEMENTS = "nndeploy:no-elements:"
"""What the name of such a Reshape begins with; behind it comes the name of the node."""
_NAMED = re.compile(rf"Name:'{NO_ELEMENTS}(.{{0,100}}?)(?:/elements[\d.]+)?'")


def without_elements(error: Exception) -> OtherVariantError | None:
    """Returns what to say where the library's error is of such a Reshape."""
    found = _NAMED.search(str(error))
    if found is None:
        return None
    return OtherVariantError(f"node {found[1]!r} gets no elements here, with which ONNX Runtime ends the process")
