# SPDX-License-Identifier: Apache-2.0
"""Who built a bundle, and whom this machine trusts to: keys, signatures, the trust store."""
