# SPDX-License-Identifier: Apache-2.0
"""Values as text and files: JSON lines, .npy, .npz, images."""
