// SPDX-License-Identifier: Apache-2.0
#include "tessera/checkpoint/saver.hpp"

#include <cstring>
#include <future>
#include <memory>
#include <utility>

#include "format/aligned_memory.hpp"
#include "save/save_attempt.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/keep.hpp"
#include "tessera/comm/agreement.hpp"

namespace tessera::checkpoint {
namespace {

using Clock = std::chrono::steady_clock;

/// On a thread of its own, or, where the system gives no more threads, in get().
template <class Work>
std::future<void> in_background(Work work) {
  return std::async(std::launch::async | std::launch::deferred, std::move(work));
}

/// Of host memory: there as soon as they are begun.
class HostCopies final : public CopyEngine {
 public:
  std::byte* reserve(std::size_t bytes) override { return memory_.reserve(bytes); }
  void copy(std::byte* to, const void* from, std::size_t bytes) override {
    std::memcpy(to, from, bytes);
  }
  void wait() override {}

 private:
  AlignedMemory memory_;
};

}  // namespace

struct Saver::Impl {
  enum class Phase : std::uint8_t { idle, writing, sealing, committing, kept };

  Impl(comm::Communicator& control, CopyEngine* engine) : control(control), engine(engine) {}
  ~Impl();

  void start(const SaveOptions& options, const State& state, std::span<const SliceView> views,
             bool copy);
  std::optional<SaveResult> poll();
  std::optional<SaveResult> finish();
  /// Collective: waits for the phase's work on all ranks and continues with the next phase.
  std::optional<SaveResult> advance();
  SaveResult conclude();
  const FileGroup& group_of(const SaveOptions& options);
  void ask();
  bool all_are_ready();
  template <class Step>
  void or_abandon(const Step& step);
  /// Adds the time that `step` takes to what the save has held its caller for.
  template <class Step>
  auto timed(const Step& step);

