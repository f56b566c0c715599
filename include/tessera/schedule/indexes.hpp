// SPDX-License-Identifier: Apache-2.0
// What a pipeline schedule counts, as types that do not mix.
#pragma once

#include "tessera/base/index.hpp"

namespace tessera::schedule {

/// A pipeline stage, in the order of the model.
using StageIndex = Index<struct StageKind>;
/// A microbatch of one round.
using MicrobatchIndex = Index<struct MicrobatchKind>;
/// A rank of the pipeline: its coordinate on the mesh's axis pp.
using PipelineRank = Index<struct PipelineRankKind>;

}  // namespace tessera::schedule
