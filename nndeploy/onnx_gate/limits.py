# SPDX-License-Identifier: Apache-2.0
"""How large an untrusted model may be; each limit is checked before the memory or time that it stands for is spent."""

from dataclasses import dataclass

from nndeploy.values.types import MAX_RANK, MAX_TYPE_DEPTH

PROTOBUF_MAX_BYTES = 2**31 - 1
"""Source: protobuf, "the maximum size of a serialized message is 2 GiB"."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of the gate and of the external-data reader.

    `max_graph_depth` counts graphs inside one another, the main graph being 1. `max_nodes` holds for the nodes in the
    file and for those after every function call was replaced by the function's body. `max_fields` bounds the time
    that the gate takes (about 1 us a field). `max_total_bytes` is the sum over all tensors, external ones included,
    as they are in memory; up to 2 GiB they can travel inside the model. A name is whatever identifies something;
    documentation may be longer.
    """

    max_file_bytes: int = PROTOBUF_MAX_BYTES
    max_graph_depth: int = 16
    max_type_depth: int = MAX_TYPE_DEPTH
    max_rank: int = MAX_RANK
    max_nodes: int = 1_000_000
    max_attributes: int = 8_000_000
    max_fields: int = 64_000_000
    max_name_bytes: int = 65_536
    max_tensor_bytes: int = PROTOBUF_MAX_BYTES
    max_total_bytes: int = PROTOBUF_MAX_BYTES


DEFAULT_LIMITS = Limits()


def limits_within(memory_bytes: int) -> Limits:
    """Returns the limits where weights may be as many as fit into the memory: their data lie outside of the file."""
    most = max(PROTOBUF_MAX_BYTES, memory_bytes)
    return Limits(max_tensor_bytes=most, max_total_bytes=most)
