// SPDX-License-Identifier: Apache-2.0
#include "tessera/train/trainer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "loss_sums.hpp"
#include "measured_split.hpp"
#include "passes.hpp"
#include "tessera/comm/device.hpp"
#include "tessera/train/setup.hpp"

namespace tessera::train {

using mesh::Axis;

Reader reader_of(mesh::DeviceMesh& mesh, const schedule::StageMap& map) {
  const schedule::PipelineRank rank = parallel::pipeline_rank(mesh);
  return {mesh.layout().dp_rank(mesh.rank()), mesh.coord(Axis::cp),
          map.rank_of(map.first()) == rank, map.rank_of(map.last()) == rank};
}

namespace {

/// Seconds for which this rank has waited for others so far.
double seconds_waited(const mesh::DeviceMesh& mesh) {
  double seconds = 0;
  mesh.visit([&](const comm::Communicator& each) { seconds += each.traffic().exposed_seconds; });
  return seconds;
}

}  // namespace

Trainer::Trainer(const plan::JobPlan& plan, const model::Model& model, mesh::DeviceMesh& mesh,
                 const data::SampleSource& source, at::Device device)
    : plan_(plan),
      model_(model),
      mesh_(mesh),
      source_(source),
      device_(device),
      memory_peak_(device),
      microbatches_(plan.microbatches),
      ranges_(stage_ranges_of(pipeline(), model, mesh, stage_options_of(plan, device))),
      stages_(model, ranges_, pipeline().map, mesh, stage_options_of(plan, device)),
      weights_(plan.optimizer, stages_),
      batches_(source, reader_of(mesh, pipeline().map), model.dimensions.vocab,
               plan.data.read_ahead, device),
      timer_(&metrics::monotonic_seconds, [&mesh] { return seconds_waited(mesh); }),
      passes_(std::make_unique<Passes>(plan, mesh, stages_, timer_, device)) {
  stages_.on_high_water([this] { memory_peak_.look([this] { return known_memory(); }); });
}

Trainer::~Trainer() = default;

void Trainer::set_microbatches(const plan::MicrobatchPlan& microbatches) {
  microbatches_ = microbatches;
  stages_.set_batch(batch_plan().microbatch_rows);
  passes_->forget_graph();
}

void Trainer::compute() {
  timer_.reset();
  std::optional<metrics::PhaseTimer::Scope> phase(std::in_place, timer_, metrics::Phase::data);
  comm::Watchdog::at("", "reading data");
  const plan::BatchPlan& sizes = batch_plan();
  const std::int64_t end = first_sample(plan_.run.steps);
  SentBatch sent = batches_.take(sizes, state_.samples, end);
  const Batch batch = batch_of(sent, sizes);
  found_.rows = std::move(sent.rows);
  // Only the last stage reads labels; of its ranks, those of tp read the same.
  const bool counts = mesh_.coord(Axis::tp) == 0;
  const std::int64_t valid =
      comm::all_reduce_scalar(mesh_.control(), counts ? batch.valid_tokens : std::int64_t{0});
  phase.reset();

  const double scale = valid > 0 ? 1.0 / static_cast<double>(valid) : 0.0;
  found_.token_losses.clear();
  found_.token_losses = passes_->run(batch, microbatches_, scale);
  found_.losses = kernels::HostCopy(joined(found_.token_losses));
  phase.emplace(timer_, metrics::Phase::data);
  comm::Watchdog::at("", "reading data");
  batches_.send_next(sizes, state_.samples + sizes.global_batch, end);
}

void Trainer::reduce_loss(StepOutcome& outcome, const Vote& vote) {
  const auto phase = timer_.time(metrics::Phase::communication);
  comm::Watchdog::at("", "reducing the loss");
  // Exact sums in fixed point, so that the reported loss has the same bits on every mesh whose
  // token losses have.
  LossSums sums(source_);
  if (mesh_.coord(Axis::tp) == 0)
    sums.add(found_.rows, batch_plan(), found_.losses.wait(), first_own_sample());
  outcome.votes = sums.reduce(mesh_.control(), vote ? vote() : StepVotes());
  outcome.loss = sums.tokens() > 0 ? sums.loss() : 0.0;
  outcome.source_losses = sums.parts();
}

/// The host needs loss and norm before it may issue the update: they decide whether there is one.
parallel::GradientNorm Trainer::wait_for_gradients(StepOutcome& outcome, const Vote& vote) {
  take_expert_figures();
  const parallel::SquaredGradients squares(stages_.trained_params(),
                                           plan_.arithmetic.deterministic);
  {
    const auto phase = timer_.time(metrics::Phase::device);
    squares.wait();
    comm::collect_device_waits();
  }
  reduce_loss(outcome, vote);
  comm::Watchdog::at("", "gradient norm and optimizer");
  return squares.norm(mesh_.control());
}

StepOutcome Trainer::apply(const Vote& vote) {
  StepOutcome outcome;
  outcome.lr = weights_.rate(state_.step - state_.schedule_start);
  const auto phase = timer_.time(metrics::Phase::optimizer);
  comm::Watchdog::at("", "gradient norm and optimizer");
  const parallel::GradientNorm norm = wait_for_gradients(outcome, vote);
  outcome.grad_norm = norm.norm;
  outcome.nonfinite = norm.first_nonfinite.empty() ? "the loss alone" : norm.first_nonfinite;
  outcome.skipped = !std::isfinite(norm.norm) || !std::isfinite(outcome.loss);
  if (outcome.skipped) outcome.nonfinite += nonfinite_samples();
  stages_.end_step();
  if (outcome.skipped)
    ++state_.skipped_steps;
  else
    weights_.apply(outcome.lr, norm.norm, ++state_.optimizer_steps);
  balance(outcome);
  state_.samples += batch_plan().global_batch;
  ++state_.step;
  return outcome;
}

parallel::MemoryKinds Trainer::known_memory() const {
  parallel::MemoryKinds kinds = stages_.memory();
  kinds.moments += weights_.moment_bytes(device_);
  return kinds;
}

std::int64_t Trainer::first_own_sample() const {
  return state_.samples + mesh_.layout().dp_rank(mesh_.rank()) * batch_plan().rows;
}

std::string Trainer::whereabouts() const {
  switch (timer_.current()) {
    case metrics::Phase::data:
      return "reading data";
    case metrics::Phase::forward:
    case metrics::Phase::backward:
      return fmt::format("forward and backward, microbatch {} of {}",
                         passes_->current_microbatch() + 1, batch_plan().microbatches_a_step());
    case metrics::Phase::communication:
      return "reducing gradients and the loss";
    case metrics::Phase::device:
      return "waiting for the GPU";
    case metrics::Phase::optimizer:
      return "gradient norm and optimizer";
    default:
      return "between steps: checkpoint, validation or metrics";
  }
}

/// The first microbatch of the job whose loss is not finite; nothing where the losses are, and only
/// gradients overflow.
std::string Trainer::nonfinite_samples() {
  constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();
  const std::int64_t begin = first_own_sample();
  const auto bad = std::ranges::find_if(found_.token_losses, [](const at::Tensor& losses) {
    return !losses.isfinite().all().item<bool>();
  });
  const std::int64_t here =
      bad == found_.token_losses.end()
          ? kNone
          : begin + (bad - found_.token_losses.begin()) * batch_plan().microbatch_rows;
  const std::int64_t first = comm::all_reduce_scalar(mesh_.control(), here, comm::Op::min);
  if (first == kNone) return "";
  return fmt::format("; the loss of samples {} to {}", first,
                     first + batch_plan().microbatch_rows - 1);
}

/// What the host is to learn of mixtures, in one copy.
void Trainer::take_expert_figures() {
  if (model_.mixtures.empty()) return;
  found_.experts = stages_.take_expert_figures();
  std::vector<at::Tensor> values;
  for (const at::Tensor& loss : found_.experts.losses) values.push_back(loss.view({1}));
  for (const at::Tensor& load : found_.experts.loads)
    if (load.defined()) values.push_back(load.to(at::kDouble));
  found_.of_experts = kernels::HostCopy(joined(values));
}

/// Evens out the experts' loads, which every rank then learns of.
void Trainer::balance(StepOutcome& outcome) {
  if (model_.mixtures.empty()) return;
  const std::vector<at::Tensor>& loads = found_.experts.loads;
  if (!outcome.skipped) stages_.balance_experts(loads);
  std::vector<double> figures(1 + 2 * loads.size(), 0);
  const at::Tensor& values = found_.of_experts.wait();
  std::int64_t at = std::ssize(found_.experts.losses);
  for (std::int64_t i = 0; i < at; ++i) figures[0] += values.const_data_ptr<double>()[i];
  const bool speaks = mesh_.coord(Axis::dp_replicate) == 0 && mesh_.coord(Axis::dp_shard) == 0 &&
                      mesh_.coord(Axis::cp) == 0 && mesh_.coord(Axis::tp) == 0;
  for (std::size_t m = 0; m < loads.size(); ++m) {
    if (!loads[m].defined()) continue;
    const std::int64_t experts = loads[m].size(0);
    const at::Tensor load = values.narrow(0, at, experts), share = load / load.sum();
    at += experts;
    if (!speaks) continue;
    figures[1 + 2 * m] = share.max().item<double>() * static_cast<double>(experts);
    figures[2 + 2 * m] = -at::xlogy(share, share).sum().item<double>() /
                         std::log(std::max(static_cast<double>(experts), 2.0));
  }
  mesh_.control()
      .all_reduce({figures.data(), static_cast<std::int64_t>(figures.size()), DType::f64})
      .wait();
  outcome.balance_loss = figures[0];
  for (std::size_t m = 0; m < loads.size(); ++m)
    outcome.loads.push_back({model_.mixtures[m].name, figures[1 + 2 * m], figures[2 + 2 * m]});
}

}  // namespace tessera::train
