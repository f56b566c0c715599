#include <fstream>
#include <nlohmann/json.hpp>

#include "tessera/base/error.hpp"
#include "tessera/model/llama.hpp"

namespace tessera::model {
namespace {

using nlohmann::json;

/// Reads keys of one JSON object with Hugging Face's defaults for those that are absent or null.
class Reader {
 public:
  Reader(const json& object, std::string where) : object_(object), where_(std::move(where)) {}

  template <class T>
  T get(const char* key, T otherwise) const {
    const auto found = object_.find(key);
    if (found == object_.end() || found->is_null()) return otherwise;
    try {
      return found->get<T>();
    } catch (const json::exception&) {
      fail(ExitCode::usage, "{}: \"{}\" has the wrong type ({})", where_, key, found->dump());
    }
  }

  std::int64_t positive(const char* key, std::int64_t otherwise) const {
    const auto value = get<std::int64_t>(key, otherwise);
    require(value > 0 && value < (std::int64_t{1} << 31), ExitCode::usage, "{}: \"{}\" is {}; it must be a positive size",
            where_, key, value);
    return value;
  }

  /// Sub-object under `key`, or null.
  const json* object(const char* key) const {
    const auto found = object_.find(key);
    if (found == object_.end() || found->is_null()) return nullptr;
    require(found->is_object(), ExitCode::usage, "{}: \"{}\" must be an object", where_, key);
    return &*found;
  }

 private:
  const json& object_;
  std::string where_;
};

json parse(const std::filesystem::path& file) {
  std::ifstream in(file);
  require(in.good(), ExitCode::usage, "cannot open {} (model.hf_config); name a Hugging Face config.json", file.string());
  json parsed = json::parse(in, nullptr, /*allow_exceptions=*/false);
  require(parsed.is_object(), ExitCode::usage, "{} is not a JSON object; name a Hugging Face config.json", file.string());
  return parsed;
}

std::optional<RopeScaling> read_scaling(const json* object, const std::string& where) {
  if (!object) return std::nullopt;
  const Reader reader(*object, where);
  const auto type = reader.get<std::string>("rope_type", reader.get<std::string>("type", "default"));
  if (type == "default") return std::nullopt;
  require(type == "llama3", ExitCode::usage, "{}: RoPE scaling of type \"{}\" is not supported; llama3 and default are",
          where, type);
  RopeScaling scaling;
  scaling.factor = reader.get<double>("factor", scaling.factor);
  scaling.low_freq_factor = reader.get<double>("low_freq_factor", scaling.low_freq_factor);
  scaling.high_freq_factor = reader.get<double>("high_freq_factor", scaling.high_freq_factor);
  scaling.original_max_position = reader.positive("original_max_position_embeddings", scaling.original_max_position);
  return scaling;
}

void refuse(const Reader& reader, const std::string& where, const char* key) {
  require(!reader.get<bool>(key, false), ExitCode::usage, "{}: \"{}\" = true is not supported for Llama", where, key);
}

void read_rope(LlamaShape& shape, const Reader& reader, const std::string& where) {
  const json* parameters = reader.object("rope_parameters");  // transformers 5
  shape.rope_scaling = read_scaling(parameters ? parameters : reader.object("rope_scaling"), where);
  shape.rope_theta = reader.get<double>("rope_theta", 10000.0);
  if (parameters) shape.rope_theta = Reader(*parameters, where).get<double>("rope_theta", shape.rope_theta);
}

}  // namespace

LlamaShape llama_from_hf_config(const std::filesystem::path& file) {
  const json parsed = parse(file);
  const std::string where = file.string();
  const Reader reader(parsed, where);
  const auto type = reader.get<std::string>("model_type", "llama");
  require(type == "llama", ExitCode::usage, "{}: model_type \"{}\" is not supported yet; llama is", where, type);
  refuse(reader, where, "attention_bias");
  refuse(reader, where, "mlp_bias");
  const auto activation = reader.get<std::string>("hidden_act", "silu");
  require(activation == "silu", ExitCode::usage, "{}: hidden_act \"{}\" is not supported; silu is", where, activation);

  LlamaShape shape;
  shape.name = "llama (" + file.filename().string() + ")";
  shape.dim = reader.positive("hidden_size", 4096);
  shape.layers = reader.positive("num_hidden_layers", 32);
  shape.heads = reader.positive("num_attention_heads", 32);
  shape.kv_heads = reader.positive("num_key_value_heads", shape.heads);
  shape.head_dim = reader.positive("head_dim", shape.dim / shape.heads);
  shape.hidden = reader.positive("intermediate_size", 11008);
  shape.vocab = reader.positive("vocab_size", 32000);
  shape.norm_eps = reader.get<double>("rms_norm_eps", 1e-6);
  shape.tied = reader.get<bool>("tie_word_embeddings", false);
  read_rope(shape, reader, where);
  require(shape.heads % shape.kv_heads == 0, ExitCode::usage, "{}: {} attention heads are not a multiple of {} key-value heads",
          where, shape.heads, shape.kv_heads);
  require(shape.head_dim % 2 == 0, ExitCode::usage, "{}: head_dim {} must be even (RoPE rotates pairs)", where, shape.head_dim);
  return shape;
}

std::string hf_config_of(const LlamaShape& shape, const std::string& dtype) {
  const std::string torch_dtype = dtype == "bf16" ? "bfloat16" : dtype == "f16" ? "float16" : "float32";
  nlohmann::ordered_json config{{"architectures", {"LlamaForCausalLM"}},
                                {"model_type", "llama"},
                                {"hidden_size", shape.dim},
                                {"num_hidden_layers", shape.layers},
                                {"num_attention_heads", shape.heads},
                                {"num_key_value_heads", shape.kv_heads},
                                {"head_dim", shape.head_dim},
                                {"intermediate_size", shape.hidden},
                                {"vocab_size", shape.vocab},
                                {"rms_norm_eps", shape.norm_eps},
                                {"hidden_act", "silu"},
                                {"attention_bias", false},
                                {"mlp_bias", false},
                                {"tie_word_embeddings", shape.tied},
                                {"max_position_embeddings", 131072},
                                {"rope_theta", shape.rope_theta},
                                {"rope_scaling", nullptr},
                                {"torch_dtype", torch_dtype}};
  if (const auto& s = shape.rope_scaling)
    config["rope_scaling"] = {{"rope_type", "llama3"},
                              {"factor", s->factor},
                              {"low_freq_factor", s->low_freq_factor},
                              {"high_freq_factor", s->high_freq_factor},
                              {"original_max_position_embeddings", s->original_max_position}};
  return config.dump(2);
}

}  // namespace tessera::model
