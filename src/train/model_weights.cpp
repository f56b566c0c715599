// SPDX-License-Identifier: Apache-2.0
#include "tessera/train/model_weights.hpp"

#include <optional>

#include "load_options.hpp"
#include "tensor_views.hpp"
#include "tessera/base/error.hpp"
#include "tessera/checkpoint/checkpoint_reader.hpp"
#include "tessera/checkpoint/inspect.hpp"
#include "tessera/comm/agreement.hpp"
#include "tessera/hf/folder.hpp"
#include "tessera/hf/model_weights.hpp"

namespace tessera::train {

void load_model(const parallel::Holdings& holdings, const model::ModelSpec& model,
                mesh::DeviceMesh& mesh, const std::filesystem::path& folder,
                plan::LoadChoice choice) {
  TensorViews views = model_views(ViewUse::loading, holdings, model, mesh);
  comm::Communicator& control = mesh.control();
  choice.optimizer = false;  // of the run that it comes from
  const checkpoint::LoadOptions options = load_options(choice, model);
  if (checkpoint::is_step_folder(folder)) {
    checkpoint::load(control, checkpoint::open(control, folder), views.views(), options);
  } else {
    const auto opened = checkpoint::load_newest(control, folder, views.views(), options);
    require(opened.has_value(), ExitCode::checkpoint, "{} holds no checkpoint{}", folder.string(),
            hf::holds_weights(folder)
                ? " of Tessera but Hugging Face weights; add --checkpoint.initial_load_in_hf"
                : "");
  }
  views.write_back();
}

void load_hf_model(const parallel::Holdings& holdings, const model::ModelSpec& model,
                   mesh::DeviceMesh& mesh, const std::filesystem::path& path,
                   const plan::LoadChoice& choice) {
  std::optional<hf::WeightFiles> files;
  std::optional<hf::ModelWeights> weights;
  comm::on_all_ranks(mesh.control(), [&] {
    files.emplace(path);
    weights.emplace(*files, model, hf::Names::hugging_face);
  });
  if (mesh.rank() == mesh::Rank(0) && choice.mismatch != plan::Mismatch::ignore)
    weights->warn_of_unused();
  TensorViews views = model_views(ViewUse::loading, holdings, model, mesh);
  checkpoint::load(mesh.control(), *weights, views.views(), load_options(choice, model));
  views.write_back();
}

void load_weights_of(const plan::LoadPlan& plan, const plan::LoadChoice& choice,
                     const parallel::Holdings& holdings, const model::ModelSpec& model,
                     mesh::DeviceMesh& mesh) {
  if (plan.from && plan.from->in_hf)
    return load_hf_model(holdings, model, mesh, plan.from->path, choice);
  const std::string folder = comm::on_rank_zero(mesh.control(), [&] {
    const bool own =
        !plan.from || (plan.from->branch && !checkpoint::list_steps(plan.checkpoints).empty());
    return (own ? plan.checkpoints : plan.from->path).string();
  });
  load_model(holdings, model, mesh, folder, choice);
}

}  // namespace tessera::train
