// SPDX-License-Identifier: Apache-2.0
#include "tessera/train/model_weights.hpp"

#include "tensor_views.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/log.hpp"
#include "tessera/checkpoint/inspect.hpp"
#include "tessera/hf/folder.hpp"
#include "tessera/train/collective.hpp"
#include "tessera/train/hf_weights.hpp"

namespace tessera::train {

void load_model(const parallel::Holdings& holdings, const model::ModelSpec& model,
                mesh::DeviceMesh& mesh, const std::filesystem::path& folder, LoadChoice choice) {
  TensorViews views = model_views(ViewUse::loading, holdings, model, mesh);
  comm::Communicator& control = mesh.control();
  choice.optimizer = false;  // of the run that it comes from
  const checkpoint::LoadOptions options = choice.options(model);
  if (checkpoint::is_step_folder(folder)) {
    checkpoint::open(control, folder).load(control, views.views(), options);
  } else {
    const auto opened = checkpoint::load_newest(control, folder, views.views(), options);
    require(opened.has_value(), ExitCode::checkpoint, "{} holds no checkpoint{}", folder.string(),
            hf::holds_weights(folder)
                ? " of Tessera but Hugging Face weights; add --checkpoint.initial_load_in_hf"
                : "");
  }
  views.write_back();
}

void load_weights_of(const config::JobConfig& job, const parallel::Holdings& holdings,
                     const model::ModelSpec& model, mesh::DeviceMesh& mesh,
                     const LoadChoice& choice) {
  const auto& path = job.checkpoint.initial_load_path;
  if (!path)
    return load_model(holdings, model, mesh,
                      std::filesystem::path(job.job.dump_folder) / job.checkpoint.folder, choice);
  if (!job.checkpoint.initial_load_in_hf) return load_model(holdings, model, mesh, *path, choice);
  on_all_ranks(mesh.control(), [&] {
    const HfMisfits misfits = find_hf_misfits(model, *path, choice);
    if (mesh.rank() == 0 && !misfits.table.empty()) log::warning("{}", misfits.table);
    load_hf_weights(holdings, model, *path, misfits.fqns);
  });
}

}  // namespace tessera::train