  comm::Communicator& control;
  CopyEngine* engine;
  HostCopies host;
  std::optional<FileGroup> group;
  Phase phase = Phase::idle;
  std::shared_ptr<SaveAttempt> attempt;
  std::shared_ptr<const ShardLayout> layout;  ///< of the last save
  std::future<void> work;                     ///< this rank's part of the phase
  std::future<void> tidying;                  ///< rank 0: what is left to do for the save before
  /// 1 when this rank's work is done; after the reduction, when all ranks' is
  std::unique_ptr<std::int64_t> ready = std::make_unique<std::int64_t>(0);
  comm::Request asked;
  bool is_asked = false;
  double blocked_seconds = 0;
};

/// An exception is on its way, perhaps on this rank alone: nothing may wait for other ranks. A save
/// that no rank can commit any more must not fill the disk.
Saver::Impl::~Impl() {
  if (tidying.valid()) tidying.wait();
  if (phase == Phase::writing || phase == Phase::sealing) {
    if (work.valid()) work.wait();
    attempt->abandon();
  }
  if (!asked.pending() || asked.test()) return;
  keep_for_ever(std::move(asked));
  keep_for_ever(std::move(ready));  // which it writes to
}

template <class Step>
void Saver::Impl::or_abandon(const Step& step) {
  try {
    step();
  } catch (...) {
    attempt->abandon();
    attempt.reset();
    phase = Phase::idle;
    throw;
  }
}

template <class Step>
auto Saver::Impl::timed(const Step& step) {
  const auto began = Clock::now();
  auto result = step();
  blocked_seconds += std::chrono::duration<double>(Clock::now() - began).count();
  if (result) result->blocked_seconds = blocked_seconds;
  return result;
}

/// Made once: a job's ranks stay where they are.
const FileGroup& Saver::Impl::group_of(const SaveOptions& options) {
  if (!group || group->layout() != options.files)
    group.emplace(control, options.files, options.node);
  return *group;
}

void Saver::Impl::start(const SaveOptions& options, const State& state,
                        std::span<const SliceView> views, bool copy) {
  TESSERA_EXPECT(phase == Phase::idle, "a save was begun while another one is under way");
  if (tidying.valid()) tidying.get();
  blocked_seconds = 0;
  attempt =
      std::make_shared<SaveAttempt>(control, group_of(options), options, state, views, layout);
  or_abandon([&] {
    phase = attempt->prepare() ? Phase::writing : Phase::kept;
    if (phase == Phase::kept) return;
    CopyEngine* copies = engine ? engine : copy ? &host : nullptr;
    if (copies) comm::on_all_ranks(control, [&] { attempt->copy_by(*copies); });
    work = in_background([attempt = attempt.get(), copies] {
      if (copies) copies->wait();
      attempt->write();
    });
  });
}

/// Begins to ask whether every rank's work is done; the answer is there a poll later.
void Saver::Impl::ask() {
  is_asked = true;
  *ready = !work.valid() || work.wait_for(std::chrono::seconds(0)) != std::future_status::timeout;
  asked = control.all_reduce({ready.get(), 1, DType::i64}, comm::Op::min);
}

bool Saver::Impl::all_are_ready() {
  asked.wait();
  return std::exchange(is_asked, false) && *ready != 0;
}

std::optional<SaveResult> Saver::Impl::poll() {
  if (phase == Phase::idle) return std::nullopt;
  if (phase == Phase::kept) return conclude();
  if (all_are_ready())
    if (auto result = advance()) return result;
  ask();
  return std::nullopt;
}

std::optional<SaveResult> Saver::Impl::finish() {
  all_are_ready();  // whatever the answer is
  if (phase == Phase::kept) return conclude();
  std::optional<SaveResult> result;
  while (phase != Phase::idle) result = advance();
  return result;
}

std::optional<SaveResult> Saver::Impl::advance() {
  std::optional<SaveResult> result;
  or_abandon([&] {
    comm::on_all_ranks(control, [&] {
      if (work.valid()) work.get();
    });
    if (phase == Phase::committing) {
      result = conclude();
      return;
    }
    if (phase == Phase::writing && attempt->has_shared_files()) {
      attempt->share_checksums();
      phase = Phase::sealing;
      work = in_background([attempt = attempt.get()] { attempt->seal(); });
      return;
    }
    attempt->collect();
    phase = Phase::committing;
    if (control.rank() == 0) work = in_background([attempt = attempt.get()] { attempt->commit(); });
  });
  return result;
}

SaveResult Saver::Impl::conclude() {
  const SaveResult result = attempt->conclude();
  layout = attempt->layout();
  if (control.rank() == 0) tidying = in_background([attempt = attempt] { attempt->tidy(); });
  attempt.reset();
  phase = Phase::idle;
  return result;
}

Saver::Saver(comm::Communicator& control, CopyEngine* engine)
    : impl_(std::make_unique<Impl>(control, engine)) {}
Saver::~Saver() = default;

SaveResult Saver::save(const SaveOptions& options, const State& state,
                       std::span<const SliceView> views) {
  return *impl_->timed([&] {
    impl_->start(options, state, views, false);
    return impl_->finish();
  });
}

void Saver::begin(const SaveOptions& options, const State& state,
                  std::span<const SliceView> views) {
  impl_->timed([&] {
    impl_->start(options, state, views, true);
    return std::optional<SaveResult>();
  });
}

std::optional<SaveResult> Saver::poll() {
  return impl_->timed([&] { return impl_->poll(); });
}

std::optional<SaveResult> Saver::finish() {
  return impl_->timed([&] { return impl_->finish(); });
}

bool Saver::busy() const { return impl_->phase != Impl::Phase::idle; }

SaveResult save(comm::Communicator& control, const SaveOptions& options, const State& state,
                std::span<const SliceView> views) {
  return Saver(control).save(options, state, views);
}

}  // namespace tessera::checkpoint
