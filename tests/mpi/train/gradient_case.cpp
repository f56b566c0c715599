#include "mpi/train/gradient_case.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <tuple>

#include "mpi/train/tiny_model.hpp"
#include "tessera/mesh/device_mesh.hpp"
#include "tessera/train/trainer.hpp"

namespace tessera::test {
namespace {

/// "none", "full", "memory_budget", or an option of mode selective: "2", "op".
void set_recompute(config::ActivationCheckpoint& to, const std::string& how) {
  const bool mode = how == "none" || how == "full" || how == "memory_budget";
  to.mode = mode ? how : "selective";
  if (!mode) to.selective_ac_option = how;
}

config::JobConfig job_of(const GradientCase& row) {
  config::JobConfig job = tiny_job(row.dtype);
  job.parallelism.pipeline_parallel_schedule = row.schedule;
  job.parallelism.pipeline_parallel_stage_map = row.stage_map;
  job.parallelism.pipeline_parallel_schedule_csv = row.csv;
  job.parallelism.pipeline_parallel_degree = row.pp;
  job.parallelism.pipeline_parallel_split = row.split;
  job.parallelism.pipeline_parallel_split_points = row.points;
  job.parallelism.fsdp_reshard_after_forward = row.reshard;
  job.parallelism.reshard_rules = row.rules;
  job.parallelism.disable_sequence_parallel = !row.sequence_parallel;
  job.parallelism.disable_loss_parallel = !row.loss_parallel;
  job.parallelism.enable_async_tensor_parallel = row.async_tensor_parallel;
  job.parallelism.async_tensor_parallel_chunks = 3;  // does not divide the tokens
  job.parallelism.fsdp_gradient_accumulation = row.adding;
  const int dp = row.dp * row.replicate;
  job.training.local_batch_size = job.training.global_batch_size / dp / row.accumulation;
  job.parallelism.pipeline_parallel_microbatch_size = std::max<std::int64_t>(1, job.training.local_batch_size / 4);
  set_recompute(job.activation_checkpoint, row.recompute);
  job.debug.deterministic = row.deterministic;
  job.parallelism.context_parallel_rotate_method = row.rotate;
  if (!row.balanced) job.parallelism.context_parallel_load_balancer.reset();
  job.training.document_mask = row.documents;
  return job;
}

/// Whole gradients by name, from a run of one rank without communication.
struct Reference {
  std::map<std::string, torch::Tensor> gradients;
  double loss = 0;
};

model::Model model_of(const GradientCase& row) {
  if (!row.family.empty()) return tiny_family(row.family, row.dtype == "float64" ? torch::kFloat64 : torch::kFloat32);
  return tiny_model(row.tied, row.dtype == "float64" ? torch::kFloat64 : torch::kFloat32, row.kv_heads);
}

/// Balance losses are means over microbatches of what is no sum over tokens: the reference has the same microbatches.
int accumulation_of_reference(const GradientCase& row) {
  if (row.family != "qwen3_moe") return 1;
  const config::Training training = job_of(row).training;
  const std::int64_t rows =
      row.pp > 1 ? job_of(row).parallelism.pipeline_parallel_microbatch_size : training.local_batch_size;
  return static_cast<int>(training.global_batch_size / rows);
}

mesh::Layout layout_of(const GradientCase& row, int world) {
  mesh::Degrees degrees{row.pp, row.replicate, row.dp, row.cp, row.tp};
  degrees.ep = row.ep;
  degrees.etp = row.etp;
  return mesh::Layout::resolve(degrees, world);
}

Reference compute_reference(const GradientCase& of) {
  GradientCase row;
  row.tied = of.tied;
  row.dtype = of.dtype;
  row.kv_heads = of.kv_heads;
  row.family = of.family;
  row.accumulation = accumulation_of_reference(of);
  row.documents = of.documents;
  const config::JobConfig job = job_of(row);
  const mesh::Layout layout = mesh::Layout::resolve({1, 1, 1, 1, 1}, 1);
  mesh::DeviceMesh mesh(layout, 0);
  const model::Model model = model_of(row);
  const UnevenSource source;
  train::Trainer trainer(job, model, mesh, train::BatchPlan::make(job, layout), source, torch::kCPU);
  trainer.stages().initialize(7);
  Reference reference;
  reference.loss = trainer.compute_gradients(0, 0, nullptr);
  for (const auto& ref : trainer.stages().params())
    reference.gradients[ref.param->spec->fqn] = ref.param->gradient.to(torch::kFloat64).clone();
  return reference;
}

const Reference& reference_for(const GradientCase& row) {
  static std::map<std::tuple<bool, std::string, int, std::string, int, bool>, Reference> known;
  const auto key =
      std::make_tuple(row.tied, row.dtype, row.kv_heads, row.family, accumulation_of_reference(row), row.documents);
  if (!known.contains(key)) known[key] = compute_reference(row);
  return known[key];
}

/// Squares of difference and reference over the boxes of all ranks, two numbers for each parameter of the model.
std::vector<double> squares(train::Trainer& trainer, const model::Model& model, const Reference& reference) {
  std::vector<double> sums(2 * model.params.size(), 0);
  for (const auto& ref : trainer.stages().params()) {
    if (!ref.counted) continue;
    const TensorSlice box = ref.param->slice("");
    torch::Tensor expected = reference.gradients.at(ref.param->spec->fqn);
    for (std::size_t d = 0; d < box.offset.size(); ++d)
      expected = expected.narrow(static_cast<std::int64_t>(d), box.offset[d], box.extent[d]);
    const auto index = static_cast<std::size_t>(ref.param->spec - model.params.data());
    const torch::Tensor difference = ref.param->gradient.to(torch::kFloat64) - expected;
    sums[2 * index] += difference.square().sum().item<double>();
    sums[2 * index + 1] += expected.square().sum().item<double>();
  }
  return sums;
}

void add_pipelined(std::vector<GradientCase>& rows, const GradientCase& row) {
  if (row.pp == 1) {
    rows.push_back(row);
    return;
  }
  for (const char* schedule : {"1F1B", "GPipe"}) {
    rows.push_back(row);
    rows.back().schedule = schedule;
  }
}

}  // namespace

std::string GradientCase::name() const {
  std::string name = fmt::format("pp{} r{} dp{} cp{} tp{} {}", pp, replicate, dp, cp, tp, dtype);
  const auto add = [&name](bool differs, const std::string& what) { name += differs ? " " + what : ""; };
  add(!family.empty(), fmt::format("{} ep{} etp{}", family, ep, etp));
  add(pp > 1, schedule + " cuts=" + (points.empty() ? split : fmt::format("{}", fmt::join(points, ","))));
  add(stage_map != "default", "on " + stage_map);
  add(reshard != "default", "reshard=" + reshard);
  add(!rules.empty(), "with rules");
  add(accumulation > 1, fmt::format("accumulate={} {}", accumulation, adding));
  add(tied, "tied");
  add(kv_heads != 8, fmt::format("kv{}", kv_heads));
  add(!sequence_parallel, "no-sequence-parallel");
  add(!loss_parallel, "no-loss-parallel");
  add(async_tensor_parallel, "async-tp");
  add(cp > 1, rotate + (balanced ? " balanced" : " in-order"));
  add(documents, "documents");
  add(recompute != "none", "recompute=" + recompute);
  add(deterministic, "deterministic");
  add(backend == comm::Backend::strict, "strict");
  return name;
}

GradientError compare_gradients(comm::World& world, const GradientCase& row) {
  const Reference& reference = reference_for(row);
  const config::JobConfig job = job_of(row);
  const mesh::Layout layout = layout_of(row, world.size());
  mesh::DeviceMesh mesh(world, layout, row.backend);
  const model::Model model = model_of(row);
  const UnevenSource source;
  train::Trainer trainer(job, model, mesh, train::BatchPlan::make(job, layout), source, torch::kCPU);
  trainer.stages().initialize(7);
  const double loss = trainer.compute_gradients(0, 0, nullptr);
  std::vector<double> sums = squares(trainer, model, reference);
  mesh.control().all_reduce({sums.data(), static_cast<std::int64_t>(sums.size()), DType::f64}).wait();
  GradientError error;
  error.loss = std::abs(loss - reference.loss) / reference.loss;
  for (std::size_t i = 0; i < model.params.size(); ++i) {
    const double relative = std::sqrt(sums[2 * i] / sums[2 * i + 1]);
    if (!(relative <= error.worst)) error = {relative, model.params[i].fqn, error.loss};
  }
  return error;
}

std::vector<GradientCase> gradient_cases(int world) {
  std::vector<GradientCase> rows;
  for (int pp = 1; pp <= world; pp *= 2)
    for (int tp = 1; pp * tp <= world; tp *= 2)
      for (const char* reshard : {"default", "always", "never"})
        for (const bool tied : {false, true})
          for (const int accumulation : {1, 2}) {
            GradientCase row;
            row.pp = pp;
            row.tp = tp;
            row.dp = world / pp / tp;
            row.reshard = reshard;
            row.tied = tied;
            row.accumulation = accumulation;
            add_pipelined(rows, row);
          }
  return rows;
}

std::vector<GradientCase> sub_layer_cases(int world) {
  const std::vector<std::vector<std::string>> cuts{
      {"layers.2.attention.sdpa"},
      {"layers.0.attention.wqkv"},
      {"layers.5.feed_forward.w13"},
      {"output"},
      {"layers.1.attention.wo", "layers.2.feed_forward.w2", "layers.3.ffn_norm"},
      {"layers.1.attention.wqkv", "layers.1.attention.sdpa", "layers.1.attention.wo"},
      {"layers.0", "layers.0.attention.wo", "norm"}};
  std::vector<GradientCase> rows;
  for (int pp = 2; pp <= world; pp *= 2)
    for (int tp = 1; pp * tp <= world; tp *= 2) {
      GradientCase row;
      row.pp = pp;
      row.tp = tp;
      row.dp = world / pp / tp;
      row.tied = tp == 1;
      for (const char* split : {"balanced", "balanced_sublayer", "measured"}) {
        row.split = split;
        add_pipelined(rows, row);
      }
      for (const auto& points : cuts) {
        if (static_cast<int>(points.size()) + 1 != pp) continue;
        row.points = points;
        row.recompute = row.recompute == "none" ? "full" : "none";
        add_pipelined(rows, row);
      }
    }
  return rows;
}

std::vector<GradientCase> policy_cases(int world) {
  std::vector<GradientCase> rows;
  for (int replicate = 1; replicate <= world; replicate *= 2)
    for (int pp = 1; replicate * pp <= world && pp <= 2; pp *= 2) {
      GradientCase row;
      row.replicate = replicate;
      row.pp = pp;
      row.dp = world / replicate / pp;
      row.tied = replicate == 2;
      row.accumulation = 2;
      for (const char* adding : {"unsharded", "sharded"}) {
        row.adding = adding;
        for (const char* policy : {"last_layer", "auto", "2"}) {
          if (std::string(policy) == "2" && row.dp % 2 != 0) continue;
          row.reshard = policy;
          add_pipelined(rows, row);
        }
        row.rules = {{"layers\\.[0-3]$", "never"}, {"layers", "always"}};
        add_pipelined(rows, row);
        row.rules.clear();
      }
    }
  return rows;
}

std::vector<GradientCase> schedule_cases(int world) {
  std::vector<GradientCase> rows;
  const auto add = [&rows](GradientCase row, const char* schedule) {
    row.schedule = schedule;
    if (2 * row.pp > 8) row.split = "balanced_sublayer";  // more stages than layers fill
    rows.push_back(row);
    row.tied = true;
    row.recompute = "full";
    rows.push_back(row);
    row.accumulation = 2;
    row.split = "balanced_sublayer";
    row.recompute = "none";
    rows.push_back(row);
  };
  for (int pp = 2; pp <= world; pp *= 2)
    for (int tp = 1; tp <= 2 && pp * tp <= world; tp *= 2) {
      GradientCase row;
      row.pp = pp;
      row.tp = tp;
      row.dp = world / pp / tp;
      for (const char* schedule :
           {"Interleaved1F1B", "LoopedBFS", "ZBH1", "InterleavedZeroBubble", "ZBVZeroBubble", "DualPipeV"})
        add(row, schedule);
      if (pp > 4) continue;
      row.stage_map = pp == 2 ? "1,0" : "2,0,3,1";
      add(row, "1F1B");
      add(row, "ZBH1");
      row.stage_map = pp == 2 ? "1,0,0,1" : "2,0,3,1,1,3,0,2";
      add(row, "ZBVZeroBubble");
      row.stage_map = pp == 2 ? "1,0,1,0" : "2,0,3,1,2,0,3,1";
      add(row, "InterleavedZeroBubble");
    }
  return rows;
}

std::vector<GradientCase> mixed_schedule_cases(int world) {
  std::vector<GradientCase> rows;
  for (const char* schedule : {"ZBH1", "Interleaved1F1B", "InterleavedZeroBubble", "ZBVZeroBubble", "DualPipeV"})
    for (const char* family : {"", "deepseek_v3", "qwen3_moe", "gpt_oss"})
      for (int inner = 1; 2 * inner <= world && inner <= 2; ++inner) {
        GradientCase row;
        row.schedule = schedule;
        row.family = family;
        row.pp = 2;
        row.split = "balanced";
        row.dp = world / 2;
        row.ep = row.family.empty() ? 1 : inner;
        row.deterministic = inner == 2;
        rows.push_back(row);
        if (inner == 1) continue;
        row.dp /= 2;
        row.cp = 2;
        row.ep = 1;
        row.deterministic = false;
        rows.push_back(row);
        row.cp = 1;
        row.tp = 2;
        row.async_tensor_parallel = row.family.empty();
        row.recompute = "full";
        rows.push_back(row);
      }
  return rows;
}

std::vector<GradientCase> tensor_cases(int world) {
  std::vector<GradientCase> rows;
  for (int tp = 2; tp <= world; tp *= 2)
    for (int pp = 1; tp * pp <= world && pp <= 2; pp *= 2)
      for (const int kv_heads : {8, 4, 2, 1}) {
        GradientCase row;
        row.tp = tp;
        row.pp = pp;
        row.dp = world / tp / pp;
        row.kv_heads = kv_heads;
        row.tied = kv_heads == 4;
        if (pp == 2) row.split = "balanced_sublayer";
        if (kv_heads < 8) add_pipelined(rows, row);
        row.sequence_parallel = false;
        add_pipelined(rows, row);
        row.loss_parallel = false;
        add_pipelined(rows, row);
        row.sequence_parallel = true;
        add_pipelined(rows, row);
        row.async_tensor_parallel = true;
        row.recompute = kv_heads == 8 ? "op" : "none";
        add_pipelined(rows, row);
        row.deterministic = true;
        row.recompute = "full";
        add_pipelined(rows, row);
      }
  return rows;
}

std::vector<GradientCase> recompute_cases(int world) {
  std::vector<GradientCase> rows;
  for (int pp = 1; pp <= world && pp <= 4; pp *= 2)
    for (int tp = 1; pp * tp <= world && tp <= 4; tp *= 2)
      for (const char* how : {"full", "op", "memory_budget", "2"}) {
        GradientCase row;
        row.pp = pp;
        row.tp = tp;
        row.dp = world / pp / tp;
        row.recompute = how;
        row.tied = tp == 2;
        row.reshard = tp == 4 ? "always" : "default";
        if (pp == 2) row.points = {"layers.2.attention.wqkv"};
        if (pp == 4) row.split = "balanced_sublayer";
        add_pipelined(rows, row);
        row.sequence_parallel = false;
        if (tp == 2) add_pipelined(rows, row);
      }
  return rows;
}

std::vector<GradientCase> context_cases(int world) {
  std::vector<GradientCase> rows;
  for (int cp = 1; cp <= world; cp *= 2)
    for (int pp = 1; cp * pp <= world && pp <= 2; pp *= 2)
      for (int tp = 1; cp * pp * tp <= world && tp <= 2; tp *= 2)
        for (const bool documents : {false, true})
          for (const char* rotate : {"allgather", "alltoall"})
            for (const bool balanced : {true, false}) {
              if (cp == 1 && (!documents || !balanced || std::string(rotate) == "alltoall")) continue;
              GradientCase row;
              row.pp = pp;
              row.cp = cp;
              row.tp = tp;
              row.dp = world / pp / cp / tp;
              row.documents = documents;
              row.rotate = rotate;
              row.balanced = balanced;
              row.kv_heads = documents ? 2 : 8;
              row.tied = balanced;
              row.accumulation = balanced ? 1 : 2;
              row.recompute = balanced == documents ? "none" : "full";
              if (pp == 2 && documents) row.points = {"layers.2.attention.sdpa"};
              add_pipelined(rows, row);
            }
  return rows;
}

namespace {

/// Losses, loads and biases of some steps; the biases as this rank's stages have them, HUGE_VAL for those elsewhere.
std::vector<double> steps_of(const GradientCase& row, mesh::DeviceMesh& mesh) {
  const config::JobConfig job = job_of(row);
  const model::Model model = model_of(row);
  const UnevenSource source;
  train::Trainer trainer(job, model, mesh, train::BatchPlan::make(job, mesh.layout()), source, torch::kCPU);
  trainer.stages().initialize(7);
  std::vector<double> figures;
  for (int step = 0; step < 3; ++step) {
    const train::StepOutcome outcome = trainer.step(step, 0);
    figures.insert(figures.end(), {outcome.loss, outcome.grad_norm, outcome.balance_loss});
    for (const train::ExpertLoad& load : outcome.loads)
      figures.insert(figures.end(), {load.max_over_mean, load.entropy});
  }
  const std::vector<torch::Tensor> buffers = trainer.stages().holdings().buffers;
  for (std::size_t i = 0; i < model.buffers.size(); ++i) {
    const torch::Tensor& buffer = buffers[i];
    for (std::int64_t e = 0; e < model.buffers[i].shape[0]; ++e)
      figures.push_back(buffer.defined() ? buffer[e].item<double>() : HUGE_VAL);
  }
  return figures;
}

}  // namespace

double compare_steps(comm::World& world, const GradientCase& row) {
  GradientCase alone;
  alone.family = row.family;
  alone.dtype = row.dtype;
  alone.accumulation = accumulation_of_reference(row);
  mesh::DeviceMesh one(mesh::Layout::resolve({1, 1, 1, 1, 1}, 1), 0);
  mesh::DeviceMesh mesh(world, layout_of(row, world.size()), row.backend);
  const std::vector<double> expected = steps_of(alone, one), figures = steps_of(row, mesh);
  double worst = figures.size() == expected.size() ? 0 : HUGE_VAL;
  for (std::size_t i = 0; i < std::min(figures.size(), expected.size()); ++i) {
    if (figures[i] == HUGE_VAL) continue;
    const double relative = std::abs(figures[i] - expected[i]) / std::max(std::abs(expected[i]), 1e-3);
    worst = std::isnan(relative) ? HUGE_VAL : std::max(worst, relative);
  }
  return comm::all_reduce_scalar(mesh.control(), worst, comm::Op::max);
}

std::vector<GradientCase> all_cases(int world) {
  std::vector<GradientCase> rows;
  for (const auto make : {gradient_cases, sub_layer_cases, schedule_cases, mixed_schedule_cases, policy_cases, tensor_cases, recompute_cases, context_cases, mixture_cases})
    std::ranges::move(make(world), std::back_inserter(rows));
  return rows;
}

}  // namespace tessera::test
