// SPDX-License-Identifier: Apache-2.0
// Reads a host's file.
#pragma once

#include <optional>

#include "facts_file.hpp"
#include "tessera/planner/host.hpp"

namespace tessera::planner {

/// Nothing where the file has no section [host]. Throws Error(usage) with file and line for a key
/// that a host does not have, and names those that it lacks.
std::optional<Host> host_in(const FactsFile& facts);

}  // namespace tessera::planner
