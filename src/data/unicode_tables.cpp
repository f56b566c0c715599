// SPDX-License-Identifier: Apache-2.0
#include "unicode_tables.hpp"

namespace tessera::data {
namespace {
#include "unicode_tables.inc"
}  // namespace

std::span<const CombiningRun> combining_runs() { return kCombiningClasses; }
std::span<const Decomposition> decompositions() { return kDecompositions; }
std::string_view later_letters() { return kLaterLetters; }
std::string_view later_numbers() { return kLaterNumbers; }
std::string_view other_word() { return kOtherWord; }

}  // namespace tessera::data
