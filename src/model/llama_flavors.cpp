#include <fmt/ranges.h>

#include <map>

#include "tessera/base/error.hpp"
#include "tessera/model/llama.hpp"

namespace tessera::model {
namespace {

struct Flavor {
  std::int64_t dim, layers, heads, kv_heads, multiple_of;
  std::optional<double> multiplier;
  std::int64_t vocab;
  bool tied;
  double rope_factor;
};

/// TorchTitan's llama3 flavors; 1B and 3B are Llama 3.2's (tied, RoPE factor 32).
const std::map<std::string, Flavor>& flavors() {
  static const std::map<std::string, Flavor> table{
      {"debugmodel", {256, 6, 16, 16, 256, std::nullopt, 2048, false, 8}},
      {"1B", {2048, 16, 32, 8, 256, 1.5, 128256, true, 32}},
      {"3B", {3072, 28, 24, 8, 256, 1.0, 128256, true, 32}},
      {"8B", {4096, 32, 32, 8, 1024, 1.3, 128256, false, 8}},
      {"70B", {8192, 80, 64, 8, 4096, 1.3, 128256, false, 8}},
      {"405B", {16384, 126, 128, 8, 4096, 1.2, 128256, false, 8}},
  };
  return table;
}

}  // namespace

std::vector<std::string> llama_flavors() { return {"debugmodel", "1B", "3B", "8B", "70B", "405B"}; }

LlamaShape llama_flavor(const std::string& flavor, std::optional<std::int64_t> vocab) {
  const auto found = flavors().find(flavor);
  require(found != flavors().end(), ExitCode::usage, "model.flavor \"{}\" is not a flavor of llama3; known are {}", flavor,
          fmt::join(llama_flavors(), ", "));
  const Flavor& f = found->second;
  LlamaShape shape;
  shape.name = "llama3 " + flavor;
  shape.dim = f.dim;
  shape.layers = f.layers;
  shape.heads = f.heads;
  shape.kv_heads = f.kv_heads;
  shape.head_dim = f.dim / f.heads;
  shape.hidden = llama_hidden(f.dim, f.multiple_of, f.multiplier);
  shape.vocab = vocab.value_or(f.vocab);
  shape.tied = f.tied;
  shape.rope_scaling->factor = f.rope_factor;
  return shape;
}

}  // namespace tessera::model
