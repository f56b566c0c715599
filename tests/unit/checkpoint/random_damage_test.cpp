// SPDX-License-Identifier: Apache-2.0
// Random damage to two checkpoints of three files each: the verifier finds all of it, the loader
// all of it that touches what it reads, both say where; the latest valid checkpoint is loaded.
// TESSERA_DAMAGE_TRIALS sets how often (the soak test: 10,000).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "damage_trial.hpp"
#include "format/read_manifest.hpp"
#include "format/shard_file.hpp"
#include "sample.hpp"
#include "support/temporary_folder.hpp"
#include "tessera/checkpoint/checkpoint_reader.hpp"
#include "tessera/checkpoint/inspect.hpp"
#include "tessera/checkpoint/reshard.hpp"
#include "tessera/checkpoint/save.hpp"

namespace tessera::checkpoint {
namespace {

using tessera::test::content_of;
using tessera::test::put;
using tessera::test::TemporaryFolder;

namespace fs = std::filesystem;
using testing::AnyOf;
using testing::HasSubstr;

class RandomDamage : public testing::Test {
 protected:
  void make(bool large) {
    tensors_ = sample_tensors(large);
    const TemporaryFolder whole;
    for (std::int64_t step : {1, 2}) {
      auto held = hold(tensors_, {}, 0, true);
      if (step == 2)
        for (const Held& h : held) other_values(h.view());
      for (const Held& h : held) values_[step][h.view().slice.name] = bytes_of(h.view());
      save(*control_, {whole.path(), "all", "test", ""}, {step}, views_of(held));
      steps_[step] = reshard(whole / fmt::format("step-{:08}", step), {folder_.path(), 3});
    }
    for (const auto& entry : fs::recursive_directory_iterator(folder_.path()))
      if (entry.is_regular_file()) good_[entry.path()] = content_of(entry.path());
    for (const auto& [path, bytes] : good_) paths_.push_back(path);
    for (const auto& [step, folder] : steps_) note_what_is_read(folder);
    ASSERT_EQ(good_.size(), 2u * (3 + 2) + 1);  // shards, manifest, index; LATEST
  }

  static void other_values(const SliceView& view) {
    auto* data = static_cast<unsigned char*>(view.data);
    for (std::size_t i = 0, count = bytes_of(view).size(); i < count; ++i) data[i] ^= 0x5a;
  }
  static std::string bytes_of(const SliceView& view) {
    return {static_cast<const char*>(view.data), tessera::bytes_of(view.slice)};
  }

  void note_what_is_read(const fs::path& step) {
    const Manifest manifest = read_manifest(step).manifest;
    for (const ShardRecord& shard : manifest.shards) {
      const File file = File::open_to_read(step / shard.name, ExitCode::checkpoint);
      const BoxTable boxes = read_tables(file, shard, manifest.tensors).boxes;
      std::vector<Read>& reads = reads_[file.path()];
      reads.push_back({shard.boxes.offset,
                       shard.boxes.offset + shard.boxes.count * shard.box_row_bytes(),
                       "box table"});
      reads.push_back({shard.checksums.offset, shard.checksums.offset + 4 * shard.checksums.count,
                       "checksum table"});
      for (std::int64_t b = 0; b < boxes.size(); ++b)
        for (std::int64_t k = 0; k < blocks_in(boxes.bytes(b)); ++k) {
          const std::int64_t begin = boxes.offset(b) + k * kBlockBytes;
          reads.push_back(
              {begin, std::min(begin + kBlockBytes, boxes.offset(b) + boxes.bytes(b)),
               fmt::format("block {} of {}", k,
                           manifest.tensors[static_cast<std::size_t>(boxes.tensor(b))].name)});
        }
    }
  }

  std::size_t pick(std::size_t below) { return random_() % below; }
  static bool is_loaded(const fs::path& path) {
    return path.filename() != "index.h5" && path.filename() != "LATEST";
  }

