# SPDX-License-Identifier: Apache-2.0
"""Pages of HTML and pictures that commands write."""
