# SPDX-License-Identifier: Apache-2.0
"""What is installed: the version, which bundles and pages name, the distribution, and the command that adds to it.

Its wheels come from a folder, never from an index, where its name may be somebody else's.
"""

__version__ = "0.2.0"

DISTRIBUTION = "nndeploy-toolchain"
WHEEL_HINT = f"install the wheel of {DISTRIBUTION} for this machine, or from a checkout: pip install ."


def install_command(extra: str) -> str:
    """Returns the command that installs an extra from a folder of wheels, which stands as FOLDER."""
    return f"pip install --no-index --find-links FOLDER '{DISTRIBUTION}[{extra}]'"
