/* SPDX-License-Identifier: Apache-2.0
 *
 * The version of nndeploy, as `nndeploy --version` says it.
 */
#ifndef NND_RUNTIME_VERSION_H
#define NND_RUNTIME_VERSION_H

#define NND_VERSION "0.2.0"

#endif
