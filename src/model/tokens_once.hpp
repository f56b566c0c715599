// SPDX-License-Identifier: Apache-2.0
// A mixture whose tokens go once to each rank where they have experts, however many. A rank gets a
// token and its choices. It returns the weighted sum over the experts that it holds. DeepEP sends
// tokens so (https://github.com/deepseek-ai/DeepEP).
#pragma once

#include "tessera/model/cell.hpp"
#include "tessera/model_spec/routing_rule.hpp"

namespace tessera::model {

/// Of a flow in front of dispatch: sends its tokens.
void send_tokens_once(Flow& flow, const CellContext& context, const RoutingRule& rule);
/// The tokens that have arrived lie expert by expert.
void take_tokens(Flow& flow, const CellContext& context, const RoutingRule& rule);
/// Of a flow in front of combine: sends sums of the experts' results. `before`: scores were applied
/// before the experts.
void send_sums(Flow& flow, const CellContext& context, bool before);
/// Adds up the sums of all ranks.
void take_sums(Flow& flow, const CellContext& context);

}  // namespace tessera::model
