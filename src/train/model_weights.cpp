// SPDX-License-Identifier: Apache-2.0
#include "tessera/train/model_weights.hpp"

#include <optional>

#include "load_options.hpp"
#include "recorded_model.hpp"
#include "tensor_views.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/log.hpp"
#include "tessera/checkpoint/checkpoint_reader.hpp"
#include "tessera/checkpoint/inspect.hpp"
#include "tessera/comm/agreement.hpp"
#include "tessera/hf/config.hpp"
#include "tessera/hf/folder.hpp"
#include "tessera/hf/model_weights.hpp"
#include "tessera/inputs/found_weights.hpp"

namespace tessera::train {

namespace {

TensorViews views_of(const LoadTarget& target) {
  return model_views(ViewUse::loading, target.holdings, target.model, target.mesh);
}

}  // namespace

void load_model(const LoadTarget& target, const std::filesystem::path& folder,
                plan::LoadChoice choice) {
  TensorViews views = views_of(target);
  comm::Communicator& control = target.mesh.control();
  choice.optimizer = false;  // of the run that it comes from
  const checkpoint::LoadOptions options = load_options(choice, target.model);
  const auto opened = checkpoint::load_named(control, folder, views.views(), options);
  require(opened.has_value(), ExitCode::checkpoint, "{} holds no checkpoint of Tessera{}",
          folder.string(), inputs::held_instead(folder, inputs::remedy_for_weights(false)));
  if (target.mesh.rank() == mesh::Rank(0)) {
    const std::string where = opened->folder().string();
    warn_of_other_model(where, model_differences(target.model, opened->extra()));
    warn_of_other_tokenizer(where, opened->extra(), target.tokenizer_hash);
    log::info("weights from {}", where);
  }
  views.write_back();
}

void load_hf_model(const LoadTarget& target, const std::filesystem::path& path,
                   const plan::LoadChoice& choice) {
  std::optional<hf::WeightFiles> files;
  std::optional<hf::ModelWeights> weights;
  comm::Communicator& control = target.mesh.control();
  comm::on_all_ranks(control, [&] {
    files.emplace(path);
    weights.emplace(*files, target.model, hf::Names::hugging_face);
  });
  if (target.mesh.rank() == mesh::Rank(0)) {
    if (choice.mismatch != plan::Mismatch::ignore) weights->warn_of_unused();
    weights->warn_of_borrowed();
    const auto& described = target.for_others.empty() ? target.model.properties : target.for_others;
    warn_of_other_model(path.string(), hf::described_differences(described, path));
    log::info("weights from {}", path.string());
  }
  TensorViews views = views_of(target);
  checkpoint::load(control, *weights, views.views(), load_options(choice, target.model));
  views.write_back();
}

plan::WeightOrigin weight_origin(const plan::WeightOrigins& origins, config::JobUse use,
                                 mesh::DeviceMesh& mesh) {
  const std::string own = comm::on_rank_zero(mesh.control(), [&] {
    return std::string(checkpoint::list_steps(origins.checkpoints).empty() ? "" : "own");
  });
  return origins.choose(use, !own.empty());
}

void load_initial_weights(const LoadTarget& target, const plan::InitialState& from,
                          const plan::LoadChoice& choice) {
  if (from.in_hf)
    load_hf_model(target, from.path, choice);
  else
    load_model(target, from.path, choice);
}

void load_newest_weights(const LoadTarget& target, const plan::WeightOrigins& origins) {
  switch (weight_origin(origins, config::JobUse::inference, target.mesh)) {
    case plan::WeightOrigin::initial_state:
      return load_initial_weights(target, *origins.from, {});
    case plan::WeightOrigin::own:
      if (origins.step_named)
        return load_model(target, origins.checkpoints / checkpoint::step_name(origins.step));
      [[fallthrough]];
    case plan::WeightOrigin::initial_values:  // which nobody wants here: says what is missing
      return load_model(target, origins.checkpoints);
  }
}

}  // namespace tessera::train
