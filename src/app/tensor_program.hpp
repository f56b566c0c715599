// SPDX-License-Identifier: Apache-2.0
// The program with LibTorch, which this process may become.
#pragma once

#include <string>

#include "command.hpp"

namespace tessera::app {

/// Runs its command `command`. Throws Error(environment) where the program is missing.
[[noreturn]] void become_tensor_program(const std::string& command, const Args& args);

}  // namespace tessera::app