  Trial flip() {
    const fs::path& path = paths_[pick(paths_.size())];
    std::string bytes = good_[path];
    // Small files and what lies between the tensors get their share: data is most of the bytes of a
    // large checkpoint.
    const auto known = reads_.find(path);
    std::size_t at = pick(bytes.size());
    if (known != reads_.end() && pick(2) == 0) {
      const Read& read = known->second[pick(known->second.size())];
      at = static_cast<std::size_t>(read.begin) +
           pick(static_cast<std::size_t>(read.end - read.begin));
    }
    bytes[at] = static_cast<char>(bytes[at] ^ (1 + pick(255)));
    put(path, bytes);
    Trial trial{fmt::format("byte {} flipped", at), {path}, path.filename() == "manifest.json", ""};
    if (known != reads_.end())
      for (const Read& read : known->second)
        if (read.begin <= static_cast<std::int64_t>(at) && static_cast<std::int64_t>(at) < read.end)
          trial.stops_loader = true, trial.words = read.words;
    return trial;
  }

  Trial cut_or_grow() {
    const fs::path& path = paths_[pick(paths_.size())];
    const std::string& bytes = good_[path];
    if (pick(2) == 0) {
      const std::size_t left = pick(bytes.size());
      put(path, bytes.substr(0, left));
      return {fmt::format("cut to {} bytes", left), {path}, is_loaded(path), ""};
    }
    std::string more(1 + pick(5000), '\0');
    if (pick(2) == 0)
      for (char& c : more) c = static_cast<char>(pick(256));
    put(path, bytes + more);
    return {fmt::format("{} bytes appended", more.size()), {path}, is_loaded(path), ""};
  }

  Trial remove() {
    const fs::path& path = paths_[pick(paths_.size())];
    fs::remove(path);
    // A checkpoint is whole without index.h5, which is written after the commit; with a folder in
    // its place it is not.
    if (path.filename() == "index.h5" || pick(4) == 0) fs::create_directory(path);
    return {"removed", {path}, is_loaded(path), ""};
  }

  Trial swap() {
    const fs::path a = paths_[pick(paths_.size())];
    // Every other time the same file of the other step: there, all that is in its tables but the
    // checksums is the same.
    fs::path b = paths_[pick(paths_.size())];
    if (pick(2) == 0 && a.parent_path() != folder_.path())
      b = (a.parent_path() == steps_[1] ? steps_[2] : steps_[1]) / a.filename();
    if (good_[a] == good_[b]) return remove();
    put(a, good_[b]);
    put(b, good_[a]);
    return {"swapped with " + b.string(), {a, b}, is_loaded(a) || is_loaded(b), ""};
  }

  Trial damage() {
    switch (pick(6)) {
      case 0:
        return cut_or_grow();
      case 1:
        return swap();
      case 2:
        return remove();
      default:
        return flip();
    }
  }

  void restore(const Trial& trial) {
    for (const fs::path& path : trial.touched) {
      fs::remove(path);
      put(path, good_[path]);
    }
  }

  /// True when every tensor came back with the values of `step`, false when the loader refused.
  std::string load_error(const std::function<void(std::span<const SliceView>)>& load,
                         std::int64_t step) {
    const auto blank = hold(tensors_, {}, 0, false);
    const auto views = views_of(blank);
    try {
      load(views);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::checkpoint) << error.what();
      return error.what();
    }
    for (const SliceView& view : views)
      EXPECT_EQ(bytes_of(view) == values_[step][view.slice.name], true) << view.slice.name;
    return "";
  }

  bool touches(const Trial& trial, std::int64_t step) {
    return trial.stops_loader && std::ranges::any_of(trial.touched, [&](const fs::path& path) {
             return path.parent_path() == steps_[step] && is_loaded(path);
           });
  }

  void expect_found_by_verify(const Trial& trial) {
    std::string found;
    for (const auto& [step, folder] : steps_) found += describe(verify(folder, true), 99);
    if (const auto hint = check_hint(folder_.path())) found += hint->what;
    for (const fs::path& path : trial.touched)  // of two swapped files each
      EXPECT_THAT(
          found, AnyOf(HasSubstr(path.string()),
                       testing::AllOf(HasSubstr("manifest.json"),
                                      HasSubstr((path.parent_path() / "manifest.json").string()))));
    EXPECT_THAT(found, HasSubstr(trial.words));
  }

