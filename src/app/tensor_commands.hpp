// SPDX-License-Identifier: Apache-2.0
// The commands that need LibTorch. They are a program of their own: loading LibTorch takes a
// quarter of a second, which no other command has to wait for.
#pragma once

namespace tessera::app {

struct TensorCommand {
  const char* name;
  const char* summary;
};
inline constexpr TensorCommand kTrain{"train", "train a model on all ranks of the job"},
    kEval{"eval", "compute the validation loss, or the logits of given tokens"},
    kBench{"bench", "measure this machine beside its limits"},
    kGenerate{"generate", "generate text with a trained model"},
    /// of the program with LibTorch alone: what `tessera plan --rehearse` becomes
    kRehearse{"rehearse", "the memory of a job's ranks, found by taking their steps"},
    /// what `tessera plan calibrate` becomes
    kCalibrate{"calibrate", "measure this node, and write its machine file"},
    kShowVersion{"version", "print version and build information"};

}  // namespace tessera::app
