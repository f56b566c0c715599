// SPDX-License-Identifier: Apache-2.0
#include "tessera/planner/decision.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace tessera::planner {
namespace {

/// An axis, and what it is called.
struct Degree {
  Knob knob;
  const char* question;
  const char* name;
};

std::string gib(double bytes) { return fmt::format("{:.1f} GiB", bytes / kGiB); }

/// What the rank that needs most stores whatever it computes, and the rest.
std::string parts_of(const Memory& memory) {
  const double state = memory.weights + memory.gradients + memory.optimizer;
  return fmt::format("{} (weights, gradients and moments {})", gib(memory.total()), gib(state));
}

class Walk {
 public:
  Walk(const VariantSpace& space, const Machine& machine, const Stack& stack)
      : space_(space), machine_(machine), stack_(stack) {}

  Decision run() {
    one_gpu();
    all_gpus();
    data_parallelism();
    if (space_.own_work().model.mixture) axis({Knob::ep, "Does expert parallelism pay?", "ep"});
    axis({Knob::tp,
          machine_.host ? "Does tensor parallelism pay, within the node?"
                        : "Does tensor parallelism pay, within an NVLink domain?",
          "tp"});
    axis({Knob::pp, "Does a pipeline pay?", "pp"});
    axis({Knob::cp, "Does context parallelism pay?", "cp"});
    if (out_.choice) {
      recomputation();
      float8();
    }
    return std::move(out_);
  }

 private:
  Question& ask(std::string text, bool yes, std::string why) {
    out_.questions.push_back({std::move(text), yes, std::move(why), std::nullopt});
    return out_.questions.back();
  }

  /// One sequence a microbatch, everything recomputed and sharded, no axis but data parallelism.
  Workload lean() const {
    Variant variant = space_.own();
    for (const Knob knob :
         {Knob::tp, Knob::cp, Knob::ep, Knob::pp, Knob::replicate, Knob::microbatch})
      variant[knob] = 1;
    variant[Knob::etp] = variant[Knob::schedule] = variant[Knob::split] = 0;
    variant[Knob::recompute] = space_.most_recomputed();
    Workload work = space_.without_lists(variant);
    work.reshard = true;
    work.unsharded_gradients = false;
    work.pipeline = {};
    const Architecture& model = work.model;
    const double mixtures = static_cast<double>(model.mixture_layers());
    work.pipeline.stages.push_back(
        {static_cast<double>(model.layers) - mixtures, mixtures, true, true, model.predictors});
    return work;
  }

  void hold(std::string text, const Workload& work) {
    const Memory memory = memory_of(work, stack_);
    ask(std::move(text), fits(memory, machine_),
        fmt::format("with one sequence and full recomputation it takes {} of {}", parts_of(memory),
                    gib(machine_.memory_bytes)));
  }

  void one_gpu() {
    Workload work = lean();
    work.gpus = work.fsdp = work.replicate = 1;
    hold(fmt::format("Does one {} hold the job?", unit_of(machine_)), work);
  }

  void all_gpus() {
    const Workload work = lean();
    hold(fmt::format("Do all {}s, with {}?", unit_of(machine_),
                     work.distributed_optimizer ? "data parallelism and a sharded optimizer"
                                                : "fully sharded data parallelism alone"),
         work);
  }

  void data_parallelism() {
    const std::int64_t sequences = space_.sequences(), gpus = space_.own_work().gpus;
    const bool divides = sequences % gpus == 0;
    Question& question =
        ask("Is the batch large enough for data parallelism alone?", divides,
            fmt::format("{} sequences a step for {} {}s", sequences, gpus, unit_of(machine_)));
    if (sequences < gpus)
      question.why += fmt::format(", so {} must share each", (gpus + sequences - 1) / sequences);
    if (!divides) return;
    question.best = best_with({});
    question.why += question.best ? "; " + text_of(*question.best) : "; no variant fits";
    take(question.best);
  }

  void axis(const Degree& axis) {
    opened_.push_back(axis.knob);
    const std::optional<Option> best = best_with(axis.knob);
    const std::optional<Option> before = out_.choice;
    const bool yes = best && (!before || faster(*best, *before));
    std::string why = "no variant fits";
    if (best) {
      why = text_of(*best);
      if (before)
        why += fmt::format(", {:+.1f} % ({})", 100 * gain(*before, *best),
                           reason(before->price, best->price));
    }
    ask(axis.question, yes, std::move(why)).best = best;
    if (yes) take(best);
  }

