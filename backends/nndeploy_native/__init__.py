# SPDX-License-Identifier: Apache-2.0
"""Own CPU kernels: fused depthwise and pointwise convolution, built ahead of time for x86-64 and aarch64."""
