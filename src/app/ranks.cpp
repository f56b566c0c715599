// SPDX-License-Identifier: Apache-2.0
#include "ranks.hpp"

#include <chrono>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <iostream>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include "tessera/base/deterministic_form.hpp"
#include "tessera/base/file_trouble.hpp"
#include "tessera/base/gpu_failure.hpp"
#include "tessera/base/keep.hpp"
#include "tessera/base/log.hpp"
#include "tessera/base/out_of_memory.hpp"
#include "tessera/comm/agreement.hpp"
#include "tessera/comm/failure.hpp"
#include "tessera/train/signals.hpp"

namespace tessera::app {
namespace {

/// What ranks that fail together may differ by. Counted in looks, so that a machine without time
/// for us gives more.
constexpr std::chrono::milliseconds kLook{2};
constexpr int kLooks = 2500;
/// Before rank 0 reports a checkpoint that cannot be written it removes its part of one, and what
/// older saves left to do.
constexpr int kLooksOfCheckpoints = 12 * kLooks;

/// Rank 0 reads and checks; all make the same plan of what it found.
AgreedJob agree_on_job(comm::World& world, const Args& args, const FindOnRanks& find) {
  const std::string text = comm::on_rank_zero(world.control(), [&] {
    config::Reading job = config::read_job(args);
    const std::int64_t vocabulary = find(job, world.size());
    config::throw_if_wrong(job.problems);
    for (const std::string& choice : job.resolved.choices) log::info("{}", choice);
    for (const std::string& warning : job.resolved.warnings) log::warning("{}", warning);
    return fmt::format("{}{} {}", job.use == config::JobUse::training ? 't' : 'i', vocabulary,
                       job.resolved.serialize());
  });
  const std::size_t blank = text.find(' ');
  config::Resolved keys = config::Resolved::deserialize(std::string_view(text).substr(blank + 1));
  plan::JobPlan plan =
      plan::plan_job(keys, world.size(), std::stoll(text.substr(1, blank - 1)),
                     text[0] == 't' ? config::JobUse::training : config::JobUse::inference);
  return {std::move(keys), std::move(plan)};
}

/// With what all ranks leave, and the first that says so.
struct Cause {
  int code, rank;
};

/// The cause if all ranks arrive here soon, that is, if they fail together and none of them is
/// lost. The least code is it: others only say that communication failed.
std::optional<Cause> cause_of_all(comm::Communicator& leaving, int code) try {
  static std::int64_t least;
  least = std::int64_t{code} * leaving.size() + leaving.rank();
  // Never destroyed: the request of a rank that fails alone does not complete, and its destructor
  // would wait for it.
  comm::Request& request =
      keep_for_ever(leaving.all_reduce({&least, 1, DType::i64}, comm::Op::min));
  const int looks = code == static_cast<int>(ExitCode::checkpoint) ? kLooksOfCheckpoints : kLooks;
  for (int i = 0; i < looks; ++i) {
    if (request.test())
      return Cause{static_cast<int>(least / leaving.size()),
                   static_cast<int>(least % leaving.size())};
    std::this_thread::sleep_for(kLook);
  }
  return std::nullopt;
} catch (const Error&) {
  return std::nullopt;
}

struct Failure {
  int code;
  std::string message;
};

constexpr int kBug = 134;

/// Of the exception that is being handled.
Failure failure_at_hand() {
  constexpr int environment = static_cast<int>(ExitCode::environment);
  try {
    throw;
  } catch (const Error& error) {
    return {static_cast<int>(error.code()), error.what()};
  } catch (const std::filesystem::filesystem_error& error) {
    return {environment, fmt::format("'{}': {}; check the path and its permissions",
                                     error.path1().string(), error.code().message())};
  } catch (const std::exception& error) {
    if (const std::string file = file_trouble(error); !file.empty()) return {environment, file};
    if (const std::string operation = without_deterministic_form(error); !operation.empty())
      return {static_cast<int>(ExitCode::usage), operation};
    if (const std::string memory = out_of_memory(error); !memory.empty())
      return {environment,
              memory + "; " + memory_advice("use a smaller batch, more ranks or recompute")};
    if (const std::string gpu = gpu_failure(error); !gpu.empty()) return {environment, gpu};
    return {kBug, fmt::format("internal error, please report it: {}", error.what())};
  } catch (...) {
    return {kBug, "internal error, please report it: an exception of an unknown type"};
  }
}

/// How long what this rank has may take to go, once all ranks leave.
constexpr std::chrono::seconds kTearDown{15};
constexpr std::chrono::seconds kAbort{5};

/// How this rank leaves after a failure: it prints its message and settles the job's code first,
/// and nothing is torn down before.
class Leaving {
 public:
  Leaving(comm::World& world, comm::Communicator& all) : world_(world), all_(all) {}

  /// In a handler: returns if all ranks fail together, and ends the job if this one is alone. Does
  /// nothing the second time.
  void now() {
    if (code_) return;
    const Failure failure = failure_at_hand();
    comm::note_failure(failure.message);
    comm::set_check_collectives(false);  // a comparison would wait for a rank that may never come
    code_ = settle(failure);
    train::SignalGuard::decide(*code_);
    comm::stop_waiting();
    comm::end_at_the_latest(kTearDown, *code_);
    if (!comm::abort_device_communicators(failure.message, kAbort)) world_.abort(*code_);
  }
  int code() const { return *code_; }

 private:
  void speak(const Failure& failure) const {
    // In one piece, whatever else is written.
    std::cerr << (world_.rank() == 0 ? fmt::format("tessera: {}\n", failure.message)
                                     : fmt::format("tessera: rank {} on {}: {}\n", world_.rank(),
                                                   world_.host(), failure.message));
  }

  /// The code of all ranks.
  int settle(const Failure& failure) const {
    const bool alone = failure.code == kBug || comm::has_dropped_transfers();
    if (world_.rank() == 0 || alone) speak(failure);
    const std::optional<Cause> cause = alone ? std::nullopt : cause_of_all(all_, failure.code);
    if (world_.rank() != 0 && !alone && (!cause || cause->rank == world_.rank())) speak(failure);
    if (!cause) world_.abort(failure.code);
    return cause->code;
  }

  comm::World& world_;
  comm::Communicator& all_;
  std::optional<int> code_;
};

}  // namespace

int run_on_world(const WorldBody& body) {
  comm::World world(nullptr, nullptr);
  log::configure(world.rank() == 0 ? log::Level::info : log::Level::error,
                 world.rank() == 0 ? "" : fmt::format("rank {}", world.rank()));
  const auto all = world.make(comm::Backend::mpi, "leaving");
  Leaving leaving(world, *all);
  try {
    return static_cast<int>(body(world, [&leaving] { leaving.now(); }));
  } catch (...) {
    leaving.now();
    return leaving.code();
  }
}

int run_on_ranks(const Args& args, const RankBody& body, const FindOnRanks& find) {
  return run_on_world([&](comm::World& world, const train::OnFailure& failed) {
    return body(world, agree_on_job(world, args, find), args, failed);
  });
}

void require_one_process(const std::string& command) {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS"})
    if (const char* count = std::getenv(name); count && std::string_view(count) != "1")
      fail(ExitCode::usage,
           "{} runs in one process, and {} were started; run it without `tessera launch`, mpirun "
           "or srun -n",
           command, count);
}

}  // namespace tessera::app
