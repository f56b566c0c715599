// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <system_error>

#include "bench.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/file.hpp"
#include "tessera/base/shard.hpp"
#include "tessera/checkpoint/checkpoint_reader.hpp"
#include "tessera/checkpoint/saver.hpp"
#include "tessera/comm/agreement.hpp"

namespace tessera::app {
namespace {

namespace fs = std::filesystem;

void check(bool good, const fs::path& file) {
  require(good, ExitCode::environment, "{}: {}; choose another --folder", file.string(),
          std::strerror(errno));
}

/// A file that closes itself.
class Descriptor {
 public:
  Descriptor(const fs::path& path, int flags)
      : path_(path), number_(::open(path.c_str(), flags | O_CLOEXEC, 0666)) {
    check(number_ >= 0, path);
  }
  ~Descriptor() { ::close(number_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  /// All of `bytes`, in pieces of 4 MiB.
  template <class Transfer, class Byte>
  void pass(Transfer transfer, Byte* data, std::size_t bytes) const {
    for (std::size_t done = 0; done < bytes;) {
      const auto moved =
          transfer(number_, data + done, std::min(bytes - done, std::size_t{4} << 20));
      check(moved > 0, path_);
      done += static_cast<std::size_t>(moved);
    }
  }
  void flush() const { check(::fsync(number_) == 0, path_); }

 private:
  fs::path path_;
  int number_;
};

/// This rank's rows of 16 tensors.
struct Weights {
  std::vector<float> values;
  std::vector<checkpoint::SliceView> views;

  Weights(comm::Communicator& all, std::int64_t bytes) {
    constexpr std::int64_t kTensors = 16, kColumns = 256;
    const std::int64_t rows = std::max<std::int64_t>(all.size(), bytes / kTensors / kColumns / 4);
    const Range mine = chunk_of(rows, all.size(), all.rank());
    values.resize(static_cast<std::size_t>(kTensors * mine.size * kColumns));
    std::iota(values.begin(), values.end(), 1.0F);
    for (std::int64_t i = 0; i < kTensors; ++i)
      views.push_back({{fmt::format("model/layers.{}.weight", i),
                        DType::f32,
                        {rows, kColumns},
                        {{mine.begin, 0}, {mine.size, kColumns}}},
                       values.data() + i * mine.size * kColumns});
  }
  std::size_t bytes() const { return values.size() * sizeof(float); }
};

std::vector<BenchRow> measure(comm::Communicator& all, const fs::path& folder, std::int64_t bytes) {
  Weights weights(all, bytes);
  const fs::path plain = folder / fmt::format("plain-{}", all.rank());
  auto* const raw = reinterpret_cast<char*>(weights.values.data());
  const double write = median_seconds(all, [&] {
    const Descriptor file(plain, O_WRONLY | O_CREAT | O_TRUNC);
    file.pass(&::write, raw, weights.bytes());
    file.flush();
  });
  const double read =
      median_seconds(all, [&] { Descriptor(plain, O_RDONLY).pass(&::read, raw, weights.bytes()); });
  checkpoint::Saver saver(all);
  checkpoint::SaveOptions options{folder / "checkpoint",
                                  fmt::format("pp0.r0.s{}.cp0.tp0", all.rank()),
                                  fmt::format("s{}", all.size()), ""};
  options.keep_latest_k = 1;
  std::int64_t step = 0;
  const double save = median_seconds(all, [&] {
    saver.save(options, {++step, "{}"}, weights.views);
  });
  const double load =
      median_seconds(all, [&] { checkpoint::load_newest(all, options.folder, weights.views); });
  const auto of_all =
      static_cast<double>(comm::all_reduce_scalar(all, static_cast<std::int64_t>(weights.bytes())));
  return {{"write and flush", write, of_all / write, 0},
          {"save a checkpoint", save, of_all / save, of_all / write},
          {"read", read, of_all / read, 0},
          {"load a checkpoint", load, of_all / load, of_all / read}};
}

/// A folder that is there for as long as this lives. Collective.
class Scratch {
 public:
  Scratch(comm::Communicator& all, const fs::path& folder)
      : all_(all), folder_(folder / "tessera-bench") {
    comm::on_rank_zero(all, [&] {
      require(fs::is_directory(folder), ExitCode::usage,
              "{} is not a folder; make it, or name another one with --folder", folder.string());
      require(!fs::exists(folder_), ExitCode::usage,
              "{} exists, maybe of another bench that runs; remove it", folder_.string());
      make_folder(folder_, ExitCode::environment);
      return std::string();
    });
  }
  ~Scratch() {
    std::error_code ignored;
    if (all_.rank() == 0) fs::remove_all(folder_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  const fs::path& folder() const { return folder_; }

 private:
  comm::Communicator& all_;
  fs::path folder_;
};

}  // namespace

std::vector<BenchRow> bench_checkpoint(comm::World& world, const fs::path& folder,
                                       std::int64_t bytes) {
  const Scratch scratch(world.control(), folder);
  std::vector<BenchRow> rows = measure(world.control(), scratch.folder(), bytes);
  world.control().barrier();
  return rows;
}

}  // namespace tessera::app
