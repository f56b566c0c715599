// SPDX-License-Identifier: Apache-2.0
#include "nvtx_ranges.hpp"

#include <nvtx3/nvToolsExt.h>

#include <map>
#include <mutex>
#include <string>

namespace tessera::train {
namespace {

class NvtxRanges final : public comm::Hook {
 public:
  /// A call on a device may end later than anyone looks.
  ~NvtxRanges() override {
    if (in_unit_) nvtxRangeEnd(unit_);
    for (const auto& [ticket, range] : calls_) nvtxRangeEnd(range);
  }

  void comes_to(std::string_view unit, std::string_view pass) noexcept override {
    const std::lock_guard lock(mutex_);
    if (in_unit_) nvtxRangeEnd(unit_);
    in_unit_ = !unit.empty();
    if (in_unit_) unit_ = nvtxRangeStartA((std::string(unit) + " " + std::string(pass)).c_str());
  }
  void before(const comm::HookedCall& call) override {
    if (call.size == 1) return;
    const std::string name = std::string(call.axis) + " " + std::string(name_of(call.info.call));
    const std::lock_guard lock(mutex_);
    calls_[call.ticket] = nvtxRangeStartA(name.c_str());
  }
  void after(std::uint64_t ticket, comm::CallEnd) noexcept override {
    const std::lock_guard lock(mutex_);
    if (const auto call = calls_.extract(ticket)) nvtxRangeEnd(call.mapped());
  }

 private:
  std::mutex mutex_;
  std::map<std::uint64_t, nvtxRangeId_t> calls_;  ///< in progress, by ticket
  nvtxRangeId_t unit_ = 0;
  bool in_unit_ = false;
};

}  // namespace

std::shared_ptr<comm::Hook> make_nvtx_ranges() { return std::make_shared<NvtxRanges>(); }

}  // namespace tessera::train
