#include "ranks.hpp"

#include <chrono>
#include <exception>
#include <filesystem>
#include <iostream>
#include <optional>
#include <thread>

#include "tessera/base/deterministic_form.hpp"
#include "tessera/base/file_trouble.hpp"
#include "tessera/base/keep.hpp"
#include "tessera/base/log.hpp"
#include "tessera/base/out_of_memory.hpp"
#include "tessera/comm/failure.hpp"
#include "tessera/train/collective.hpp"
#include "tessera/train/signals.hpp"

namespace tessera::app {
namespace {

/// What ranks that fail together may differ by. Counted in looks, so that a machine without time for us gives more.
constexpr std::chrono::milliseconds kLook{2};
constexpr int kLooks = 2500;
/// Before rank 0 reports a checkpoint that cannot be written it removes its part of one, and what older saves left to
/// do.
constexpr int kLooksOfCheckpoints = 12 * kLooks;

config::Resolved agree_on_configuration(comm::World& world, const Args& args, const FindOnRanks& find) {
  const std::string text = train::on_rank_zero(world.control(), [&] {
    config::Reading job = config::read_job(args);
    find(job, world.size());
    config::throw_if_wrong(job.problems);
    for (const std::string& warning : job.resolved.warnings) log::warning("{}", warning);
    return job.resolved.serialize();
  });
  return config::Resolved::deserialize(text);
}

/// With what all ranks leave, and the first that says so.
struct Cause {
  int code, rank;
};

/// The cause if all ranks arrive here soon, that is, if they fail together and none of them is lost. The least code is
/// it: others only say that communication failed.
std::optional<Cause> cause_of_all(comm::Communicator& leaving, int code) try {
  static std::int64_t least;
  least = std::int64_t{code} * leaving.size() + leaving.rank();
  // Never destroyed: the request of a rank that fails alone does not complete, and its destructor would wait for it.
  comm::Request& request = keep_for_ever(leaving.all_reduce({&least, 1, DType::i64}, comm::Op::min));
  const int looks = code == static_cast<int>(ExitCode::checkpoint) ? kLooksOfCheckpoints : kLooks;
  for (int i = 0; i < looks; ++i) {
    if (request.test())
      return Cause{static_cast<int>(least / leaving.size()), static_cast<int>(least % leaving.size())};
    std::this_thread::sleep_for(kLook);
  }
  return std::nullopt;
} catch (const Error&) {
  return std::nullopt;
}

/// Ends this rank after a failure: quietly together with all others, or the whole job if it is alone.
int leave(comm::World& world, comm::Communicator& leaving, int code, const std::string& message) {
  comm::note_failure(message);
  comm::set_check_collectives(false);  // a comparison would wait for a rank that may never come
  if (world.rank() == 0) std::cerr << fmt::format("tessera: {}\n", message);  // in one piece, whatever else is written
  const std::optional<Cause> cause = cause_of_all(leaving, code);
  if (world.rank() != 0 && (!cause || cause->rank == world.rank()))
    std::cerr << fmt::format("tessera: rank {} on {}: {}\n", world.rank(), world.host(), message);
  if (cause) {
    train::SignalGuard::decide(cause->code);
    return cause->code;
  }
  world.abort(code);
}

}  // namespace

void require_supported(config::Reading& job, int) {
  if (job.whole) config::find_unsupported(job);
}

int run_on_ranks(const Args& args, const RankBody& body, const FindOnRanks& find) {
  comm::World world(nullptr, nullptr);
  log::configure(world.rank() == 0 ? log::Level::info : log::Level::error,
                 world.rank() == 0 ? "" : fmt::format("rank {}", world.rank()));
  const auto leaving = world.make(comm::Backend::mpi, "leaving");
  try {
    const config::Resolved resolved = agree_on_configuration(world, args, find);
    return static_cast<int>(body(world, resolved, args));
  } catch (const Error& error) {
    return leave(world, *leaving, static_cast<int>(error.code()), error.what());
  } catch (const std::filesystem::filesystem_error& error) {
    return leave(
        world, *leaving, static_cast<int>(ExitCode::environment),
        fmt::format("'{}': {}; check the path and its permissions", error.path1().string(), error.code().message()));
  } catch (const std::exception& error) {
    if (const std::string file = file_trouble(error); !file.empty())
      return leave(world, *leaving, static_cast<int>(ExitCode::environment), file);
    if (const std::string operation = without_deterministic_form(error); !operation.empty())
      return leave(world, *leaving, static_cast<int>(ExitCode::usage), operation);
    if (const std::string memory = out_of_memory(error); !memory.empty())
      return leave(world, *leaving, static_cast<int>(ExitCode::environment),
                   memory + "; use a smaller batch, more ranks or recompute");
    std::cerr << fmt::format("tessera: rank {}: internal error, please report it: {}\n", world.rank(), error.what());
    world.abort(134);
  }
}

}  // namespace tessera::app
