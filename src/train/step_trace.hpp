// SPDX-License-Identifier: Apache-2.0
// Traces of some steps of a run, as files for Perfetto.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "device_tracer.hpp"
#include "tessera/comm/world.hpp"
#include "tessera/plan/run_plan.hpp"
#include "tessera/train/trainer.hpp"
#include "trace_recorder.hpp"

namespace tessera::train {

/// What is not traced costs nothing: the recorder observes only while a traced step runs.
class StepTrace {
 public:
  /// Collective: aligns the ranks' clocks. What is given must outlive this.
  StepTrace(const plan::TracePlan& plan, comm::World& world, Trainer& trainer);
  ~StepTrace();
  StepTrace(const StepTrace&) = delete;
  StepTrace& operator=(const StepTrace&) = delete;

  /// Steps count from 1.
  void begin_step(std::int64_t step);
  /// Collective after the last step of a trace: each rank writes
  /// folder/iteration_STEP/rankN_trace.json, and rankN_kernels.txt on a GPU, and rank 0 trace.json
  /// with the first 64 ranks. Returns what rank 0's GPU did, for people; empty on other ranks.
  /// Throws Error(environment).
  std::string end_step(std::int64_t step);

 private:
  bool traced(std::int64_t step) const {
    return (step - 1) % plan_.freq >= plan_.freq - plan_.active_steps;
  }
  void stop();
  std::string write(std::int64_t step);

  const plan::TracePlan& plan_;
  comm::World& world_;
  Trainer& trainer_;
  std::shared_ptr<TraceRecorder> recorder_ = std::make_shared<TraceRecorder>();
  std::optional<DeviceTracer> device_;  ///< of a GPU
  std::shared_ptr<comm::Hook> nvtx_;    ///< in the whole run; null without CUDA
  double offset_ = 0;                   ///< from this rank's clock to the trace's
  double step_began_ = 0;
  bool active_ = false;
};

}  // namespace tessera::train
