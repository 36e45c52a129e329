# SPDX-License-Identifier: Apache-2.0
"""The frontend: an untrusted ONNX file becomes a checked model; `load.py` is the flow on one page."""
