// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace tessera {

/// The name of this machine as gethostname() gives it; "unknown" where it gives none.
std::string host_name();

}  // namespace tessera
