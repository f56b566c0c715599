// SPDX-License-Identifier: Apache-2.0
#include "peers.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <mutex>
#include <numeric>
#include <random>
#include <set>

#include "tessera/comm/failure.hpp"

namespace tessera::comm {
namespace {

std::mutex pages_mutex;
std::map<int, CallPage*> pages;
double start = 0;  ///< set before threads start

/// Maps `count` zeroed pages that every process which knows `name` shares; null when that is not
/// possible.
CallPage* map_shared(const std::string& name, int count, bool create) {
  const int file = shm_open(
      name.c_str(), create ? O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC : O_RDWR | O_CLOEXEC, 0600);
  if (file < 0) return nullptr;
  const std::size_t bytes = sizeof(CallPage) * static_cast<std::size_t>(count);
  // A full /dev/shm must fail here and not as SIGBUS at some later write, of whoever maps the
  // pages.
  struct stat there {};
  const bool sized = create
                         ? posix_fallocate(file, 0, static_cast<off_t>(bytes)) == 0
                         : fstat(file, &there) == 0 && there.st_size >= static_cast<off_t>(bytes) &&
                               there.st_blocks * 512 >= static_cast<off_t>(bytes);
  void* memory =
      sized ? mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
  ::close(file);
  return memory == MAP_FAILED ? nullptr : static_cast<CallPage*>(memory);
}

/// A name that the first rank of the node chooses for all.
std::string agree_on_name(MPI_Comm node) {
  std::uint64_t number = (static_cast<std::uint64_t>(std::random_device{}()) << 32) ^
                         static_cast<std::uint64_t>(getpid());
  MPI_Bcast(&number, 1, MPI_UINT64_T, 0, node);
  return fmt::format("/tessera-calls-{:016x}", number);
}

}  // namespace

void agree_on_start(MPI_Comm world) {
  start =
      std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  MPI_Bcast(&start, 1, MPI_DOUBLE, 0, world);
}

double job_start() { return start; }

void share_call_pages(MPI_Comm node, int world_rank) {
  int rank = 0, size = 1;
  MPI_Comm_rank(node, &rank);
  MPI_Comm_size(node, &size);
  std::vector<int> world_ranks(static_cast<std::size_t>(size));
  MPI_Allgather(&world_rank, 1, MPI_INT, world_ranks.data(), 1, MPI_INT, node);
  const std::string name = agree_on_name(node);
  CallPage* first = rank == 0 ? map_shared(name, size, true) : nullptr;
  MPI_Barrier(node);
  if (rank != 0) first = map_shared(name, size, false);
  MPI_Barrier(node);
  if (rank == 0) shm_unlink(name.c_str());
  call_page().world_rank = world_rank;
  const std::lock_guard lock(pages_mutex);
  pages[world_rank] = &call_page();
  if (!first) return;
  for (int i = 0; i < size; ++i) pages[world_ranks[static_cast<std::size_t>(i)]] = first + i;
  first[rank].world_rank = world_rank;
  use_call_page(first + rank);
}

std::vector<int> readable_ranks() {
  const std::lock_guard lock(pages_mutex);
  std::vector<int> ranks;
  for (const auto& [rank, page] : pages) ranks.push_back(rank);
  return ranks;
}

const CallPage* page_of(int world_rank) {
  const std::lock_guard lock(pages_mutex);
  const auto found = pages.find(world_rank);
  return found == pages.end() ? nullptr : found->second;
}

std::string failure_of(int world_rank) {
  const CallPage* page = page_of(world_rank);
  if (!page || !page->has_failed.load(std::memory_order_acquire)) return {};
  return std::string(page->failure, strnlen(page->failure, sizeof(page->failure)));
}

namespace {

std::string calls_of(const CallPage& page, std::int64_t now) {
  const auto calls = recent(page, 100);
  const auto held = std::find_if(calls.rbegin(), calls.rend(), [](const CallView& v) {
    return v.state == CallState::waited_for;
  });
  if (held != calls.rend()) return "blocked in " + describe(*held, now);
  return calls.empty() ? "has made no call yet"
                       : "not in a call; the last one was " + describe(calls.back(), now);
}

}  // namespace

std::string activity_of(int world_rank) {
  const CallPage* page = page_of(world_rank);
  if (!page) return "runs on another node";
  if (const std::string failure = failure_of(world_rank); !failure.empty())
    return "has failed: " + failure;
  const std::int64_t now = now_ns();
  if (const double seconds = standstill_seconds(*page, now); seconds > 0)
    return fmt::format("has not run for {:.1f} s; before, {}", seconds, calls_of(*page, now));
  return calls_of(*page, now);
}

void pass_failure_on(const std::string& failure) {
  CallPage& page = call_page();
  if (page.has_failed.load(std::memory_order_relaxed)) return;
  page.failure[failure.copy(page.failure, sizeof(page.failure) - 1)] = '\0';
  page.has_failed.store(true, std::memory_order_release);
}

void note_failure(const std::string& cause) {
  pass_failure_on(fmt::format("rank {}: {}", call_page().world_rank, cause));
}

void forget_failure() noexcept { call_page().has_failed.store(false, std::memory_order_release); }

void await(int world_rank) noexcept {
  call_page().awaited.store(world_rank + 1, std::memory_order_release);
}

std::string chain_from(int world_rank) {
  std::string text;
  std::set<int> seen;
  for (int rank = world_rank;;) {
    seen.insert(rank);
    const CallPage* page = page_of(rank);
    const bool waits = page && !page->has_failed && standstill_seconds(*page, now_ns()) == 0;
    const int next = waits ? page->awaited.load(std::memory_order_acquire) - 1 : -1;
    text += fmt::format("rank {} {}", rank, activity_of(rank));
    if (next < 0) return text;
    text += fmt::format(", for rank {}", next);
    if (seen.contains(next)) return text + ": they wait for each other";
    text += "; ";
    rank = next;
  }
}

namespace {

std::vector<int> in_world(MPI_Comm comm, const std::vector<int>& ranks) {
  MPI_Group group = MPI_GROUP_NULL, world = MPI_GROUP_NULL;
  MPI_Comm_group(comm, &group);
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  std::vector<int> translated = ranks;
  MPI_Group_translate_ranks(group, static_cast<int>(ranks.size()), ranks.data(), world,
                            translated.data());
  MPI_Group_free(&group);
  MPI_Group_free(&world);
  return translated;
}

}  // namespace

int world_rank_of(MPI_Comm comm, int rank) { return in_world(comm, {rank}).front(); }

Members members_of(MPI_Comm comm) {
  int size = 1;
  MPI_Comm_size(comm, &size);
  std::vector<int> ranks(static_cast<std::size_t>(size));
  std::iota(ranks.begin(), ranks.end(), 0);
  ranks = in_world(comm, ranks);
  const int stride = size > 1 ? ranks[1] - ranks[0] : 1;
  for (std::size_t i = 1; i < ranks.size(); ++i)
    if (ranks[i] - ranks[i - 1] != stride) return {ranks[0], 0};
  return {ranks[0], stride};
}

}  // namespace tessera::comm
