// SPDX-License-Identifier: Apache-2.0
// How communicators reach the hooks.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "tessera/comm/hooks.hpp"

namespace tessera::comm {

/// Those of now; a list is never changed, but replaced.
using HookList = std::vector<std::shared_ptr<Hook>>;
std::shared_ptr<const HookList> hooks() noexcept;

void call_before_abort(std::string_view why) noexcept;

}  // namespace tessera::comm
