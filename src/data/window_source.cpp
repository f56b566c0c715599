#include "tessera/base/error.hpp"
#include "tessera/data/sample_source.hpp"

namespace tessera::data {

WindowSource::WindowSource(TokenFile file, std::int64_t seq_len, std::uint64_t seed)
    : file_(std::move(file)), seq_len_(seq_len), seed_(seed) {
  require(seq_len >= 1, ExitCode::usage, "a sequence length of {} makes no samples; set training.seq_len", seq_len);
  windows_ = (file_.info().token_count - 1) / seq_len;
  require(windows_ >= 1, ExitCode::data,
          "'{}' has {} tokens, too few for one sample of {} + 1; add text or take a shorter training.seq_len",
          file_.path().string(), file_.info().token_count, seq_len);
}

std::int64_t WindowSource::first_token(std::int64_t sample) const {
  TESSERA_EXPECT(sample >= 0, "sample {}", sample);
  const auto epoch = static_cast<std::uint64_t>(sample / windows_);
  return KeyedPermutation(windows_, seed_, epoch)(sample % windows_) * seq_len_;
}

void WindowSource::read(std::int64_t sample, std::span<std::int32_t> inputs, std::span<std::int32_t> labels) const {
  const auto length = static_cast<std::size_t>(seq_len_);
  TESSERA_EXPECT(inputs.size() == length && labels.size() == length, "{} inputs and {} labels for a sample of {}",
                 inputs.size(), labels.size(), seq_len_);
  const std::int64_t begin = first_token(sample);
  file_.read(begin, inputs);
  file_.read(begin + 1, labels);
}

std::vector<std::int64_t> WindowSource::document_starts(std::int64_t sample) const {
  const std::int64_t begin = first_token(sample);
  std::vector<std::int64_t> starts;
  for (std::int64_t at = begin; at < begin + seq_len_; at = file_.document(file_.document_of(at)).end())
    starts.push_back(at - begin);
  return starts;
}

std::unique_ptr<SampleSource> open_samples(const std::filesystem::path& path, std::int64_t seq_len,
                                           std::uint64_t seed) {
  return std::make_unique<WindowSource>(TokenFile::open(path), seq_len, seed);
}

}  // namespace tessera::data
