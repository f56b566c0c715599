// SPDX-License-Identifier: Apache-2.0
// How a command's help looks: Tessera's words, and lines that fit a terminal.
#pragma once

#include <string>
#include <string_view>

namespace tessera::app {

/// CLI11's help with "command" for subcommand and "argument" for positional, and lines of at most
/// `columns` columns. What is cut off a line goes below the column in which its description begins.
std::string help_text(std::string_view raw, std::size_t columns = 100);

}  // namespace tessera::app
