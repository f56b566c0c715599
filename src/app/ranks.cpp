#include "ranks.hpp"

#include <chrono>
#include <exception>
#include <iostream>
#include <thread>

#include "tessera/base/keep.hpp"
#include "tessera/base/log.hpp"
#include "tessera/comm/failure.hpp"
#include "tessera/train/collective.hpp"

namespace tessera::app {
namespace {

constexpr std::chrono::seconds kPatience{5};

config::Resolved agree_on_configuration(comm::World& world, const Args& args) {
  const std::string text = train::on_rank_zero(world.control(), [&] {
    const config::Resolved resolved = config::resolve(args);
    for (const std::string& warning : resolved.warnings) log::warning("{}", warning);
    std::string missing;
    for (const std::string& line : config::unsupported_for_run(resolved)) missing += (missing.empty() ? "" : "\n") + line;
    if (!missing.empty()) throw Error(ExitCode::usage, missing);
    return resolved.serialize();
  });
  return config::Resolved::deserialize(text);
}

/// Whether all ranks arrive here within kPatience, that is, whether they fail together and none of them is lost.
bool all_fail(comm::Communicator& leaving) try {
  static std::int64_t one = 1;
  // Never destroyed: the request of a rank that fails alone does not complete, and its destructor would wait for it.
  comm::Request& request = keep_for_ever(leaving.all_reduce({&one, 1, DType::i64}));
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (!request.test()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
} catch (const Error&) {
  return false;
}

/// Ends this rank after a failure: quietly together with all others, or the whole job if it is alone.
int leave(comm::World& world, comm::Communicator& leaving, int code, const std::string& message) {
  comm::note_failure(message);
  comm::set_check_collectives(false);  // a comparison would wait for a rank that may never come
  if (world.rank() == 0) std::cerr << fmt::format("tessera: {}\n", message);  // in one piece, whatever else is written
  if (all_fail(leaving)) return code;
  if (world.rank() != 0) std::cerr << fmt::format("tessera: rank {} on {}: {}\n", world.rank(), world.host(), message);
  world.abort(code);
}

}  // namespace

int run_on_ranks(const Args& args, const RankBody& body) {
  comm::World world(nullptr, nullptr);
  log::configure(world.rank() == 0 ? log::Level::info : log::Level::error, world.rank() == 0 ? "" : fmt::format("rank {}", world.rank()));
  const auto leaving = world.make(comm::Backend::mpi, "leaving");
  try {
    const config::Resolved resolved = agree_on_configuration(world, args);
    return static_cast<int>(body(world, resolved, args));
  } catch (const Error& error) {
    return leave(world, *leaving, static_cast<int>(error.code()), error.what());
  } catch (const std::bad_alloc&) {
    return leave(world, *leaving, static_cast<int>(ExitCode::environment), "out of memory; use a smaller batch, more ranks or recompute");
  } catch (const std::exception& error) {
    std::cerr << fmt::format("tessera: rank {}: internal error, please report it: {}\n", world.rank(), error.what());
    world.abort(134);
  }
}

}  // namespace tessera::app
