// SPDX-License-Identifier: Apache-2.0
#include "tessera/planner/stack.hpp"

#include <algorithm>
#include <array>

#include "facts_file.hpp"
#include "tessera/base/error.hpp"

namespace tessera::planner {
namespace {

using config::TomlEntry;

template <class T>
struct Key {
  const char* name;
  T Stack::*value;
};

constexpr std::array<Key<double>, 13> kNumbers{
    {{"loss_traffic_bytes", &Stack::loss_traffic_bytes},
     {"loss_bytes", &Stack::loss_bytes},
     {"loss_copies", &Stack::loss_copies},
     {"gradient_bytes", &Stack::gradient_bytes},
     {"reduce_bytes", &Stack::reduce_bytes},
     {"gather_bytes", &Stack::gather_bytes},
     {"optimizer_traffic_bytes", &Stack::optimizer_traffic_bytes},
     {"expert_bias_bytes", &Stack::expert_bias_bytes},
     {"sum_traffic_bytes", &Stack::sum_traffic_bytes},
     {"optimizer_bytes", &Stack::optimizer_bytes},
     {"working_factor", &Stack::working_factor},
     {"reductions_behind", &Stack::reductions_behind},
     {"fsdp_copies", &Stack::fsdp_copies}}};
constexpr std::array<Key<bool>, 14> kTruths{
    {{"tp_overlap", &Stack::tp_overlap},
     {"distributed_optimizer", &Stack::distributed_optimizer},
     {"recast_weights", &Stack::recast_weights},
     {"early_stop", &Stack::early_stop},
     {"frees_gradients", &Stack::frees_gradients},
     {"fused_loss", &Stack::fused_loss},
     {"loss_beside_blocks", &Stack::loss_beside_blocks},
     {"offload", &Stack::offload},
     {"bfloat16_state", &Stack::bfloat16_state},
     {"graphs", &Stack::graphs},
     {"op_remakes_products", &Stack::op_remakes_products},
     {"keeps_gathered", &Stack::keeps_gathered},
     {"keeps_expert_outputs", &Stack::keeps_expert_outputs},
     {"defer_head_wgrad", &Stack::defer_head_wgrad}}};
constexpr std::array<Key<Launches>, 3> kLaunches{{{"kernels", &Stack::kernels},
                                                  {"mixture_kernels", &Stack::mixture_kernels},
                                                  {"expert_kernels", &Stack::expert_kernels}}};

template <class Keys>
auto find(const Keys& keys, const std::string& name) {
  const auto found = std::ranges::find_if(keys, [&](const auto& key) { return key.name == name; });
  return found == keys.end() ? nullptr : &*found;
}

std::vector<std::string> fact_names() {
  std::vector<std::string> names{"attention", "p2p_overlap", "no_early_stop_on"};
  for (const auto& key : kNumbers) names.emplace_back(key.name);
  for (const auto& key : kTruths) names.emplace_back(key.name);
  for (const auto& key : kLaunches) names.emplace_back(key.name);
  return names;
}

/// The position of a word in a list; the words are those of an enum, in its order.
template <class E, std::size_t N>
E choice(const FactsFile& facts, const TomlEntry& entry, const std::array<const char*, N>& words) {
  const auto found = std::ranges::find(words, facts.word(entry));
  if (found == words.end()) {
    std::string all;
    for (const char* word : words) all += std::string(all.empty() ? "" : ", ") + word;
    facts.refuse(entry, "must be one of " + all);
  }
  return static_cast<E>(found - words.begin());
}

void read_fact(const FactsFile& facts, const TomlEntry& entry, Stack& stack) {
  constexpr std::array<const char*, 3> kKernels{"flash1", "flash2", "fused"};
  constexpr std::array<const char*, 3> kOverlaps{"never", "chunks", "always"};
  if (entry.key == "attention") {
    stack.attention = choice<AttentionKernel>(facts, entry, kKernels);
  } else if (entry.key == "p2p_overlap") {
    stack.p2p_overlap = choice<MessageOverlap>(facts, entry, kOverlaps);
  } else if (entry.key == "no_early_stop_on") {
    stack.no_early_stop_on = facts.word(entry);
  } else if (const auto* number = find(kNumbers, entry.key)) {
    stack.*number->value = facts.number(entry);
  } else if (const auto* truth = find(kTruths, entry.key)) {
    stack.*truth->value = facts.truth(entry);
  } else if (const auto* launches = find(kLaunches, entry.key)) {
    const auto [forward, backward] = facts.pair(entry);
    stack.*launches->value = {forward, backward};
  } else {
    facts.unknown(entry, fact_names());
  }
}

void read_constant(const FactsFile& facts, const TomlEntry& entry, Stack& stack) {
  const Constant* constant = find(constants(), entry.key);
  if (!constant) {
    std::vector<std::string> names;
    for (const Constant& known : constants()) names.emplace_back(known.name);
    facts.unknown(entry, names);
  }
  stack.*constant->value = facts.number(entry);
}

void read_section(const FactsFile& facts, const TomlEntry& section, Stack& stack) {
  if (section.key != "facts" && section.key != "constants")
    facts.unknown(section, {"inherits", "facts", "constants"});
  for (const TomlEntry& entry : facts.table(section))
    (section.key == "facts" ? read_fact : read_constant)(facts, entry, stack);
}

/// `depth`: how many files inherit from this one, so that a circle ends.
Stack load(const std::string& name, int depth) {
  require(depth < 8, ExitCode::usage, "stack {} inherits from itself; remove its line inherits",
          name);
  const FactsFile facts(file_of("stack", "stacks", name));
  Stack stack;
  for (const TomlEntry& entry : facts.entries())
    if (entry.key == "inherits") stack = load(facts.word(entry), depth + 1);
  for (const TomlEntry& entry : facts.entries())
    if (entry.key != "inherits") read_section(facts, entry, stack);
  stack.name = name;
  return stack;
}

}  // namespace

const std::vector<Constant>& constants() {
  static const std::vector<Constant> all{{"gemm", &Stack::gemm},
                                         {"attention_rate", &Stack::attention_rate},
                                         {"traffic", &Stack::traffic},
                                         {"mixture_traffic", &Stack::mixture_traffic},
                                         {"imbalance", &Stack::imbalance},
                                         {"tp_exposed", &Stack::tp_exposed},
                                         {"overlap_tax", &Stack::overlap_tax},
                                         {"host_us", &Stack::host_us},
                                         {"dispatch", &Stack::dispatch},
                                         {"step_ms", &Stack::step_ms}};
  return all;
}

std::vector<std::string> stack_names() { return names_in("stacks"); }

std::string stack_of(const Machine& machine) { return machine.host ? "tessera-host" : "tessera"; }

Stack load_stack(const std::string& name) { return load(name, 0); }

}  // namespace tessera::planner
