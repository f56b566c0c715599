// SPDX-License-Identifier: Apache-2.0
#include "unit/planner/published_rows.hpp"

#include <algorithm>
#include <array>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace tessera::planner {
namespace {

using nlohmann::json;

template <class E, std::size_t N>
E choice(const json& row, const char* key, const std::array<const char*, N>& words) {
  if (!row.contains(key)) return E{};
  const auto found = std::ranges::find(words, row[key].get<std::string>());
  if (found == words.end()) throw std::runtime_error("unknown " + std::string(key));
  return static_cast<E>(found - words.begin());
}

Architecture architecture(const std::string& name, const json& from) {
  Architecture out;
  out.name = name;
  out.dim = from["dim"], out.layers = from["layers"];
  out.heads = from["heads"], out.kv_heads = from["kv_heads"];
  out.head_dim = from["head_dim"], out.vocab = from["vocab"];
  out.hidden = from.value("hidden", 0);
  out.gated = from.value("gated", true), out.tied = from.value("tied", false);
  out.qk_norm = from.value("qk_norm", false), out.window = from.value("window", 0);
  out.learned_positions = from.value("learned_positions", 0);
  if (from.contains("latent")) {
    const json& latent = from["latent"];
    out.latent.emplace();
    out.latent->query_rank = latent["q_rank"], out.latent->rank = latent["kv_rank"];
    out.latent->rope_dim = latent["rope_dim"], out.latent->nope_dim = latent["nope_dim"];
    out.latent->value_dim = latent["v_dim"];
  }
  if (from.contains("mixture")) {
    const json& m = from["mixture"];
    out.mixture = ExpertShape{m["experts"], m["top_k"],       m["hidden"],
                              m["shared"],  m["first_dense"], m["every"]};
    out.mixture->biased = m.value("biased", false);
  }
  return out;
}

/// Stages as [how many of them, [dense blocks, mixtures, embedding, head, predictors]].
Pipeline pipeline(const json& row) {
  Pipeline out;
  const int ranks = row.value("pp", 1), chunks = row.value("chunks", 1);
  out.map = schedule::StageMap::loop(ranks, chunks);
  out.kind = chunks > 1 ? schedule::Kind::interleaved : schedule::Kind::one_f_one_b;
  out.microbatches = row["microbatches"];
  for (const json& run : row["stages"])
    for (int i = 0; i < run[0].get<int>(); ++i)
      out.stages.push_back({run[1][0], run[1][1], run[1][2].get<int>() != 0,
                            run[1][3].get<int>() != 0, run[1][4].get<std::int64_t>()});
  return out;
}

void set_sharding(const json& row, Workload& work) {
  work.tp = row.value("tp", 1), work.cp = row.value("cp", 1);
  work.ep = row.value("ep", 1), work.etp = row.value("etp", 1);
  work.fsdp = row.value("fsdp", 1), work.replicate = row.value("replicate", 1);
  work.distributed_optimizer = !row.contains("fsdp");
  work.reshard = row.value("reshard", true);
  work.unsharded_gradients = !work.reshard;  // PyTorch does both where there is a pipeline
}

Workload workload(const json& row, const Architecture& model) {
  Workload work;
  work.model = model;
  work.pipeline = pipeline(row);
  for (const StageContent& stage : work.pipeline.stages) work.model.predictors += stage.predictors;
  work.gpus = row["gpus"], work.seq = row["seq"], work.microbatch = row["microbatch"];
  work.precision = choice<Precision, 7>(
      row, "precision",
      {"f32", "bf16", "fp8_delayed", "fp8_current", "mxfp8", "nvfp4", "fp8_torchao"});
  work.recompute = choice<Recompute, 6>(
      row, "recompute",
      {"none", "full", "save_qkv", "every_second_mm", "latent_up", "feed_forward"});
  work.recomputed_blocks = row.value("recomputed_blocks", 1.0);
  work.dispatcher = row.contains("dispatcher") ? Dispatcher::once_a_domain : Dispatcher::alltoall;
  work.graphs = choice<Graphs, 3>(row, "graphs", {"none", "partial", "full"});
  work.offloaded_layers = row.value("offloaded_layers", 0);
  work.async_tp = row.value("async_tp", false);
  work.exchange_overlap = row.value("exchange_overlap", false);
  work.fused_grouped = row.value("fused_grouped", false);
  work.balanced = row.value("balanced", true);
  set_sharding(row, work);
  return work;
}

}  // namespace

Machine PublishedRow::machine_used() const {
  Machine out = load_machine(machine);
  if (nic_bytes_per_second > 0) out.nic_bytes_per_second = nic_bytes_per_second;
  if (nvlink_domain > 0) out.nvlink_domain = nvlink_domain;
  return out;
}

std::vector<PublishedRow> published_rows() {
  const json file = json::parse(std::ifstream(TESSERA_PUBLISHED));
  std::map<std::string, Architecture> models;
  for (const auto& [name, model] : file["models"].items())
    models.emplace(name, architecture(name, model));
  std::vector<PublishedRow> rows;
  for (const json& row : file["rows"])
    rows.push_back({row["stack"], row["machine"], row["model"],
                    workload(row, models.at(row["model"].get<std::string>())),
                    row.value("nic_gb_s", 0.0) * 1e9, row.value("nvlink_domain", 0),
                    row["tokens_per_second_per_gpu"],
                    row.value("memory_gib", 0.0) * 1024 * 1024 * 1024,
                    row.value("further", false)});
  return rows;
}

}  // namespace tessera::planner
