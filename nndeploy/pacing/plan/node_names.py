# SPDX-License-Identifier: Apache-2.0
"""How the model calls its nodes: their names, as `inspect` shows them, and the value by which pacing knows each."""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from nndeploy.bundle.reader import Bundle
from nndeploy.bundle.report import report_from_json

NodeNames: TypeAlias = Mapping[str, Sequence[str]]
"""Name of a node -> the first output of each node that has it: names of nodes need not be different."""


def node_names(bundle: Bundle) -> NodeNames:
    """Returns the names of the nodes of a bundle's optimised model.

    Raises:
        BundleError: its report is damaged.
    """
    names = dict[str, list[str]]()
    for node in report_from_json(bundle.report()).nodes:
        names.setdefault(node.name, []).extend(node.outputs[:1])
    return names
