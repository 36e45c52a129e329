# SPDX-License-Identifier: Apache-2.0
"""Whether a text is OpenVINO's IR, before the library sees it.

`Core.read_model` asks each of its front ends (ONNX, TensorFlow, Paddle, IR and others) whose model the bytes are, and
only the one for IR cannot name a file: its weights come along in memory, and the library checks that each constant lies
within them. The front end for IR takes a text whose root is `net` of version 10 or 11, as its own writer begins it;
that no other takes.

Source: OpenVINO 2026.4, src/frontends/ir/src/frontend.cpp, `get_ir_version`.
"""

import re

from nndeploy.errors import PolicyError

_BEGIN = re.compile(rb'<\?xml version="1\.0"(?: encoding="[A-Za-z0-9-]+")?\?>\s*<net name="[^"<>]*" version="1[01]">\s')


def check_is_ir(graph: bytes) -> None:
    """Passes a graph in IR.

    Raises:
        PolicyError: it is something else, which might name files.
    """
    if not _BEGIN.match(graph):
        raise PolicyError(f"the graph is not OpenVINO's IR: it begins with {graph[:24]!r}", hint="compile it again")