  void expect_found_by_loader(const Trial& trial) {
    for (const auto& [step, folder] : steps_) {
      const std::string why =
          load_error([&](auto views) { load(*control_, open(*control_, folder), views); }, step);
      EXPECT_EQ(!why.empty(), touches(trial, step)) << "step " << step << ": " << why;
      if (why.empty()) continue;
      EXPECT_THAT(why, HasSubstr(trial.words));
      std::vector<std::string> names;
      for (const fs::path& path : trial.touched) names.push_back(path.string());
      EXPECT_THAT(names, testing::Contains(testing::ResultOf(
                             [&](const std::string& n) { return why.find(n) != why.npos; }, true)));
    }
  }

  void expect_newest_whole_one(const Trial& trial) {
    const std::int64_t whole = !touches(trial, 2) ? 2 : !touches(trial, 1) ? 1 : 0;
    std::vector<std::string> lines;
    LoadOptions options;
    options.log = [&](const std::string& line) { lines.push_back(line); };
    std::int64_t step = 0;
    const std::string why = load_error(
        [&](auto views) { step = load_newest(*control_, folder_.path(), views, options)->step(); },
        whole);
    EXPECT_EQ(step, whole) << why;
    // Where none is left, the error says it all.
    ASSERT_EQ(lines.size(), whole == 0 ? 0u : 2u - static_cast<std::size_t>(whole));
    if (!lines.empty()) {
      EXPECT_THAT(lines[0], testing::StartsWith("skipping checkpoint step-00000002: "));
      EXPECT_THAT(lines[0], HasSubstr(steps_[2].string()));
    }
    if (whole == 0) {
      EXPECT_THAT(why, testing::AllOf(HasSubstr("no checkpoint in"), HasSubstr("step-00000002: "),
                                      HasSubstr("step-00000001: ")));
    }
  }

  /// Damage to one tensor leaves the others readable.
  void expect_others_readable(const Trial& trial) {
    const std::size_t at = trial.words.find(" of ");
    if (!trial.words.starts_with("block") || at == std::string::npos) return;
    const std::int64_t step = trial.touched[0].parent_path() == steps_[1] ? 1 : 2;
    const CheckpointReader opened = open(*control_, steps_[step]);
    for (const SampleTensor& tensor : tensors_) {
      if (tensor.name == trial.words.substr(at + 4)) continue;
      const Held blank(TensorSlice{tensor.name, tensor.dtype, tensor.shape, whole(tensor.shape)},
                       false);
      opened.read(blank.view().slice, blank.view().data);
      EXPECT_EQ(bytes_of(blank.view()) == values_[step][tensor.name], true) << tensor.name;
    }
  }

  void run(int count, bool large) {
    make(large);
    const Trial none{"nothing", {}, false, ""};
    for (const auto& [step, folder] : steps_) ASSERT_EQ(describe(verify(folder, true)), "");
    ASSERT_FALSE(check_hint(folder_.path()));
    expect_newest_whole_one(none);
    int stopped = 0;
    for (int i = 0; i < count && !HasFailure(); ++i) {
      const Trial trial = damage();
      SCOPED_TRACE(fmt::format("trial {}: {} {}", i, trial.touched[0].string(), trial.what));
      expect_found_by_verify(trial);
      expect_found_by_loader(trial);
      expect_newest_whole_one(trial);
      expect_others_readable(trial);
      stopped += trial.stops_loader;
      restore(trial);
    }
    std::printf("%d trials, %d of them in what a loader reads\n", count, stopped);
    EXPECT_GT(stopped, count / 3);
    EXPECT_LT(stopped, count);
    expect_newest_whole_one(none);
  }

  TemporaryFolder folder_;
  std::unique_ptr<comm::Communicator> control_ = comm::make_self_communicator("control");
  std::mt19937 random_{20260117};
  std::vector<SampleTensor> tensors_;
  std::map<std::int64_t, fs::path> steps_;
  std::map<std::int64_t, std::map<std::string, std::string>> values_;  // of each step's tensors
  std::map<fs::path, std::string> good_;
  std::vector<fs::path> paths_;
  std::map<fs::path, std::vector<Read>> reads_;
};

TEST_F(RandomDamage, IsFoundNamedAndPassedOver) { run(trials(400), false); }

TEST_F(RandomDamage, OfTensorsOfManyBlocksToo) { run(trials(1000) / 50, true); }

}  // namespace
}  // namespace tessera::checkpoint
