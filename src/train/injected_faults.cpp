#include "tessera/train/injected_faults.hpp"

#include <algorithm>
#include <array>
#include <csignal>
#include <limits>
#include <regex>
#include <string_view>

#include "tessera/base/error.hpp"

namespace tessera::train {
namespace {

constexpr std::array<std::string_view, 4> kKinds{"nan", "flip", "freeze", "die"};

/// The first gradient of which this rank has a part.
void make_nan(const parallel::ParamRefs& params) {
  const auto some = std::ranges::find_if(params, [](const auto& ref) { return ref.param->gradient.numel() > 0; });
  if (some != params.end()) some->param->gradient.fill_(std::numeric_limits<double>::quiet_NaN());
}

void flip_bit(const torch::Tensor& values) { values.view(torch::kInt32).narrow(0, 0, 1).bitwise_xor_(1); }

}  // namespace

InjectedFaults::InjectedFaults(const std::vector<std::string>& entries, int world) {
  static const std::regex form("([1-9][0-9]{0,8}):([a-z]+):([0-9]{1,7})");
  for (const std::string& text : entries) {
    std::smatch parts;
    const bool good = std::regex_match(text, parts, form);
    const auto kind = good ? std::ranges::find(kKinds, std::string_view(parts[2].str())) : kKinds.end();
    require(kind != kKinds.end(), ExitCode::usage,
            "debug.inject_faults: '{}' is no STEP:KIND:RANK with KIND nan, flip, freeze or die", text);
    const int rank = std::stoi(parts[3]);
    require(rank < world, ExitCode::usage, "debug.inject_faults: '{}' is for rank {} of {}", text, rank, world);
    entries_.push_back({std::stoll(parts[1]), static_cast<Kind>(kind - kKinds.begin()), rank});
  }
}

void InjectedFaults::strike(std::int64_t step, int rank, parallel::Stages& stages) {
  const auto now = [&](const Entry& entry) { return entry.step == step; };
  for (const Entry& entry : entries_) {
    if (!now(entry) || entry.rank != rank) continue;
    torch::NoGradGuard no_grad;
    if (entry.kind == Kind::nan) make_nan(stages.trained_params());
    if (entry.kind == Kind::flip) flip_bit(stages.groups().front()->flat_master());
    if (entry.kind == Kind::freeze) std::raise(SIGSTOP);
    if (entry.kind == Kind::die) std::raise(SIGKILL);
  }
  std::erase_if(entries_, now);
}

}  // namespace tessera::train
