// SPDX-License-Identifier: Apache-2.0
#include "lost_rank.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <string.h>

#include <algorithm>
#include <cctype>

namespace tessera::app {
namespace {

/// The one that has not left in good order, and that mpirun did not ask to end because of another
/// one.
const comm::RankRecord* lost_one(const std::vector<comm::RankRecord>& records) {
  const auto lost = [](const comm::RankRecord& r) { return !r.ended && !r.asked_to_end; };
  const auto first = std::ranges::find_if(records, lost);
  if (first == records.end() || std::find_if(first + 1, records.end(), lost) != records.end())
    return nullptr;
  return &*first;
}

std::string signal_name(int signal) {
  std::string name = strsignal(signal);
  std::ranges::transform(name, name.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return name;
}

}  // namespace

std::string how_a_rank_was_lost(int signal, const std::vector<comm::RankRecord>& records) {
  if (!records.empty() && std::ranges::all_of(records, &comm::RankRecord::ended)) return "";
  const comm::RankRecord* lost = lost_one(records);
  std::int64_t step = 0, saved = -1;
  for (const comm::RankRecord& record : records) {
    step = std::max(step, record.step);
    saved = std::max(saved, record.saved_step);
  }
  std::string text = fmt::format("{} was ended by signal {} ({})",
                                 lost ? fmt::format("rank {}", lost->rank) : "a rank", signal,
                                 signal_name(signal));
  if (step > 0) text += fmt::format(" after step {}", step);
  if (saved >= 0)
    text += fmt::format("; run the same command to resume (latest checkpoint: step {})", saved);
  else if (step > 0)
    text += "; no checkpoint was saved: the same command starts from step 1";
  if (signal == SIGKILL) text += ". The kernel kills processes when memory runs out: see `dmesg`";
  return text;
}

}  // namespace tessera::app
