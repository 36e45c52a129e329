# SPDX-License-Identifier: Apache-2.0
"""Help pages, man pages and shell completion."""
