#include "tessera/train/model_weights.hpp"

#include "host_views.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/log.hpp"

namespace tessera::train {

void load_model(const parallel::Holdings& holdings, const model::Model& model, mesh::DeviceMesh& mesh,
                const std::filesystem::path& folder) {
  HostViews views = model_views(holdings, model, mesh);
  comm::Communicator& control = mesh.control();
  checkpoint::LoadOptions options;
  options.extra = checkpoint::Policy::ignore;  // the moments of the run that it comes from
  options.log = [](const std::string& line) { log::warning("{}", line); };
  if (folder.filename().string().starts_with("step-")) {
    checkpoint::open(control, folder).load(control, views.views(), options);
  } else {
    const auto opened = checkpoint::load_newest(control, folder, views.views(), options);
    require(opened.has_value(), ExitCode::checkpoint, "{} holds no checkpoint", folder.string());
  }
  views.write_back();
}

}  // namespace tessera::train
