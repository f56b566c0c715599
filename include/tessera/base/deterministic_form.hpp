// SPDX-License-Identifier: Apache-2.0
// Operations that cannot promise the same bits, as LibTorch reports them.
#pragma once

#include <exception>
#include <string>

namespace tessera {

/// For LibTorch's error about an operation without a deterministic form, under debug.deterministic:
/// which operation, and what to do. Empty for other errors.
std::string without_deterministic_form(const std::exception& error);

}  // namespace tessera
