// SPDX-License-Identifier: Apache-2.0
#include "tessera/train/inference.hpp"

#include <algorithm>
#include <cmath>

#include "memory_check.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/log.hpp"
#include "tessera/kernels/accumulation_type.hpp"
#include "tessera/kernels/philox.hpp"
#include "tessera/plan/model_shape.hpp"
#include "tessera/train/device.hpp"
#include "tessera/train/model_weights.hpp"
#include "tessera/train/setup.hpp"

namespace tessera::train {
namespace {

using model::Slot;

parallel::StageOptions options_of(const plan::PrecisionPlan& precision, at::Device device) {
  parallel::StageOptions options;
  options.sharding.precision = precision_of(precision);
  options.sharding.reshard.kind = plan::ReshardPolicy::Kind::never;
  options.sharding.device = device;
  return options;
}

/// One token from logits [vocab]; the draw is number `index` of the seed's stream.
std::int64_t pick(const at::Tensor& logits, const Sampling& sampling, std::uint64_t index) {
  if (sampling.temperature <= 0) return logits.argmax().item<std::int64_t>();
  at::Tensor scaled = logits.to(at::kDouble);
  scaled = (scaled - scaled.max()) / sampling.temperature;  // the greatest stays finite
  if (sampling.top_k > 0 && sampling.top_k < scaled.numel()) {
    const at::Tensor least = std::get<0>(scaled.topk(sampling.top_k)).min();
    scaled = scaled.masked_fill(scaled < least, -HUGE_VAL);
  }
  const at::Tensor cumulative = at::softmax(scaled, 0).cumsum(0).contiguous();
  const kernels::Philox random{sampling.seed, kernels::stream_of("generate")};
  const double draw = (random.block(index)[0] + 0.5) * 0x1p-32 * cumulative[-1].item<double>();
  const std::span<const double> sums(cumulative.data_ptr<double>(),
                                     static_cast<std::size_t>(cumulative.numel()));
  return std::min<std::int64_t>(std::ranges::upper_bound(sums, draw) - sums.begin(),
                                cumulative.numel() - 1);
}

/// bool [vocabulary of the tokenizer]: ids that no token has. Undefined if there are none.
at::Tensor absent_ids(const data::Tokenizer& tokenizer) {
  at::Tensor absent = at::zeros({tokenizer.vocab_size()}, at::kBool);
  for (std::int32_t id = 0; id < tokenizer.vocab_size(); ++id)
    if (!tokenizer.has(id)) absent.data_ptr<bool>()[id] = true;
  return absent.any().item<bool>() ? absent : at::Tensor();
}

}  // namespace

Inference::Inference(const plan::InferencePlan& plan, std::int64_t positions,
                     const data::Tokenizer* tokenizer)
    : positions_(positions),
      tokenizer_vocab_(tokenizer ? tokenizer->vocab_size() : 0),
      absent_(tokenizer ? absent_ids(*tokenizer) : at::Tensor()),
      mesh_(mesh::Layout::resolve({1, 1, 1, 1, 1}, 1), mesh::Rank{0}),
      device_(default_device()),
      model_(model::make_decoder(plan.shape, positions, precision_of(plan.precision).compute,
                                 device_, plan.trained_positions)),
      options_(options_of(plan.precision, device_)) {
  plan::check_vocabulary(tokenizer_vocab_, model_.name, model_.dimensions.vocab);
  check_memory_alone(plan, model_, device_);
  reducer_.emplace(model_, mesh_, parallel::reducer_options_of(options_, false));
  stage_.emplace(model_, Range{0, static_cast<std::int64_t>(model_.cells.size())}, mesh_, options_,
                 *reducer_);
  load_newest_weights(
      {stage_->weights().holdings(), model_, mesh_, tokenizer ? tokenizer->content_hash() : 0,
       model::properties_for_others(plan.shape, plan.trained_positions)},
      plan.load);
}

at::Tensor Inference::run(const at::Tensor& tokens, std::int64_t batch, std::int64_t position,
                          model::KeyValueCache* cache) {
  model::Flow flow;
  flow[Slot::tokens] = tokens.reshape({-1}).to(device_);
  model::CellContext context;
  context.angles = &model_.angles;
  context.batch = batch;
  context.position = position;
  context.cache = cache;
  return stage_->infer(flow, context)[Slot::logits];
}

at::Tensor Inference::logits(const at::Tensor& tokens) {
  require(tokens.size(1) <= positions_, ExitCode::usage,
          "{} positions are requested, and the model was built for {}", tokens.size(1), positions_);
  const std::int64_t vocab = model_.dimensions.vocab;
  require(tokens.numel() > 0, ExitCode::data, "the input holds no tokens");
  require(tokens.min().item<std::int64_t>() >= 0 && tokens.max().item<std::int64_t>() < vocab,
          ExitCode::data, "the input holds tokens outside [0, {})", vocab);
  const at::Tensor flat = run(tokens, tokens.size(0), 0, nullptr).to(at::kCPU);
  return flat.to(kernels::accumulation_type(flat)).view({tokens.size(0), tokens.size(1), vocab});
}

std::vector<std::int32_t> Inference::generate(const std::vector<std::int32_t>& prompt,
                                              std::int64_t count, const Sampling& sampling,
                                              const std::vector<std::int32_t>& stops) {
  require(!prompt.empty(), ExitCode::data, "the prompt has no tokens; give at least one");
  for (const std::int32_t id : prompt)
    require(id >= 0 && id < model_.dimensions.vocab, ExitCode::data,
            "the prompt holds token {}, the model's vocabulary has {}", id,
            model_.dimensions.vocab);
  require(static_cast<std::int64_t>(prompt.size()) + count <= positions_, ExitCode::usage,
          "{} tokens of prompt and {} new ones exceed {} positions", prompt.size(), count,
          positions_);
  const auto layers = static_cast<std::size_t>(model_.dimensions.layers);
  model::KeyValueCache cache{static_cast<std::int64_t>(prompt.size()) + count,
                             std::vector<at::Tensor>(layers), std::vector<at::Tensor>(layers)};
  std::vector<std::int32_t> generated;
  at::Tensor next = at::tensor(std::vector<std::int64_t>(prompt.begin(), prompt.end()));
  std::int64_t position = 0;
  while (static_cast<std::int64_t>(generated.size()) < count) {
    const at::Tensor logits = run(next, 1, position, &cache);
    position += next.size(0);
    const at::Tensor last = logits[-1].to(at::kCPU);
    const std::int64_t known =
        tokenizer_vocab_ > 0 ? std::min(tokenizer_vocab_, last.size(0)) : last.size(0);
    require(
        std::isfinite(last.max().item<double>()), ExitCode::nonfinite,
        "the logits after {} tokens are not finite: weights are not, or the type of computation "
        "is too narrow; try --training.mixed_precision_param float32",
        position);
    at::Tensor choices = last.narrow(0, 0, known);
    if (absent_.defined()) choices = choices.masked_fill(absent_.narrow(0, 0, known), -HUGE_VAL);
    generated.push_back(static_cast<std::int32_t>(pick(choices, sampling, generated.size())));
    if (std::ranges::find(stops, generated.back()) != stops.end()) break;
    next = at::full({1}, generated.back(), at::kLong);
  }
  return generated;
}

}  // namespace tessera::train
