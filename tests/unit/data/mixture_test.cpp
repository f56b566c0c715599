// SPDX-License-Identifier: Apache-2.0
// Several sources as one: each sample in its turn, files and windows that are held out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "support/error_of.hpp"
#include "support/temporary_folder.hpp"
#include "tessera/data/data_files.hpp"
#include "tessera/data/mixture_source.hpp"
#include "tessera/data/padded_source.hpp"
#include "tessera/data/window_source.hpp"

namespace tessera::data {
namespace {

using tessera::test::error_of;
using tessera::test::TemporaryFolder;
using testing::HasSubstr;
using Ids = std::vector<std::int32_t>;

class Files : public testing::Test {
 protected:
  /// `tokens` ids in a row, from `first` on.
  std::filesystem::path write(const std::string& name, std::int32_t first, std::int64_t tokens,
                              std::int64_t vocab_size = 70000, std::uint64_t tokenizer = 0) {
    Ids ids(static_cast<std::size_t>(tokens));
    std::iota(ids.begin(), ids.end(), first);
    TokenFileInfo info;
    info.vocab_size = vocab_size;
    info.tokenizer_hash = tokenizer;
    TokenFileWriter writer(folder_ / name, info);
    writer.append_document(ids);
    writer.finish();
    return folder_ / name;
  }
  std::unique_ptr<WindowSource> windows(const std::filesystem::path& file, std::uint64_t seed = 0) {
    return std::make_unique<WindowSource>(TokenFile::open(file), 10, seed);
  }
  static std::int32_t first_of(const SampleSource& source, std::int64_t sample) {
    Ids inputs(static_cast<std::size_t>(source.seq_len())), labels(inputs.size());
    source.read(sample, inputs, labels);
    for (std::size_t t = 0; t < inputs.size(); ++t)
      EXPECT_EQ(labels[t], inputs[0] + static_cast<std::int32_t>(t) + 1);
    return inputs[0];
  }
  TemporaryFolder folder_;
};

TEST_F(Files, OfASourceAreOneRunOfWindowsThatCrossNoEnd) {
  write("b.tokens", 1000, 57);
  write("a.tokens", 0, 101);
  write("c.tokens", 2000, 5);  // shorter than a window
  const auto files = data_files(folder_.path());
  ASSERT_EQ(files, (std::vector{folder_ / "a.tokens", folder_ / "b.tokens", folder_ / "c.tokens"}));
  EXPECT_EQ(data_files(folder_ / "[ab].tokens").size(), 2u);
  EXPECT_EQ(data_files(folder_ / "a.tokens").size(), 1u);
  EXPECT_THAT(error_of(ExitCode::data, [&] { data_files(folder_ / "none" / "*"); }),
              HasSubstr("no file matches"));
  const WindowSource source(hold_out(open_token_files(files), 10, 0).training, 10, 9);
  ASSERT_EQ(source.window_count(), 15);
  std::set<std::int32_t> firsts;
  for (std::int64_t n = 15; n < 30; ++n) {
    firsts.insert(first_of(source, n));
    const SampleOrigin origin = source.origin(n).value();
    EXPECT_EQ(origin.epoch, 1);
    EXPECT_EQ(
        origin.file,
        folder_ / (*firsts.rbegin() >= 1000 && origin.window >= 10 ? "b.tokens" : "a.tokens"));
    EXPECT_EQ(first_of(source, n), origin.first_token + (origin.window >= 10 ? 1000 : 0));
  }
  std::set<std::int32_t> expected;
  for (int w = 0; w < 10; ++w) expected.insert(10 * w);
  for (int w = 0; w < 5; ++w) expected.insert(1000 + 10 * w);
  EXPECT_EQ(firsts, expected);
}

TEST_F(Files, OfOneKindAndTokenizerOnly) {
  const auto a = write("a.tokens", 0, 30), b = write("b.tokens", 0, 30, 80000),
             c = write("c.tokens", 0, 30, 70000, 5);
  EXPECT_THAT(error_of(ExitCode::data,
                       [&] {
                         open_token_files({a, b});
                       }),
              HasSubstr("different tokenizers"));
  EXPECT_THAT(error_of(ExitCode::data,
                       [&] {
                         open_token_files({a, c});
                       }),
              HasSubstr("different tokenizers"));
  folder_.file("x.jsonl", "{}\n");
  EXPECT_THAT(error_of(ExitCode::data, [&] { data_files(folder_.path()); }),
              HasSubstr("token files and text"));
  EXPECT_THAT(error_of(ExitCode::data, [&] { data_files(folder_ / "*"); }), HasSubstr("one kind"));
  std::ofstream(folder_ / "empty.tokens").close();
  EXPECT_THAT(error_of(ExitCode::data, [&] { data_files(folder_.path()); }),
              HasSubstr("'empty.tokens' in the folder"))
      << "a file that is left out would change the samples without a word";
  std::filesystem::remove(folder_ / "empty.tokens");
  EXPECT_THAT(error_of(ExitCode::data, [&] { data_files(folder_ / "*.nothing"); }),
              HasSubstr("no file matches"));
  EXPECT_EQ(data_files(folder_ / "*.jsonl"), (std::vector{folder_ / "x.jsonl"}));
  std::filesystem::create_symlink("gone", folder_ / "y.jsonl");
  for (const char* name : {"", "*.jsonl"})
    EXPECT_THAT(error_of(ExitCode::data, [&] { data_files(folder_ / name); }),
                HasSubstr("'y.jsonl' in the folder"))
        << name;
  EXPECT_THAT(error_of(ExitCode::data, [&] { data_files(folder_ / "nowhere"); }),
              HasSubstr("no file or folder"));
  std::filesystem::create_directory(folder_ / "empty");
  EXPECT_THAT(error_of(ExitCode::data, [&] { data_files(folder_ / "empty"); }),
              HasSubstr("no token file"));
}

/// Labels of both parts together are those of all windows, and none is in both.
TEST_F(Files, HeldOutWindowsAreTheLastOfEachFile) {
  const std::vector<TokenFile> files =
      open_token_files({write("a", 0, 1003), write("b", 10000, 208),
                        write("c", 20000, 31)});  // 100, 20 and 3 windows
  for (const double share : {0.01, 0.1, 0.3, 0.5, 0.9}) {
    const HeldOut parts = hold_out(files, 10, share);
    const WindowSource training(parts.training, 10, 1),
        held(parts.held_out, 10, 0, WindowSource::Order::as_they_come);
    EXPECT_EQ(held.window_count(), static_cast<std::int64_t>(std::floor(share * 123)));
    EXPECT_EQ(training.window_count() + held.window_count(), 123);
    std::set<std::int32_t> trained, validated;
    for (std::int64_t n = 0; n < training.window_count(); ++n)
      trained.insert(first_of(training, n));
    for (std::int64_t n = 0; n < held.window_count(); ++n) validated.insert(first_of(held, n));
    EXPECT_EQ(trained.size() + validated.size(), 123u) << share;
    for (const std::int32_t first : validated) EXPECT_FALSE(trained.contains(first));
    for (const std::int32_t first : trained) EXPECT_FALSE(validated.contains(first + 10 * 123));
    EXPECT_EQ(held.sample_limit(), held.window_count());
    EXPECT_THAT(error_of(ExitCode::data, [&] { first_of(held, held.window_count()); }),
                HasSubstr("was asked for"));
    std::int32_t last = -1;
    for (std::int64_t n = 0; n < held.window_count(); ++n) {
      EXPECT_GT(first_of(held, n), last);  // in order
      last = first_of(held, n);
    }
  }
  EXPECT_TRUE(hold_out(files, 10, 0).held_out.empty());
  EXPECT_THAT(error_of(ExitCode::data, [&] { hold_out(files, 10, 0.001); }), HasSubstr("none"));
}

TEST_F(Files, MixedGoThroughTheirOwnEpochs) {
  const auto web = write("web", 0, 301), books = write("books", 10000, 101);  // 30 and 10 windows
  const auto mixture = [&](std::uint64_t seed) {
    std::vector<MixtureSource::Part> parts;
    parts.push_back({"web", windows(web, seed), 0.25, 30});
    parts.push_back({"books", windows(books, seed + 1), 0.75, 10});
    return MixtureSource(std::move(parts), seed);
  };
  const MixtureSource mix = mixture(4);
  EXPECT_EQ(mix.sample_limit(), std::nullopt);
  std::map<std::string, std::vector<std::int32_t>> seen;
  for (std::int64_t n = 0; n < 400; ++n) {
    const SampleOrigin origin = mix.origin(n).value();
    EXPECT_EQ(origin.sample, std::ssize(seen[origin.source]));
    seen[origin.source].push_back(first_of(mix, n));
    EXPECT_EQ(seen[origin.source].back() >= 10000, origin.source == "books");
  }
  EXPECT_NEAR(std::ssize(seen["books"]), 300, 1);
  const auto& read = seen["books"];
  for (int epoch = 0; epoch < 29; ++epoch)
    EXPECT_EQ(std::set(read.begin() + 10 * epoch, read.begin() + 10 * (epoch + 1)).size(), 10u);
  const auto shares = mix.shares(400);
  ASSERT_EQ(shares.size(), 2u);
  EXPECT_EQ(shares[1].name, "books");
  EXPECT_EQ(shares[1].samples, std::ssize(read));
  EXPECT_DOUBLE_EQ(shares[1].epochs, static_cast<double>(read.size()) / 10);
  bool differs = false;
  for (std::int64_t n = 0; n < 50; ++n)
    differs = differs || first_of(mix, n) != first_of(mixture(5), n);
  EXPECT_TRUE(differs);
}

/// A run that goes on asks by it whether its position still means the same.
TEST_F(Files, IdentityIsThatOfTheSamples) {
  const auto a = write("a", 0, 71), same = write("same", 0, 71), other = write("other", 1, 71);
  const auto of = [](const std::filesystem::path& file, std::int64_t seq_len, std::uint64_t seed,
                     double share = 0) {
    return WindowSource(hold_out({TokenFile::open(file)}, seq_len, share).training, seq_len, seed)
        .identity();
  };
  const std::string known = of(a, 10, 3);
  EXPECT_EQ(known.size(), 16u);
  EXPECT_EQ(of(same, 10, 3), known);
  const std::set others{known, of(other, 10, 3), of(a, 9, 3), of(a, 10, 4), of(a, 10, 3, 0.3)};
  EXPECT_EQ(others.size(), 5u);
  const auto mixed = [&](const std::filesystem::path& second, double weight, std::uint64_t seed) {
    std::vector<MixtureSource::Part> parts;
    parts.push_back({"a", windows(a), 1, 7});
    parts.push_back({"b", windows(second), weight, 7});
    return MixtureSource(std::move(parts), seed).identity();
  };
  EXPECT_EQ(mixed(other, 2, 0), mixed(other, 2, 0));
  EXPECT_EQ(mixed(other, 3, 0), mixed(other, 2, 0)) << "weights may change";
  const std::set mixtures{known, mixed(other, 2, 0), mixed(same, 2, 0), mixed(other, 2, 1)};
  EXPECT_EQ(mixtures.size(), 4u);
}

TEST_F(Files, MixedThatEndAreReadOnceEach) {
  const auto a = write("a", 0, 71), b = write("b", 10000, 31);
  std::vector<MixtureSource::Part> parts;
  for (const auto& file : {a, b})
    parts.push_back(
        {file.filename(),
         std::make_unique<WindowSource>(hold_out({TokenFile::open(file)}, 10, 0).training, 10, 0,
                                        WindowSource::Order::as_they_come),
         1, 1});
  const MixtureSource mix(std::move(parts), 0);
  ASSERT_EQ(mix.sample_limit(), 10);
  std::set<std::int32_t> firsts;
  for (std::int64_t n = 0; n < 10; ++n) firsts.insert(first_of(mix, n));
  EXPECT_EQ(firsts.size(), 10u);
  EXPECT_THAT(error_of(ExitCode::data, [&] { first_of(mix, 10); }), HasSubstr("10 samples"));
}

TEST_F(Files, PaddingCountsForNothing) {
  const auto source = windows(write("a", 1, 101));
  const PaddedSource padded(*source, 3, 16);
  Ids inputs(16), labels(16), whole(10), next(10), part(6);
  for (std::int64_t sample = 0; sample < 5; ++sample) {
    padded.read(sample, inputs, labels);
    Ids expected_inputs(16, 0), expected_labels(16, -100);
    if (sample < 3) {
      source->read(sample, whole, next);
      std::ranges::copy(whole, expected_inputs.begin());
      std::ranges::copy(next, expected_labels.begin());
    }
    EXPECT_EQ(inputs, expected_inputs);
    EXPECT_EQ(labels, expected_labels);
    padded.read_part(sample, {7, 6}, {}, part);
    EXPECT_EQ(part, Ids(expected_labels.begin() + 7, expected_labels.begin() + 13));
  }
}

}  // namespace
}  // namespace tessera::data
