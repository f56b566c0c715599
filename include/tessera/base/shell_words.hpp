// SPDX-License-Identifier: Apache-2.0
// Words of a command line as a shell or xargs reads them back.
#pragma once

#include <string>
#include <vector>

namespace tessera {

/// In single quotes where a shell would change the word or take it for more than one.
std::string shell_word(const std::string& word);
/// The words with a space between.
std::string shell_words(const std::vector<std::string>& words);

}  // namespace tessera
