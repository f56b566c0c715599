// SPDX-License-Identifier: Apache-2.0
// The option table for readers: terminal, JSON, man page, completion.
#pragma once

#include <string>
#include <string_view>

namespace tessera::config {

/// Aligned text: key, type, default, support, meaning. With a section ("training") only its keys;
/// throws Error(usage) when there is none of that name.
std::string keys_as_table(std::string_view section = "");

/// A JSON list of {key, type, optional, default, allowed, support, works_with, why, with, ours,
/// aliases, help}.
std::string keys_as_json();

/// The body of tessera-config(5), in roff.
std::string keys_as_man_page();

/// The table of share/doc/tessera/from-torchtitan.md: TorchTitan's keys that are refused and those
/// that are harmless, each with the reason, in Markdown.
std::string keys_as_markdown();

/// Every flag, one a line, for completion: --training.steps, and --section.no_key for booleans.
std::string flags_as_words();

}  // namespace tessera::config
