// SPDX-License-Identifier: Apache-2.0
#include "tessera/train/model_weights.hpp"

#include <optional>

#include "load_options.hpp"
#include "recorded_model.hpp"
#include "tensor_views.hpp"
#include "tessera/base/error.hpp"
#include "tessera/checkpoint/checkpoint_reader.hpp"
#include "tessera/checkpoint/inspect.hpp"
#include "tessera/comm/agreement.hpp"
#include "tessera/hf/config.hpp"
#include "tessera/hf/folder.hpp"
#include "tessera/hf/model_weights.hpp"

namespace tessera::train {

namespace {

/// From the config.json of Hugging Face's weights. "" if there is none that Tessera can read.
std::string described_differences(const model::ModelSpec& model,
                                  const std::filesystem::path& path) {
  std::error_code ignored;
  const std::filesystem::path folder =
      std::filesystem::is_directory(path, ignored) ? path : path.parent_path();
  if (!std::filesystem::exists(folder / "config.json", ignored)) return "";
  try {
    return model::differences(model.properties,
                              model::properties_of(hf::read_config(folder / "config.json")));
  } catch (const Error&) {
    return "";
  }
}

}  // namespace

void load_model(const parallel::Holdings& holdings, const model::ModelSpec& model,
                mesh::DeviceMesh& mesh, const std::filesystem::path& folder,
                plan::LoadChoice choice) {
  TensorViews views = model_views(ViewUse::loading, holdings, model, mesh);
  comm::Communicator& control = mesh.control();
  choice.optimizer = false;  // of the run that it comes from
  const checkpoint::LoadOptions options = load_options(choice, model);
  const auto opened = checkpoint::load_named(control, folder, views.views(), options);
  require(opened.has_value(), ExitCode::checkpoint, "{} holds no checkpoint{}", folder.string(),
          hf::holds_weights(folder)
              ? " of Tessera but Hugging Face weights; add --checkpoint.initial_load_in_hf"
              : "");
  if (mesh.rank() == mesh::Rank(0))
    warn_of_other_model(opened->folder().string(), model_differences(model, opened->extra()));
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
  if (mesh.rank() == mesh::Rank(0)) {
    if (choice.mismatch != plan::Mismatch::ignore) weights->warn_of_unused();
    warn_of_other_model(path.string(), described_differences(model, path));
  }
  TensorViews views = model_views(ViewUse::loading, holdings, model, mesh);
  checkpoint::load(mesh.control(), *weights, views.views(), load_options(choice, model));
  views.write_back();
}

void load_initial_weights(const plan::LoadPlan& plan, const plan::LoadChoice& choice,
                          const parallel::Holdings& holdings, const model::ModelSpec& model,
                          mesh::DeviceMesh& mesh) {
  const plan::InitialState& from = plan.from.value();
  if (from.in_hf)
    load_hf_model(holdings, model, mesh, from.path, choice);
  else
    load_model(holdings, model, mesh, from.path, choice);
}

void load_newest_weights(const plan::LoadPlan& plan, const parallel::Holdings& holdings,
                         const model::ModelSpec& model, mesh::DeviceMesh& mesh) {
  require(plan.named_step < 0 || !plan.from || !plan.from->named, ExitCode::usage,
          "--checkpoint.load_step selects a step of the run, and "
          "--checkpoint.initial_load_path other weights; keep one");
  const std::string own = comm::on_rank_zero(mesh.control(), [&] {
    if (plan.named_step >= 0)
      return (plan.checkpoints / checkpoint::step_name(plan.named_step)).string();
    const bool is_own =
        !plan.from || (!plan.from->named && !checkpoint::list_steps(plan.checkpoints).empty());
    return is_own ? plan.checkpoints.string() : std::string();
  });
  if (own.empty())
    load_initial_weights(plan, {}, holdings, model, mesh);
  else
    load_model(holdings, model, mesh, own);
}

}  // namespace tessera::train
