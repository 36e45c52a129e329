# SPDX-License-Identifier: Apache-2.0
"""The gate in pure Python through which an untrusted ONNX model passes before a library parses it, in both halves.

gate.py is the walk; wire.py, onnx_messages.py read protobuf; limits.py, tensor_rules.py, file_kinds.py say what passes.
"""
