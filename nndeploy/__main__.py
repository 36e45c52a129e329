# SPDX-License-Identifier: Apache-2.0
"""`python -m nndeploy` is the command `nndeploy`."""

from nndeploy.cli.main import main

if __name__ == "__main__":
    main()
