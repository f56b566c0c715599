// SPDX-License-Identifier: Apache-2.0
#include "tessera/comm/world.hpp"

#include <mpi.h>

#include <exception>

#include "alarm.hpp"
#include "hook_list.hpp"
#include "lost_ranks.hpp"
#include "mpi_communicator.hpp"
#include "nccl_communicator.hpp"
#include "node.hpp"
#include "peers.hpp"
#include "staged_communicator.hpp"
#include "start_settings.hpp"
#include "tessera/base/error.hpp"
#include "tessera/comm/rank_record.hpp"

namespace tessera::comm {
namespace {

std::string processor_name() {
  char name[MPI_MAX_PROCESSOR_NAME] = "";
  int length = 0;
  MPI_Get_processor_name(name, &length);
  return {name, static_cast<std::size_t>(length)};
}

void initialise_mpi(int* argc, char*** argv) {
  yield_when_oversubscribed();
  const StartSettings settings;
  int begun = 0, provided = MPI_THREAD_SINGLE;
  MPI_Initialized(&begun);
  require(begun == 0, ExitCode::environment,
          "MPI was started before; a process makes one comm::World, which starts and ends MPI");
  const int code = MPI_Init_thread(argc, argv, MPI_THREAD_MULTIPLE, &provided);
  require(code == MPI_SUCCESS, ExitCode::environment,
          "MPI could not start (MPI_Init_thread gave {}); try `mpirun -n 1 true`", code);
  if (provided >= MPI_THREAD_MULTIPLE) return;
  MPI_Finalize();
  fail(ExitCode::environment,
       "this MPI ({}) provides thread level {}, and MPI_THREAD_MULTIPLE ({}) is needed; use an MPI "
       "built with threads",
       World::library_version(), provided, static_cast<int>(MPI_THREAD_MULTIPLE));
}

MpiHandle duplicate(const Place& place) {
  MPI_Comm made = MPI_COMM_NULL;
  check_mpi(MPI_Comm_dup(place.comm, &made), "MPI_Comm_dup", place);
  return MpiHandle(made);
}

MpiHandle split_by_node(const Place& place) {
  MPI_Comm made = MPI_COMM_NULL;
  check_mpi(MPI_Comm_split_type(place.comm, MPI_COMM_TYPE_SHARED, place.rank, MPI_INFO_NULL, &made),
            "MPI_Comm_split_type", place);
  return MpiHandle(made);
}

}  // namespace

struct World::Impl {
  Place place;
  int local_rank = 0, local_size = 1;
  std::string host = processor_name();
  std::unique_ptr<MpiCommunicator> control;
  MpiHandle alarm;

  Impl() {
    place = {MPI_COMM_WORLD, 0, 1, "world", {}};
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &place.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &place.size);
    const MpiHandle node = split_by_node(place);
    MPI_Comm_rank(node.get(), &local_rank);
    MPI_Comm_size(node.get(), &local_size);
    share_call_pages(node.get(), place.rank);
    agree_on_start(place.comm);
    rank_record::begin(place.rank);
    control = std::make_unique<MpiCommunicator>(duplicate(place), place.axis, Rules::relaxed);
    alarm = duplicate(place);
    int first = place.rank;
    MPI_Bcast(&first, 1, MPI_INT, 0, node.get());
    open_alarm(alarm.get(), first);
  }
  ~Impl() { close_alarm(); }
};

World::World(int* argc, char*** argv) {
  initialise_mpi(argc, argv);
  impl_ = std::make_unique<Impl>();
}

World::~World() {
  rank_record::end();
  impl_.reset();
  MPI_Finalize();
}

int World::rank() const { return impl_->place.rank; }
int World::size() const { return impl_->place.size; }
int World::local_rank() const { return impl_->local_rank; }
int World::local_size() const { return impl_->local_size; }
const std::string& World::host() const { return impl_->host; }
Communicator& World::control() { return *impl_->control; }

std::unique_ptr<Communicator> World::make(Backend backend, const std::string& axis, Memory memory) {
  const Rules rules = backend == Backend::strict ? Rules::strict : Rules::relaxed;
  auto host = std::make_unique<MpiCommunicator>(duplicate(impl_->place), axis, rules);
  if (backend == Backend::nccl) return make_nccl_communicator(std::move(host));
  if (memory == Memory::device) return make_staged_communicator(std::move(host));
  return host;
}

void World::abort(int code) {
  call_before_abort("the job ends");
  leave_the_abort_to_the_first(MPI_COMM_WORLD);
  MPI_Abort(MPI_COMM_WORLD, code);
  std::terminate();
}

std::string World::library_version() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0, major = 0, minor = 0;
  MPI_Get_library_version(text, &length);
  MPI_Get_version(&major, &minor);
  std::string name(text, static_cast<std::size_t>(length));
  name = name.substr(0, name.find_first_of(",\n"));
  if (const auto v = name.find(" v"); v != std::string::npos) name.erase(v + 1, 1);
  return fmt::format("{} (MPI {}.{})", name, major, minor);
}

}  // namespace tessera::comm
