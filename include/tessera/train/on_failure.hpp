// SPDX-License-Identifier: Apache-2.0
// What a command does first when it fails.
#pragma once

#include <functional>

namespace tessera::train {

/// Called inside a handler, while communicators and all else that the command has are still there:
/// says why this rank fails and settles the job's exit code with the other ranks. Ends the job if
/// they do not fail, too. If it returns, nothing waits for other ranks or for a device any more
/// (comm/failure.hpp), and the exception is to be thrown on.
using OnFailure = std::function<void()>;

}  // namespace tessera::train
