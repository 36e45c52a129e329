# SPDX-License-Identifier: Apache-2.0
"""An independent implementation of ONNX's operators, written from the text of the specification alone.

It is what engines are held against, so it is written for obviousness: plain NumPy, float64 inside, integers exact.
It shares no code with the product and none with any engine.
"""
