#include "mpi/train/tiny_model.hpp"

#include "tessera/kernels/philox.hpp"
#include "tessera/model/llama.hpp"

namespace tessera::test {

model::Model tiny_model(bool tied, torch::ScalarType dtype, std::int64_t kv_heads) {
  model::LlamaShape shape;
  shape.name = tied ? "tiny tied" : "tiny";
  shape.dim = 20;  // rows that 8 ranks cannot share evenly: short and empty shards
  shape.layers = 6;
  shape.heads = 8;
  shape.kv_heads = kv_heads;
  shape.head_dim = 4;
  shape.hidden = 40;
  shape.vocab = 48;
  shape.tied = tied;
  return model::make_llama(shape, 16, dtype);
}

void UnevenSource::read(std::int64_t sample, std::span<std::int32_t> inputs, std::span<std::int32_t> labels) const {
  const kernels::Philox random{1, 2};
  const auto token = [&](std::size_t t) {
    return static_cast<std::int32_t>(random.block(static_cast<std::uint64_t>(sample) * 64 + t)[0] % 48);
  };
  for (std::size_t t = 0; t < inputs.size(); ++t) {
    inputs[t] = token(t);
    const bool ignored = sample % 7 == 3 || t < static_cast<std::size_t>(sample % 5);
    labels[t] = ignored ? -100 : token(t + 1);
  }
}

config::JobConfig tiny_job(const std::string& dtype) {
  config::JobConfig job;
  job.training.dtype = dtype;
  job.training.mixed_precision_param = dtype == "bfloat16" ? "bfloat16" : "float32";
  job.training.seq_len = 16;
  job.training.global_batch_size = 16;
  job.training.steps = 4;
  job.lr_scheduler.warmup_steps = 1;
  job.activation_checkpoint.mode = "none";
  return job;
}

}  // namespace tessera::test
