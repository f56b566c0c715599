// SPDX-License-Identifier: Apache-2.0
// Data by name, the sample text, and the short flags of data and tokenizer.
#include <gmock/gmock.h>

#include <cstdlib>

#include "config_files.hpp"
#include "support/temporary_folder.hpp"

namespace tessera::config {
namespace {

using tessera::test::TemporaryFolder;

namespace fs = std::filesystem;
using test::JobFile;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// A folder with text files, named by TESSERA_DATA as long as it lives.
class DataFolder {
 public:
  explicit DataFolder(const std::vector<std::string>& names) {
    for (const std::string& name : names) folder_.file(name, "text\n");
    ::setenv("TESSERA_DATA", folder_.path().c_str(), 1);
  }
  ~DataFolder() { ::unsetenv("TESSERA_DATA"); }
  std::string operator/(const std::string& name) const { return (folder_ / name).string(); }

 private:
  TemporaryFolder folder_;
};

TEST(Datasets, ShortFlagsAreThoseOfTheKeys) {
  const Resolved r = resolve({"--data", "my.txt", "--tokenizer=tok"});
  EXPECT_EQ(r.job.training.dataset_path, "my.txt");
  EXPECT_EQ(r.job.model.hf_assets_path, "tok");
  EXPECT_EQ(r.origin("training.dataset_path"), "command line");
  EXPECT_THAT(test::mistake({"--data"}), HasSubstr("--data: needs a value"));
}

TEST(Datasets, TheSampleTextComesWithATokenizer) {
  const JobFile job(
      "[model]\nhf_assets_path = \"./tests/assets/tokenizer\"\n[training]\ndataset = "
      "\"c4_test\"\n");
  const Resolved r = resolve({job.path()});
  ASSERT_TRUE(r.job.training.dataset_path);
  EXPECT_TRUE(fs::exists(*r.job.training.dataset_path)) << *r.job.training.dataset_path;
  EXPECT_TRUE(fs::exists(fs::path(r.job.model.hf_assets_path) / "tokenizer.json"))
      << r.job.model.hf_assets_path;
  EXPECT_EQ(r.origin("training.dataset_path"), "training.dataset");
  EXPECT_THAT(
      r.warnings,
      ElementsAre(HasSubstr("there is no ./tests/assets/tokenizer: c4_test uses the tokenizer")));
}

TEST(Datasets, TheSampleTextTakesTheTokenizerThatIsNamed) {
  const Resolved r = resolve({"--training.dataset", "c4_test", "--tokenizer", "tok"});
  EXPECT_EQ(r.job.model.hf_assets_path, "tok");
  EXPECT_THAT(r.warnings, IsEmpty());
}

TEST(Datasets, PartsOfC4AreToldApart) {
  TemporaryFolder folder;
  fs::create_directory(folder / "en");
  for (const char* name : {"c4-train.00000-of-00002.json.gz", "c4-validation.00000-of-00001.json"})
    folder.file(std::string("en/") + name, "text\n");
  const auto path_of = [&](const std::string& dataset, const fs::path& place) {
    return *resolve({"--training.dataset", dataset, "--data", place.string()})
                .job.training.dataset_path;
  };
  const std::string en = (folder / "en").string();
  EXPECT_EQ(path_of("c4", folder.path()), en + "/c4-train.*");
  EXPECT_EQ(path_of("c4_validation", folder / "en"), en + "/c4-validation.*");
  EXPECT_EQ(path_of("text", folder / "en"), en);
  ::setenv("TESSERA_DATA", folder.path().c_str(), 1);
  EXPECT_EQ(path_of("c4", "en"), en + "/c4-train.*");
  ::unsetenv("TESSERA_DATA");
}

TEST(Datasets, TheSampleTextIsReadOnlyWhereItIsNamed) {
  EXPECT_FALSE(resolve({}).job.training.dataset_path);
  EXPECT_FALSE(resolve({"--validation.enable"}).job.validation.dataset_path);
  EXPECT_TRUE(resolve({"--validation.enable", "--validation.dataset", "c4_test"})
                  .job.validation.dataset_path);
}

TEST(Datasets, APrintedJobWithoutDataHasNone) {
  const JobFile printed(resolve({}).to_toml());
  EXPECT_FALSE(resolve({printed.path()}).job.training.dataset_path);
}

TEST(Datasets, NamesAreLookedUpInOneFolder) {
  const DataFolder folder({"c4.jsonl.gz", "c4_test.txt", "wiki.tokens"});
  EXPECT_EQ(resolve({"--training.dataset", "c4"}).job.training.dataset_path,
            folder / "c4.jsonl.gz");
  EXPECT_EQ(resolve({"--training.dataset", "c4_test"}).job.training.dataset_path,
            folder / "c4_test.txt");
  EXPECT_EQ(resolve({"--data", "wiki"}).job.training.dataset_path, folder / "wiki.tokens");
  EXPECT_EQ(resolve({"--data", "wiki"}).origin("training.dataset_path"), "TESSERA_DATA");
  EXPECT_EQ(resolve({"--data", "gone"}).job.training.dataset_path, "gone");
  EXPECT_EQ(resolve({"--training.mixture", "wiki,1"}).job.training.mixture[0][0],
            folder / "wiki.tokens");
  EXPECT_EQ(resolve({"--validation.enable", "--validation.dataset_path", "wiki"})
                .job.validation.dataset_path,
            folder / "wiki.tokens");
}

}  // namespace
}  // namespace tessera::config
