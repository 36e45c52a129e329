# SPDX-License-Identifier: Apache-2.0
"""What each exit code of the command means, as its man pages say it."""

EXIT_CODES = {
    0: "All is well.",
    1: "It finished, but a gate or a comparison failed, or some items did; of diff: the bundles differ.",
    2: "The command line has no meaning.",
    65: "A model, bundle, input or configuration file is malformed or does not fit.",
    66: "A file that should be read is missing, a folder holds nothing to read, or a registry has no such tag.",
    69: "A backend, a device or a library is not usable here, or a registry cannot be reached.",
    70: "There is a bug in nndeploy; the lines on standard error show where.",
    73: "An output cannot be created.",
    74: "Reading or writing failed half way, for example because a disk is full.",
    75: "Somebody else is at it, or jobs of a batch are not built yet; the same call may work later.",
    77: "It was refused by policy: a bundle that hides code, a forbidden operator, credentials of a registry.",
    124: "A time limit passed.",
    129: "It was hung up (SIGHUP); nothing half written stays.",
    130: "It was interrupted (SIGINT); nothing half written stays.",
    141: "The reader of standard output went away.",
    143: "It was terminated (SIGTERM); nothing half written stays.",
}
