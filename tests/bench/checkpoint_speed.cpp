// SPDX-License-Identifier: Apache-2.0
// What checkpoints cost beside plain writes, copies and reads of the same bytes, by turns.
//   mpirun -n 2 checkpoint_speed [FOLDER [MiB [TURNS]]]
// Prints `name ours theirs ratio target`: seconds, medians over the turns, the slowest rank's.
//   mpirun -n N checkpoint_speed save|tiny|begin|load FOLDER MiB
// One turn of one thing (`load` after a `save`, on any number of ranks), for beside_dcp.py: prints
// its seconds.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <string_view>
#include <thread>

#include "tessera/base/error.hpp"
#include "tessera/base/shard.hpp"
#include "tessera/checkpoint/checkpoint_reader.hpp"
#include "tessera/checkpoint/inspect.hpp"
#include "tessera/checkpoint/saver.hpp"
#include "tessera/comm/world.hpp"

namespace {

namespace fs = std::filesystem;
using namespace tessera;

/// This rank's rows of `count` tensors of together `bytes` bytes over all ranks.
class State {
 public:
  State(comm::Communicator& control, int count, std::int64_t bytes) {
    const std::int64_t columns = 256, rows = bytes / count / columns / 4;
    const Range mine = chunk_of(rows, control.size(), control.rank());
    values_.resize(static_cast<std::size_t>(count * mine.size * columns));
    std::iota(values_.begin(), values_.end(), 1.0f);
    for (int i = 0; i < count; ++i)
      views_.push_back({{fmt::format("model/layers.{}.weight", i),
                         DType::f32,
                         {rows, columns},
                         {{mine.begin, 0}, {mine.size, columns}}},
                        values_.data() + i * mine.size * columns});
  }
  /// `count` tensors of `elements` elements, whole on each rank.
  static State replicated(comm::Communicator& control, int count, std::int64_t elements) {
    State state;
    state.values_.resize(static_cast<std::size_t>(count * elements));
    for (int i = 0; i < count; ++i)
      state.views_.push_back(
          {{fmt::format("model/layers.{}.norm", i), DType::f32, {elements}, {{0}, {elements}}},
           state.values_.data() + i * elements,
           control.rank(),
           control.size()});
    return state;
  }
  const std::vector<checkpoint::SliceView>& views() const { return views_; }
  const std::vector<float>& values() const { return values_; }
  std::size_t bytes() const { return values_.size() * sizeof(float); }

 private:
  State() = default;
  std::vector<float> values_;
  std::vector<checkpoint::SliceView> views_;
};

/// Seconds until the last rank is done.
template <class Work>
double timed(comm::Communicator& control, const Work& work) {
  control.barrier();
  const auto began = std::chrono::steady_clock::now();
  work();
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  return comm::all_reduce_scalar(control, seconds, comm::Op::max);
}

void check(bool good, const char* call) {
  require(good, ExitCode::environment, "{}: {}", call, std::strerror(errno));
}

/// The reference: one file for each rank, written from beginning to end and flushed.
void write_plainly(const fs::path& path, const State& state) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  check(file >= 0, "open");
  const auto* from = reinterpret_cast<const char*>(state.values().data());
  for (std::size_t left = state.bytes(); left != 0;) {
    const ssize_t put = ::write(file, from, std::min(left, std::size_t{4} << 20));
    check(put > 0, "write");
    from += put, left -= static_cast<std::size_t>(put);
  }
  check(::fsync(file) == 0, "fsync");
  check(::close(file) == 0, "close");
}

