# SPDX-License-Identifier: Apache-2.0
"""`python -m nndeploy` is the command `nndeploy`; a shell that completes is answered before the program is imported."""

import os
from typing import NoReturn


def main() -> NoReturn:
    """Runs the command line of this process and ends it."""
    if asked := os.environ.get("_NNDEPLOY_COMPLETE", ""):
        from nndeploy.cli.help.completion_index import indexed_command
        from nndeploy.cli.help.shell_completion import answer_shell

        if (command := indexed_command()) is not None:
            raise SystemExit(answer_shell(command, asked))
    from nndeploy.cli.main import main as run

    run()


if __name__ == "__main__":
    main()
