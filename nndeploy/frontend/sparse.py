# SPDX-License-Identifier: Apache-2.0
"""Sparse constants become dense ones, in place: no backend takes them sparse, and the values are the same.

    sparse_initializer, Constant(sparse_value)  ->  initializer, Constant(value)

In comes a model that has passed the gate, which held the dense size against `Limits`, and has no external data left.
"""

import numpy as np
import numpy.typing as npt
import onnx
import onnx.helper
import onnx.numpy_helper

from nndeploy.errors import ModelError, NndeployError
from nndeploy.frontend.traversal import graphs_of, nodes_of


def make_dense(model: onnx.ModelProto) -> None:
    """Replaces the sparse initializers of all graphs and the sparse values of all Constants.

    Raises:
        ModelError: an index lies outside the tensor, or there are not as many as values.
    """
    for graph in graphs_of(model.graph):
        graph.initializer.extend(_dense(sparse) for sparse in graph.sparse_initializer)
        graph.ClearField("sparse_initializer")
    for node in nodes_of(model):
        for attribute in node.attribute:
            if node.op_type == "Constant" and attribute.HasField("sparse_tensor"):
                dense = _dense(attribute.sparse_tensor)
                attribute.CopyFrom(onnx.helper.make_attribute("value", dense))


def _dense(sparse: onnx.SparseTensorProto) -> onnx.TensorProto:
    try:
        if sparse.values.data_type == onnx.TensorProto.STRING or sparse.indices.data_type != onnx.TensorProto.INT64:
            raise ModelError("values must be numbers and indices int64")
        values = onnx.numpy_helper.to_array(sparse.values).reshape(-1)
        dense = np.zeros(tuple(sparse.dims), dtype=values.dtype)
        dense.reshape(-1)[_flat_indices(sparse, len(values))] = values
    except NndeployError as err:
        err.within(f"sparse tensor {sparse.values.name!r:.80}")
        raise
    return onnx.numpy_helper.from_array(dense, sparse.values.name)


def _flat_indices(sparse: onnx.SparseTensorProto, num_values: int) -> npt.NDArray[np.int64]:
    """Returns where each value lies in the flattened tensor; indices come flat, or as one row for each value."""
    indices: npt.NDArray[np.int64] = onnx.numpy_helper.to_array(sparse.indices)
    sizes = tuple(sparse.dims)
    if indices.shape == (num_values, len(sizes)):
        if ((indices < 0) | (indices >= np.array(sizes))).any():
            raise ModelError("an index lies outside the tensor")
        return np.asarray(np.ravel_multi_index(tuple(indices.T), sizes), dtype=np.int64)
    if indices.shape != (num_values,):
        raise ModelError(f"{num_values} values, but indices of shape {indices.shape}")
    if ((indices < 0) | (indices >= np.prod(sizes, dtype=np.int64))).any():
        raise ModelError("an index lies outside the tensor")
    return indices
