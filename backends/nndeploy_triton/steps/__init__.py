# SPDX-License-Identifier: Apache-2.0
"""Steps: what a submodel does, as calls of our kernels. One file a family, as in kernels/.

A step is a frozen value that names the views it reads and the one it writes. `tiles` lists the block sizes that suit
a GPU, best first; `request` says what to launch for one of them. Steps know nothing of ONNX and nothing of Triton.
"""
