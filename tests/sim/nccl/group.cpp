// SPDX-License-Identifier: Apache-2.0
#include "group.hpp"

#include <map>
#include <thread>
#include <utility>
#include <vector>

#include "launch.hpp"
#include "names.hpp"
#include "on_device.hpp"

namespace tessera::sim::nccl {
namespace {

struct Group {
  int depth = 0;
  ncclResult_t error = ncclSuccess;
  std::vector<Operation> operations;
  std::vector<Job> jobs;
};
thread_local Group group;

bool is_blocking(const Job& job) { return job.about->blocking() || !job.may_run_in_background; }

ncclResult_t run(const Job& job) {
  const OnDevice device(job.about->device());
  const ncclResult_t result = job.work();
  job.about->set_state(result);
  return result;
}

ncclResult_t run_in_background(Job job) {
  job.about->set_state(ncclInProgress);
  std::thread([job = std::move(job)] { run(job); }).detach();
  return ncclInProgress;
}

ncclResult_t run_in_order(const std::vector<Job>& jobs) {
  for (const Job& job : jobs)
    if (const ncclResult_t result = run(job); result != ncclSuccess) return result;
  return ncclSuccess;
}

/// Ranks of one process wait for each other in their jobs, so these run at the same time.
ncclResult_t run_together(std::vector<Job> jobs) {
  std::map<const void*, std::vector<Job>> queues;
  for (Job& job : jobs) queues[job.queue].push_back(std::move(job));
  std::vector<ncclResult_t> results(queues.size(), ncclSuccess);
  std::vector<std::thread> threads;
  for (const auto& [key, queue] : queues)
    threads.emplace_back([&result = results[threads.size()], &jobs_of_queue = queue] {
      result = run_in_order(jobs_of_queue);
    });
  for (std::thread& thread : threads) thread.join();
  for (ncclResult_t result : results)
    if (result != ncclSuccess) return result;
  return ncclSuccess;
}

ncclResult_t run_jobs(std::vector<Job> jobs) {
  std::vector<Job> blocking;
  ncclResult_t result = ncclSuccess;
  for (Job& job : jobs) {
    if (is_blocking(job))
      blocking.push_back(std::move(job));
    else
      result = run_in_background(std::move(job));
  }
  const ncclResult_t together = run_together(std::move(blocking));
  return together == ncclSuccess ? result : together;
}

}  // namespace

void group_start() { ++group.depth; }

ncclResult_t note_in_group(ncclResult_t result) {
  if (group.depth > 0 && group.error == ncclSuccess) group.error = result;
  return result;
}

ncclResult_t group_end() {
  if (group.depth == 0) {
    tell("ncclGroupEnd without ncclGroupStart on this thread");
    return ncclInvalidUsage;
  }
  if (--group.depth > 0) return ncclSuccess;
  Group ended = std::exchange(group, {});
  if (ended.error != ncclSuccess) return ended.error;
  if (!ended.operations.empty() && !ended.jobs.empty()) {
    tell("a group holds both operations and the making or end of communicators; use two groups");
    return ncclInvalidUsage;
  }
  return ended.jobs.empty() ? launch(std::move(ended.operations)) : run_jobs(std::move(ended.jobs));
}

ncclResult_t submit(Operation operation) {
  const bool is_nothing = operation.count == 0 && !transfers(operation.kind);
  if (const ncclResult_t checked = check(operation); checked != ncclSuccess) return checked;
  if (is_nothing) return ncclSuccess;
  if (group.depth == 0) return launch({std::move(operation)});
  group.operations.push_back(std::move(operation));
  return ncclSuccess;
}

ncclResult_t submit(Job job) {
  if (group.depth > 0) {
    group.jobs.push_back(std::move(job));
    return ncclSuccess;
  }
  return is_blocking(job) ? run(job) : run_in_background(std::move(job));
}

}  // namespace tessera::sim::nccl
