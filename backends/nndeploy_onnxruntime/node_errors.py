# SPDX-License-Identifier: Apache-2.0
"""What a session says where a node fails that was put into the model to fail: its name tells why, and before which.

`needed_elements` puts a Reshape before a node that needs elements, `bounded_sizes` a Gather before one whose size
follows from numbers of a call.
"""

import re

from nndeploy.errors import InputError, OtherVariantError

NO_ELEMENTS = "nndeploy:no-elements:"
TOO_MANY = "nndeploy:too-many:"
"""What the name of such a node begins with; behind it comes the name of the node that it leads to."""
_NAMED = re.compile(rf"Name:'({NO_ELEMENTS}|{TOO_MANY})(.{{0,100}}?)(?:/(?:elements|bound)[\d.]+)?'")


def error_of_node(error: Exception) -> InputError | None:
    """Returns what to say where the library's error is of such a node."""
    found = _NAMED.search(str(error))
    if found is None:
        return None
    if found[1] == TOO_MANY:
        return InputError(f"node {found[2]!r} would make more elements of numbers of this call than are allowed")
    return OtherVariantError(f"node {found[2]!r} gets no elements here, with which ONNX Runtime ends the process")
