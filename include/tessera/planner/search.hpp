// SPDX-License-Identifier: Apache-2.0
// Other ways to run a job on the same GPUs: which are fastest, and why.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tessera/planner/price.hpp"
#include "tessera/planner/variant_space.hpp"

namespace tessera::planner {

struct Option {
  Variant variant;
  std::vector<std::string> changes;  ///< "key = value", as a job file has them
  config::Resolved job;              ///< with these changes
  Price price;
};

/// Another value of a knob, the others as they are in the best variant.
struct Turn {
  std::string value;
  bool fits = false;
  double faster = 0;  ///< tokens/s to those of the best variant, - 1; of no meaning if not `fits`
};

struct KnobEffect {
  std::string knob, value;  ///< of the best variant
  std::vector<Turn> turns;
};

struct SearchResult {
  std::int64_t priced = 0;  ///< variants; the others do not fit, or cannot be among the best
  /// Those that fit, fastest first, no two with the same degrees of tp, cp, ep and pp; among
  /// equals, the variant with the fewest changes.
  std::vector<Option> best;
};

/// The fastest variants of a space, at most `shown`. Prices those alone that may fit and be among
/// them.
SearchResult search(const VariantSpace& space, const Machine& machine, const Stack& stack,
                    std::size_t shown = 5);

/// Of each knob of `best` that has other legal values.
std::vector<KnobEffect> knob_effects(const VariantSpace& space, const Option& best,
                                     const Machine& machine, const Stack& stack);

/// A job on a number of GPUs, where some keys had to change for it to be legal there.
struct LegalJob {
  config::Resolved job;
  plan::JobPlan plan;
  std::vector<std::string> changes;  ///< each as "key = value"
};

/// The job on this many GPUs with its degrees and its microbatch, or the most of them that its
/// batch permits: data-parallel ranks share what is left. Nothing if no change of these is enough.
std::optional<LegalJob> legal_on(const config::Resolved& job, int gpus, plan::Planner& planner);

/// What makes a job fit that does not.
struct Remedy {
  int gpus = 0;             ///< those of the job; else twice, four times ... as many, or half ...
  bool other_gpus = false;  ///< than the job has
  bool bfloat16_state = false;  ///< the change makes moments, or weights too, smaller
  int turned = 0;               ///< knobs
  Option option;
};

/// The remedy of the job's GPUs; else of the fewest more, and then of the most that are fewer.
/// Among those of a number: with the types of the job's weights and moments where it can be, of the
/// fewest knobs, and then the fastest. Nothing where no number of GPUs helps. `job`: of `space`,
/// and does not fit.
std::optional<Remedy> smallest_remedy(const config::Resolved& job, const VariantSpace& space,
                                      const Machine& machine, const Stack& stack);

/// The best changes of one knob each: at most three of different knobs, with at most two keys each.
/// Less than 3 % of a step or of its memory is not worth a change.
struct BestTurns {
  /// Of the job as it is. Here and below, a precision that the machine does not have takes 0 s.
  Price own;
  std::vector<Option> faster;  ///< those that fit, the fastest first
  /// Of a job that does not fit, whatever is predicted: what takes at most `spared_room`, the
  /// fastest first, and then what spares most.
  std::vector<Option> sparing;
  double spared_room = 0;
};

/// `room_bytes`: what tensors of a rank may take; 0: not known.
BestTurns best_turns(const VariantSpace& space, double room_bytes, const Machine& machine,
                     const Stack& stack);

/// What a variant wins and loses against the job as it is, in one line: seconds of a step by cause,
/// bubble and memory.
std::string reason(const Price& own, const Price& other);

}  // namespace tessera::planner
