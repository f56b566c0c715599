// SPDX-License-Identifier: Apache-2.0
#include "alarm.hpp"

#include <mutex>
#include <set>
#include <thread>

#include "call_log.hpp"
#include "peers.hpp"

namespace tessera::comm {
namespace {

constexpr int kAsks = 1, kAnswers = 2;
constexpr std::chrono::seconds kOneHang{5};  ///< within which ranks of a node mean the same one

struct Alarm {
  std::mutex mutex;
  MPI_Comm comm = MPI_COMM_NULL;
  int node = 0;
  std::vector<int> node_of;  ///< by world rank
  std::set<int> asking;      ///< ranks that this one has to answer
};
Alarm& alarm() {
  static auto* const instance = new Alarm;
  return *instance;
}

/// Small enough to be on its way when this returns; `node` is never written while a send may read
/// it.
void send(const Alarm& alarm, int to, int tag) {
  MPI_Request request = MPI_REQUEST_NULL;
  if (MPI_Isend(&alarm.node, 1, MPI_INT, to, tag, alarm.comm, &request) == MPI_SUCCESS)
    MPI_Request_free(&request);
}

/// The sender of a message with this tag, which is taken, and its node; -1 if there is none.
int receive(const Alarm& alarm, int tag, int& node) {
  int there = 0;
  MPI_Status status{};
  if (MPI_Iprobe(MPI_ANY_SOURCE, tag, alarm.comm, &there, &status) != MPI_SUCCESS || !there)
    return -1;
  MPI_Recv(&node, 1, MPI_INT, status.MPI_SOURCE, tag, alarm.comm, MPI_STATUS_IGNORE);
  return status.MPI_SOURCE;
}

/// The page of the node's first rank, which all of them write to.
CallPage& first_page() {
  const CallPage* page = page_of(readable_ranks().front());
  return const_cast<CallPage&>(*page);
}

bool is_recent(std::int64_t time_ns) {
  return time_ns != 0 && now_ns() - time_ns < std::chrono::nanoseconds(kOneHang).count();
}

}  // namespace

void open_alarm(MPI_Comm world, int node) {
  Alarm& a = alarm();
  int ranks = 1;
  MPI_Comm_size(world, &ranks);
  const std::lock_guard lock(a.mutex);
  a.comm = world;
  a.node = node;
  a.node_of.assign(static_cast<std::size_t>(ranks), 0);
  MPI_Allgather(&node, 1, MPI_INT, a.node_of.data(), 1, MPI_INT, world);
}

void close_alarm() noexcept {
  const std::lock_guard lock(alarm().mutex);
  alarm().comm = MPI_COMM_NULL;
}

bool begin_traces() noexcept {
  std::atomic<std::int64_t>& begun = first_page().traces_begun_ns;
  std::int64_t before = begun.load();
  return !is_recent(before) && begun.compare_exchange_strong(before, now_ns());
}

void end_of_traces() noexcept { first_page().traces_ns = now_ns(); }

namespace {

/// Who asks while another rank leaves the traces is answered when they are there. Should that rank
/// never end, this one starts again.
void answer(Alarm& a, const std::function<void()>& leave) {
  int node = 0;
  for (int from = receive(a, kAsks, node); from >= 0; from = receive(a, kAsks, node))
    a.asking.insert(from);
  if (a.asking.empty()) return;
  if (begin_traces()) {
    leave();
    end_of_traces();
  }
  if (!is_recent(first_page().traces_ns)) return;
  for (const int rank : a.asking) send(a, rank, kAnswers);
  a.asking.clear();
}

}  // namespace

void answer_alarm(const std::function<void()>& leave) {
  const std::lock_guard lock(alarm().mutex);
  if (alarm().comm != MPI_COMM_NULL) answer(alarm(), leave);
}

void ignore_alarm() {
  const std::lock_guard lock(alarm().mutex);
  int node = 0;
  while (alarm().comm != MPI_COMM_NULL && receive(alarm(), kAsks, node) >= 0) {
  }
  alarm().asking.clear();
}

bool raise_alarm(const std::function<void()>& leave, std::chrono::milliseconds deadline) {
  Alarm& a = alarm();
  const std::lock_guard lock(a.mutex);
  if (a.comm == MPI_COMM_NULL) return false;
  std::set<int> silent(a.node_of.begin(), a.node_of.end());
  silent.erase(a.node);
  for (std::size_t rank = 0; rank < a.node_of.size() && !silent.empty(); ++rank)
    if (a.node_of[rank] != a.node) send(a, static_cast<int>(rank), kAsks);
  const auto end = std::chrono::steady_clock::now() + deadline;
  while (!silent.empty() && std::chrono::steady_clock::now() < end) {
    answer(a, leave);
    int node = 0;
    while (receive(a, kAnswers, node) >= 0) silent.erase(node);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return silent.empty();
}

}  // namespace tessera::comm
