// SPDX-License-Identifier: Apache-2.0
#include "tessera/comm/rank_record.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <fstream>
#include <string>

namespace tessera::comm {
namespace {

constexpr std::string_view kFilePrefix = "rank-";

/// The file's content. The kernel keeps it, however the process ends.
struct RecordPage {
  std::atomic<std::int64_t> step, saved_step, asked_to_end, ended;
  std::atomic<std::int64_t> code_plus_one;  ///< so that a new page, which is zero, has none
};
static_assert(std::atomic<std::int64_t>::is_always_lock_free, "signal handlers write there");

std::atomic<RecordPage*> page{nullptr};

RecordPage* map_page(const std::string& file) {
  const int descriptor = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (descriptor < 0) return nullptr;
  void* memory = MAP_FAILED;
  if (::posix_fallocate(descriptor, 0, sizeof(RecordPage)) ==
      0)  // a full file system does not become a SIGBUS later
    memory = ::mmap(nullptr, sizeof(RecordPage), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  ::close(descriptor);
  return memory == MAP_FAILED ? nullptr : static_cast<RecordPage*>(memory);
}

template <class Change>
void change(Change what) noexcept {
  if (RecordPage* mapped = page.load()) what(*mapped);
}

}  // namespace

namespace rank_record {

void begin(int rank) {
  const char* folder = std::getenv(kRankRecordsVariable);
  if (folder == nullptr || page.load() != nullptr) return;
  page = map_page(fmt::format("{}/{}{}", folder, kFilePrefix, rank));
  change([](RecordPage& p) { p.saved_step = -1; });
}

void note_step(std::int64_t step) noexcept {
  change([=](RecordPage& p) { p.step = step; });
}

void note_saved(std::int64_t step) noexcept {
  change([=](RecordPage& p) { p.saved_step = step; });
}

void note_asked_to_end() noexcept {
  change([](RecordPage& p) { p.asked_to_end = 1; });
}

void note_code(int code) noexcept {
  change([=](RecordPage& p) { p.code_plus_one = code + 1; });
}

void end() noexcept {
  change([](RecordPage& p) { p.ended = 1; });
}

}  // namespace rank_record

bool any_rank_began(const std::filesystem::path& folder) {
  std::error_code error;
  const std::filesystem::directory_iterator files(folder, error);
  return std::any_of(begin(files), end(files), [](const auto& entry) {
    return entry.path().filename().string().starts_with(kFilePrefix);
  });
}

std::vector<RankRecord> read_rank_records(const std::filesystem::path& folder) {
  std::vector<RankRecord> records;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename();
    std::int64_t numbers[5];
    if (!name.starts_with(kFilePrefix)) continue;
    if (!std::ifstream(entry.path(), std::ios::binary)
             .read(reinterpret_cast<char*>(numbers), sizeof(numbers)))
      continue;
    records.push_back({std::atoi(name.c_str() + kFilePrefix.size()), numbers[0], numbers[1],
                       numbers[2] != 0, numbers[3] != 0, static_cast<int>(numbers[4]) - 1});
  }
  std::ranges::sort(records, {}, &RankRecord::rank);
  return records;
}

}  // namespace tessera::comm
