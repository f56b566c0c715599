// SPDX-License-Identifier: Apache-2.0
// How long a checkpoint of a very large job takes to open, on one rank: its manifest, its files and
// their box tables, made here without the data (files with holes). The shape is that of a 405B
// model with AdamW on 16 x 8 x 128 ranks: 16,384 files, 4 million boxes.
//   checkpoint_scale [FILES BOXES_PER_FILE]
// Prints `name ours target` and ends with 1 where a target is missed.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/resource.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <functional>

#include "format/manifest.hpp"
#include "format/shard_file.hpp"
#include "support/temporary_folder.hpp"
#include "tessera/base/crc32c.hpp"
#include "tessera/checkpoint/checkpoint_reader.hpp"
#include "tessera/checkpoint/inspect.hpp"

namespace {

using tessera::test::put;
using tessera::test::TemporaryFolder;
using namespace tessera;
using namespace tessera::checkpoint;
namespace fs = std::filesystem;

constexpr double kSeconds = 5, kMegabytes = 500;
constexpr std::int64_t kColumns = 64, kBoxBytes = 4 * kColumns;

/// Megabytes that the process has used at most.
double peak_megabytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

template <class Word>
std::uint32_t put_table(const File& file, const std::vector<Word>& words, std::int64_t offset) {
  file.write(words.data(), words.size() * sizeof(Word), offset);
  return crc32c(0, words.data(), words.size() * sizeof(Word));
}

/// Row `rank` of each tensor, one box each.
ShardRecord put_shard(const fs::path& step, std::int64_t rank, std::int64_t tensors,
                      std::uint32_t crc_of_box) {
  ShardRecord shard;
  shard.name = fmt::format("shard-pp0.r0.s{}.cp0.tp0.h5", rank);
  shard.box_dims = 2;
  shard.boxes.offset = 4096, shard.boxes.count = tensors;
  shard.checksums.offset = shard.boxes.offset + tensors * shard.box_row_bytes(),
  shard.checksums.count = tensors;
  const std::int64_t data = shard.checksums.offset + 4 * tensors;
  shard.bytes = data + tensors * kBoxBytes;
  shard.tensors = {{0, tensors}};
  std::vector<std::int64_t> words;
  for (std::int64_t tensor = 0; tensor < tensors; ++tensor)
    words.insert(words.end(), {tensor, data + tensor * kBoxBytes, rank, 0, 1, kColumns});
  File file = File::create(step / shard.name, ExitCode::checkpoint);
  shard.boxes.crc = put_table(file, words, shard.boxes.offset);
  shard.checksums.crc =
      put_table(file, std::vector<std::uint32_t>(static_cast<std::size_t>(tensors), crc_of_box),
                shard.checksums.offset);
  file.resize(shard.bytes);
  file.close();
  return shard;
}

fs::path put_checkpoint(const fs::path& folder, std::int64_t files, std::int64_t tensors) {
  const fs::path step = folder / "step-00000001";
  fs::create_directories(step);
  Manifest manifest;
  manifest.step = 1, manifest.mesh = "pp16.r1.s8.cp1.tp128", manifest.extra = "{}";
  for (std::int64_t tensor = 0; tensor < tensors; ++tensor)
    manifest.tensors.push_back(
        {fmt::format("optimizer/exp_avg/layers.{}.feed_forward.w{}.weight", tensor / 3, tensor % 3),
         DType::f32,
         {files, kColumns}});
  const std::vector<char> zeros(kBoxBytes);
  const std::uint32_t crc_of_box = crc32c(0, zeros.data(), zeros.size());
  for (std::int64_t rank = 0; rank < files; ++rank)
    manifest.shards.push_back(put_shard(step, rank, tensors, crc_of_box));
  put(step / kManifestName, to_text(manifest));
  return step;
}

bool report(const char* name, double ours, double target, const char* unit) {
  fmt::print("{:<36} {:>8.2f} {:<3} target {:>6.0f} {}\n", name, ours, unit, target,
             ours <= target ? "" : "MISSED");
  std::fflush(stdout);
  return ours <= target;
}

double seconds_of(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

int measure(const fs::path& folder, std::int64_t files, std::int64_t tensors) {
  const auto self = comm::make_self_communicator("control");
  std::optional<CheckpointReader> opened;
  bool met = true;
  met &=
      report("open", seconds_of([&] { opened = open_newest(*self, folder, {}); }), kSeconds, "s");
  met &= report("open, peak memory", peak_megabytes(), kMegabytes, "MB");
  // One rank of the same mesh, then one that wants a column of everything: all box tables are read.
  std::vector<float> values(static_cast<std::size_t>(std::max(tensors * kColumns, files)));
  const auto load = [&](bool column) {
    std::vector<SliceView> wanted;
    for (std::size_t i = 0; i < opened->tensors().size(); ++i) {
      const TensorInfo& tensor = opened->tensors()[i];
      TensorSlice slice{tensor.name, DType::f32, tensor.shape, {{files / 2, 0}, {1, kColumns}}};
      if (column) slice.box = {{0, kColumns / 2}, {files, 1}};
      if (column && i != 7) continue;
      wanted.push_back({slice, column ? values.data() : values.data() + i * kColumns});
    }
    opened->fill(wanted);
  };
  met &= report("load one rank's rows", seconds_of([&] { load(false); }), 60, "s");
  met &= report("load a column of one tensor", seconds_of([&] { load(true); }), 60, "s");
  met &= report("verify, without data", seconds_of([&] {
                  if (!verify(folder / "step-00000001", false).empty())
                    fail(ExitCode::checkpoint, "not valid");
                }),
                60, "s");
  met &= report("all of it, peak memory", peak_megabytes(), kMegabytes, "MB");
  return met ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const std::int64_t files = argc > 1 ? std::atoll(argv[1]) : 16384,
                     tensors = argc > 2 ? std::atoll(argv[2]) : 245;
  const TemporaryFolder folder;
  put_checkpoint(folder.path(), files, tensors);
  fmt::print("{} files, {} boxes; made with a peak of {:.0f} MB\n", files, files * tensors,
             peak_megabytes());
  return measure(folder.path(), files, tensors);
}