  void recomputation() {
    const Option& choice = *out_.choice;
    Variant variant = choice.variant;
    const std::string now = space_.text_of(Knob::recompute, variant);
    const bool none = space_.workload(variant).recompute == Recompute::none;
    variant[Knob::recompute] = none ? space_.most_recomputed() : everything_kept(variant);
    const Memory memory = memory_of(space_.workload(variant), stack_);
    std::string why =
        fmt::format("{} takes {}; {} would take {}", now, gib(choice.price.memory.total()),
                    space_.text_of(Knob::recompute, variant), gib(memory.total()));
    if (fits(memory, machine_)) {
      const Price other = price(space_.workload(variant), machine_, stack_);
      why += fmt::format(" and {:+.1f} % time",
                         100 * (other.step_seconds / choice.price.step_seconds - 1));
    }
    ask("Must something be recomputed?", !none, std::move(why));
  }

  int everything_kept(Variant variant) const {
    for (const int value : space_.values(Knob::recompute)) {
      variant[Knob::recompute] = value;
      if (space_.without_lists(variant).recompute == Recompute::none) return value;
    }
    return variant[Knob::recompute];
  }

  void float8() {
    constexpr const char* kText = "Is float8 faster?";
    Workload work = space_.workload(out_.choice->variant);
    if (format_of(work.precision) == Format::fp8) {
      ask(kText, true, "the job uses it");
      return;
    }
    if (machine_.ceiling_of(Format::fp8) <= 0) {
      ask(kText, false, machine_.name + " has no float8 products");
      return;
    }
    work.precision = Precision::fp8_torchao;
    work.async_tp = false;  // the scales need all tokens at once
    const double gain =
        out_.choice->price.step_seconds / price(work, machine_, stack_).step_seconds - 1;
    ask(kText, gain > 0,
        fmt::format("{:+.1f} % tokens/s with all linear layers of blocks", 100 * gain));
  }

  /// Of the variants whose axes are open: `must` is used, those after it are not.
  std::optional<Option> best_with(std::optional<Knob> must) const {
    VariantSpace part = space_;
    for (const Knob knob : {Knob::ep, Knob::tp, Knob::pp, Knob::cp}) {
      std::vector<int> values = space_.values(knob);
      const bool open = std::ranges::find(opened_, knob) != opened_.end();
      std::erase_if(
          values, [&](int value) { return (knob == must && value == 1) || (!open && value != 1); });
      if (values.empty()) return std::nullopt;
      part.restrict_to(knob, std::move(values));
    }
    SearchResult found = search(part, machine_, stack_, 1);
    if (found.best.empty()) return std::nullopt;
    return std::move(found.best.front());
  }

  std::string text_of(const Option& option) const {
    std::string mesh;
    const Variant& v = option.variant;
    for (const Degree& axis : {Degree{Knob::pp, "", "pp"},
                               {Knob::replicate, "", "replicas"},
                               {Knob::tp, "", "tp"},
                               {Knob::cp, "", "cp"},
                               {Knob::ep, "", "ep"}})
      if (v[axis.knob] > 1) mesh += fmt::format("{} {} x ", axis.name, v[axis.knob]);
    const Workload work = space_.without_lists(v);
    return fmt::format("the best, {}{} {}, has {:.0f} tokens/s a {}, {}", mesh,
                       work.distributed_optimizer ? "dp" : "fsdp",
                       work.distributed_optimizer ? work.data_parallel() : work.fsdp / work.cp,
                       option.price.tokens_per_second_per_gpu, unit_of(machine_),
                       gib(option.price.memory.total()));
  }

  static double gain(const Option& from, const Option& to) {
    return from.price.step_seconds / to.price.step_seconds - 1;
  }

  /// As the search prefers.
  bool faster(const Option& a, const Option& b) const {
    if (a.price.step_seconds != b.price.step_seconds)
      return a.price.step_seconds < b.price.step_seconds;
    return space_.turned(a.variant) < space_.turned(b.variant);
  }

  void take(const std::optional<Option>& option) { out_.choice = option; }

  const VariantSpace& space_;
  const Machine& machine_;
  const Stack& stack_;
  std::vector<Knob> opened_;
  Decision out_;
};

}  // namespace

Decision decide(const VariantSpace& space, const Machine& machine, const Stack& stack) {
  return Walk(space, machine, stack).run();
}

}  // namespace tessera::planner
