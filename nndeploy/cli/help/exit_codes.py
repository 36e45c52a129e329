# SPDX-License-Identifier: Apache-2.0
"""What each exit code of the command means, as its man pages say it."""

EXIT_CODES = {
    0: "Success.",
    1: "Finished, but a gate, a comparison or some items failed; diff: the bundles differ.",
    2: "The command line is invalid.",
    65: "A model, bundle, input or configuration file is malformed or does not fit.",
    66: "An input file is missing, a folder contains nothing to read, or a registry has no such tag.",
    69: "A backend, a device or a library is not usable here, or a registry cannot be reached.",
    70: "A bug in nndeploy; standard error shows where.",
    73: "An output cannot be created.",
    74: "Reading or writing failed half way, for example because a disk is full.",
    75: "Another process holds the lock, or jobs of a batch are not built yet; retry later.",
    77: "Refused by policy: a bundle that hides code, a forbidden operator, credentials of a registry.",
    124: "A time limit was exceeded.",
    129: "Hung up (SIGHUP); no partial output is left.",
    130: "Interrupted (SIGINT); no partial output is left.",
    141: "The reader closed standard output.",
    143: "Terminated (SIGTERM); no partial output is left.",
}
