#include "tessera/train/model_weights.hpp"

#include "host_views.hpp"
#include "tessera/base/error.hpp"

namespace tessera::train {

void load_model(const parallel::Holdings& holdings, const model::Model& model, mesh::DeviceMesh& mesh,
                const std::filesystem::path& folder, LoadChoice choice) {
  HostViews views = model_views(holdings, model, mesh);
  comm::Communicator& control = mesh.control();
  choice.optimizer = false;  // of the run that it comes from
  const checkpoint::LoadOptions options = choice.options(model);
  const std::filesystem::path last = folder.has_filename() ? folder.filename() : folder.parent_path().filename();
  if (last.string().starts_with("step-")) {
    checkpoint::open(control, folder).load(control, views.views(), options);
  } else {
    const auto opened = checkpoint::load_newest(control, folder, views.views(), options);
    require(opened.has_value(), ExitCode::checkpoint, "{} holds no checkpoint", folder.string());
  }
  views.write_back();
}

}  // namespace tessera::train
