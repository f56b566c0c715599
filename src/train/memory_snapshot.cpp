// SPDX-License-Identifier: Apache-2.0
#include "memory_snapshot.hpp"

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "tessera/base/atomic_file.hpp"
#include "tessera/base/error.hpp"
#include "tessera/comm/agreement.hpp"
#include "tessera/comm/hooks.hpp"
#include "tessera/metrics/trace_file.hpp"

namespace tessera::train {

namespace fs = std::filesystem;

class MemorySnapshot::Sampler final : public comm::Hook {
 public:
  explicit Sampler(Trainer& trainer) : trainer_(trainer) { look(); }

  void comes_to(std::string_view, std::string_view) noexcept override { look(); }
  void look() {
    parallel::MemoryKinds kinds = trainer_.known_memory();
    kinds.activations =
        std::max<std::int64_t>(0, trainer_.memory_peak().allocated() - kinds.total());
    events_.push_back(metrics::counter_event(trainer_.mesh().control().rank(), "memory",
                                             metrics::monotonic_seconds() - began_,
                                             {{"weights", kinds.weights},
                                              {"gradients", kinds.gradients},
                                              {"moments", kinds.moments},
                                              {"gathered weights", kinds.gathered},
                                              {"communication", kinds.communication},
                                              {"activations and other", kinds.activations}}));
  }
  const std::vector<std::string>& events() const { return events_; }

 private:
  Trainer& trainer_;
  double began_ = metrics::monotonic_seconds();
  std::vector<std::string> events_;
};

MemorySnapshot::MemorySnapshot(const plan::MemorySnapshotPlan& plan, Trainer& trainer)
    : plan_(plan), trainer_(trainer) {}

MemorySnapshot::~MemorySnapshot() { stop(); }

void MemorySnapshot::begin_step(std::int64_t step) {
  if (step % plan_.freq != 0) return;
  sampler_ = std::make_shared<Sampler>(trainer_);
  comm::add_hook(sampler_);
}

void MemorySnapshot::stop() {
  if (sampler_) comm::remove_hook(sampler_);
}

void MemorySnapshot::end_step(std::int64_t step) {
  if (!sampler_) return;
  stop();
  sampler_->look();
  const fs::path folder = plan_.folder / fmt::format("iteration_{}", step);
  comm::Communicator& control = trainer_.mesh().control();
  comm::on_all_ranks(control, [&] {
    std::error_code problem;
    fs::create_directories(folder, problem);
    require(!problem, ExitCode::environment,
            "cannot make the folder {} for snapshots ({}); set "
            "profiling.save_memory_snapshot_folder",
            folder.string(), problem.message());
    write_file_atomically(folder / fmt::format("rank{}_memory_snapshot.json", control.rank()),
                          metrics::trace_file(sampler_->events()));
  });
  sampler_.reset();
}

}  // namespace tessera::train
