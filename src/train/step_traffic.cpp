// SPDX-License-Identifier: Apache-2.0
#include "step_traffic.hpp"

#include <array>

#include "tessera/train/device.hpp"

namespace tessera::train {

void StepTraffic::measure(double waited) {
  const parallel::GatherCount gathers = trainer_.stages().gather_count() - gathers_before_;
  std::array<std::int64_t, 5> all{peak_bytes(trainer_.stages().options().sharding.device),
                                  gathers.gathers, gathers.bytes, trainer_.stages().kept_bytes(),
                                  static_cast<std::int64_t>(waited * 1e9)};
  trainer_.mesh()
      .control()
      .all_reduce({all.data(), static_cast<std::int64_t>(all.size()), DType::i64}, comm::Op::max)
      .wait();
  worst_ = {all[0], all[1], all[2], all[3], all[4]};
}

void StepTraffic::begin() { gathers_before_ = trainer_.stages().gather_count(); }

void StepTraffic::add_to(metrics::StepRecord& record) const {
  record.memory_bytes = worst_.memory_bytes;
  record.extra.emplace_back("fsdp/gathers", static_cast<double>(worst_.gathers));
  record.extra.emplace_back("fsdp/gather_bytes", static_cast<double>(worst_.gather_bytes));
  record.extra.emplace_back("fsdp/kept_bytes", static_cast<double>(worst_.kept_bytes));
  record.extra.emplace_back("comm/exposed_seconds",
                            static_cast<double>(worst_.exposed_nanoseconds) * 1e-9);
}

}  // namespace tessera::train
