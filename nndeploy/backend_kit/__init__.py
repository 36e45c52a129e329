# SPDX-License-Identifier: Apache-2.0
"""What authors of backends may use besides `nndeploy.plugin`.

query.py         the whole first, then node by node: which nodes a library takes
reasons.py       what a library says, as one line
transforms/      rewrites that a backend may ask for
opset.py         a model in another version of ONNX's operator set
kernels/         what backends with kernels of their own share
gpu_probe.py     what a backend for NVIDIA GPUs can do here
fixed_layout.py  a process whose addresses are the same each time
"""