/// The reference for reading: as dd does it, with one buffer of 4 MiB.
void read_plainly(const fs::path& folder) {
  alignas(4096) static char buffer[std::size_t{4} << 20];  // as dd's
  for (const auto& entry : fs::directory_iterator(folder)) {
    const int file = ::open(entry.path().c_str(), O_RDONLY | O_CLOEXEC);
    check(file >= 0, "open");
    ssize_t got = 0;
    while ((got = ::read(file, buffer, sizeof buffer)) > 0) {
    }
    check(got == 0, "read");
    check(::close(file) == 0, "close");
  }
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void print(const char* name, const std::vector<double>& ours, const std::vector<double>& theirs,
           const char* target) {
  std::printf("%-44s %8.4f %8.4f %6.2f  %s\n", name, median(ours), median(theirs),
              median(ours) / median(theirs), target);
}

class Bench {
 public:
  Bench(comm::Communicator& control, fs::path folder, int turns)
      : control_(control), saver_(control), folder_(std::move(folder)), turns_(turns) {
    const auto before = checkpoint::list_steps(options().folder);
    if (!before.empty()) step_ = before.back().step;
    control.barrier();
  }

  void run(const char* name, int tensors, std::int64_t bytes) {
    const State state(control_, tensors, bytes);
    std::vector<double> plain, saved, begun, copied, background, verified, read;
    std::vector<float> copy(state.values().size());
    for (int turn = 0; turn <= turns_; ++turn) {
      const double seconds[] = {write_plain(state),     save(state), begin(state),
                                copy_into(copy, state), finish(),    verify_newest(),
                                read_newest()};
      if (turn == 0) continue;  // page faults of the first use
      std::vector<double>* lists[] = {&plain,      &saved,    &begun, &copied,
                                      &background, &verified, &read};
      for (std::size_t i = 0; i < std::size(lists); ++i) lists[i]->push_back(seconds[i]);
    }
    if (control_.rank() != 0) return;
    const double gigabytes = static_cast<double>(bytes) / 1e9;
    std::printf(
        "%s: %d tensors, %.0f MB on %d ranks; plain write + fsync %.2f GB/s, checkpoint %.2f "
        "GB/s\n",
        name, tensors, gigabytes * 1e3, control_.size(), gigabytes / median(plain),
        gigabytes / median(saved));
    print("  durable save, beside write + fsync", saved, plain, "<= 1.18 (0.85x the speed)");
    print("  what begin() takes, beside a copy", begun, copied, "<= 1.2");
    print("  asynchronous until visible, beside blocking", background, saved, "");
    print("  verify --deep by one process, beside reading", verified, read,
          "<= 2.0 (0.5x the speed)");
  }

  /// One turn of one thing, after one that does not count; seconds.
  double once(std::string_view what, std::int64_t bytes) {
    const State state =
        what == "tiny" ? State::replicated(control_, 300, 16) : State(control_, 16, bytes);
    double seconds = 0;
    for (int turn = 0; turn < 2; ++turn) {
      if (what == "load") {
        seconds = timed(
            control_, [&] { checkpoint::load_newest(control_, options().folder, state.views()); });
      } else if (what == "begin") {
        seconds = begin(state);
        finish();
      } else {
        seconds = save(state);
      }
    }
    return seconds;
  }

 private:
  checkpoint::SaveOptions options() const {
    checkpoint::SaveOptions options{folder_ / "checkpoint",
                                    fmt::format("pp0.r0.s{}.cp0.tp0", control_.rank()), "s2", ""};
    options.keep_latest_k = 1;
    return options;
  }
  double write_plain(const State& state) {
    const fs::path path = folder_ / fmt::format("plain-{}", control_.rank());
    fs::remove(path);
    return timed(control_, [&] { write_plainly(path, state); });
  }
  /// Waits for what earlier saves left to do: removing the older one is not part of a save.
  void settle() {
    for (int i = 0; i < 2; ++i) saver_.save(options(), {++step_}, {});
    std::this_thread::sleep_for(std::chrono::milliseconds(100));  // for what the last of them left
  }
  double save(const State& state) {
    settle();
    return timed(control_, [&] { saver_.save(options(), {++step_}, state.views()); });
  }
  double begin(const State& state) {
    settle();
    return timed(control_, [&] { saver_.begin(options(), {++step_}, state.views()); });
  }
  double copy_into(std::vector<float>& copy, const State& state) {
    return timed(control_, [&] { std::memcpy(copy.data(), state.values().data(), state.bytes()); });
  }
  fs::path newest() const { return checkpoint::list_steps(options().folder).back().path; }
  double verify_newest() {
    read_newest();  // or the first of the two would be the first who reads
    return timed(control_, [&] {
      if (control_.rank() == 0)
        require(checkpoint::verify(newest(), true).empty(), ExitCode::checkpoint, "damaged");
    });
  }
  double read_newest() {
    return timed(control_, [&] {
      if (control_.rank() == 0) read_plainly(newest());
    });
  }
  double finish() {
    return comm::all_reduce_scalar(control_, saver_.finish()->seconds, comm::Op::max);
  }

  comm::Communicator& control_;
  checkpoint::Saver saver_;
  fs::path folder_;
  int turns_;
  std::int64_t step_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  comm::World world(&argc, &argv);
  comm::Communicator& control = world.control();
  const std::string_view what = argc > 1 ? argv[1] : "";
  const bool once = what == "save" || what == "tiny" || what == "begin" || what == "load";
  require(!once || argc == 4, ExitCode::usage, "checkpoint_speed {} FOLDER MiB", what);
  const fs::path folder =
      once ? argv[2] : fs::path(argc > 1 ? argv[1] : ".") / "checkpoint_speed.tmp";
  if (control.rank() == 0) fs::create_directories(folder);
  control.barrier();
  if (once) {
    const double seconds = Bench(control, folder, 1).once(what, std::atoll(argv[3]) << 20);
    if (control.rank() == 0) std::printf("%.6f\n", seconds);
    return 0;
  }
  {
    Bench bench(control, folder, argc > 3 ? std::atoi(argv[3]) : 5);
    bench.run("large", 16, std::atoll(argc > 2 ? argv[2] : "512") << 20);
    bench.run("tiny", 300, 300 * 8192);
  }
  control.barrier();
  if (control.rank() == 0) fs::remove_all(folder);
}
