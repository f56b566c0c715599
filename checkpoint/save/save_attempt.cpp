// SPDX-License-Identifier: Apache-2.0
#include "save/save_attempt.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>

#include "format/collective.hpp"
#include "format/index_file.hpp"
#include "format/step_folder.hpp"
#include "tessera/base/box.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/file.hpp"
#include "tessera/base/json.hpp"
#include "tessera/base/json_reader.hpp"
#include "tessera/base/log.hpp"
#include "tessera/checkpoint/retention.hpp"
#include "tessera/comm/agreement.hpp"

namespace tessera::checkpoint {
namespace {

namespace fs = std::filesystem;

/// The ranks' boxes must make up each tensor: a hole would show only when the job is resumed.
void check_table(const TensorTable& table) {
  require(table.conflict().empty(), ExitCode::usage, "cannot save: {}", table.conflict());
  for (const auto& [name, row] : table.rows())
    require(row.elements == element_count(row.shape), ExitCode::usage,
            "cannot save: the ranks' boxes of {} {} hold {} elements where {} were expected (wrong "
            "boxes or replica "
            "numbers)",
            name, to_string(row.shape), row.elements, element_count(row.shape));
}

}  // namespace

SaveAttempt::SaveAttempt(comm::Communicator& control, const FileGroup& group, SaveOptions options,
                         State state, std::span<const SliceView> views,
                         std::shared_ptr<const ShardLayout> layout)
    : control_(control),
      group_(group),
      options_(std::move(options)),
      state_(std::move(state)),
      views_(views.begin(), views.end()),
      file_{.writers = {}, .plans = {}, .layout = std::move(layout), .writer = {}, .checksums = {}},
      folders_{.uuid = {}, .partial = {}, .whole = options_.folder / step_name(state_.step)} {}

void SaveAttempt::stage(SaveStage stage) const {
  if (options_.on_stage) options_.on_stage(stage);
}

bool SaveAttempt::prepare() {
  plan();
  if (!make_attempt()) {
    result_.kept_existing = true;
    return false;
  }
  comm::on_all_ranks(control_, [&] { stage(SaveStage::prepared); });
  return true;
}

/// What this rank writes, and the table of all tensors on every rank.
void SaveAttempt::plan() {
  std::string mine;
  comm::on_all_ranks(control_, [&] {
    check_options();
    check_views(views_);
    parts_ = owned_parts(views_);
    mine = table_of(views_, parts_).to_text();
  });
  const std::string all = reduce_to_root(control_, std::move(mine), TensorTable::merge_texts);
  const TensorTable table = TensorTable::from_text(comm::on_rank_zero(control_, [&] {
    check_table(TensorTable::from_text(all));
    return all;
  }));
  tensors_ = table.tensors();
  for (const TensorInfo& tensor : tensors_)
    result_.bytes += *checked_bytes(tensor.shape, tensor.dtype);
  plan_file();
}

/// What the ranks of this rank's file write into it.
void SaveAttempt::plan_file() {
  file_.plans = all_gather_words(group_.ranks(), pack(parts_, tensors_));
  file_.writers = comm::all_gather_strings(group_.ranks(), options_.coord_name);
}

std::vector<PlannedBox> SaveAttempt::file_boxes() const {
  const int me = group_.ranks().rank();
  std::vector<PlannedBox> all;
  for (int writer = 0; writer < group_.ranks().size(); ++writer) {
    std::vector<PlannedBox> boxes = unpack(file_.plans[static_cast<std::size_t>(writer)], tensors_);
    for (std::size_t i = 0; i < boxes.size(); ++i) {
      boxes[i].writer = writer;
      if (writer == me) boxes[i].data = static_cast<const std::byte*>(parts_[i].data);
    }
    std::move(boxes.begin(), boxes.end(), std::back_inserter(all));
  }
  return all;
}

void SaveAttempt::check_options() {
  require(state_.step >= 0, ExitCode::usage, "step {} cannot be saved", state_.step);
  require(!options_.coord_name.empty() && options_.coord_name.find('/') == std::string::npos,
          ExitCode::usage, "\"{}\" cannot name a shard file", options_.coord_name);
  const nlohmann::json extra =
      parse_json(state_.json_extra, {"the training state", ExitCode::usage});
  require(extra.is_object(), ExitCode::usage, "the training state is not a JSON object");
  extra_ = json_text(extra);
}

/// Makes the partial folder. False when a valid checkpoint of this step is there already.
bool SaveAttempt::make_attempt() {
  folders_.uuid = comm::on_rank_zero(control_, [&] {
    make_folders(options_.folder, ExitCode::checkpoint);
    if (group_.spans_nodes()) require_coherent(options_.folder);
    remove_dead_attempts(options_.folder, options_.stale_partial_seconds);
    folders_.exists = fs::exists(folders_.whole);
    return make_uuid();
  });
  folders_.exists = comm::all_reduce_scalar(control_, static_cast<std::int64_t>(folders_.exists),
                                            comm::Op::max) != 0;
  if (folders_.exists && existing_is_valid()) return false;
  folders_.partial = comm::on_rank_zero(control_, [&] {
    const fs::path partial = partial_path(options_.folder, state_.step, folders_.uuid);
    make_folder(partial, ExitCode::checkpoint);
    return partial.string();
  });
  return true;
}

/// Every byte is looked at, by all ranks together: a checkpoint that could not be loaded must not
/// shadow this one.
bool SaveAttempt::existing_is_valid() const {
  const auto findings = verify(folders_.whole, true, control_.rank(), control_.size());
  for (const Finding& finding : findings) log::warning("{}", finding.what);
  return comm::all_reduce_scalar(control_, static_cast<std::int64_t>(findings.size()),
                                 comm::Op::max) == 0;
}

void SaveAttempt::copy_by(CopyEngine& engine) {
  std::size_t bytes = 0;
  for (const SliceView& part : parts_) bytes += bytes_of(part.slice);
  std::byte* memory = engine.reserve(bytes);
  for (SliceView& part : parts_) {
    engine.copy(memory, part.data, bytes_of(part.slice));
    part.data = memory;
    memory += bytes_of(part.slice);
  }
}

void SaveAttempt::write() {
  const int me = group_.ranks().rank();
  std::vector<PlannedBox> boxes = file_boxes();
  if (boxes.empty() || (parts_.empty() && me != 0)) return;
  file_.writer.emplace(folders_.partial / group_.file_name(options_.coord_name), file_.writers,
                       std::move(boxes), tensors_, file_.layout);
  file_.layout = file_.writer->layout();
  file_.checksums.resize(1);
  file_.checksums[0] =
      file_.writer->write_boxes(me, [](const PlannedBox& planned) { return planned.data; });
  if (group_.is_shared())
    file_.writer->sync();
  else
    record_ = to_text(file_.writer->finish(file_.checksums));
}

void SaveAttempt::share_checksums() {
  file_.checksums = all_gather_words(
      group_.ranks(), file_.writer ? file_.checksums[0] : std::vector<std::uint32_t>());
}

void SaveAttempt::seal() {
  if (file_.writer && group_.ranks().rank() == 0)
    record_ = to_text(file_.writer->finish(file_.checksums));
  file_.writer.reset();
}

void SaveAttempt::collect() {
  comm::on_all_ranks(control_, [&] { stage(SaveStage::written); });
  record_ = reduce_to_root(control_, std::move(record_), [](std::string a, const std::string& b) {
    return a.empty() || b.empty() ? a + b : a + "," + b;
  });
}

void SaveAttempt::commit() {
  manifest_ = make_manifest();
  write_text(folders_.partial / kManifestName, to_text(manifest_), ExitCode::checkpoint);
  sync_folder(folders_.partial, ExitCode::checkpoint);
  result_.kept_existing = !make_visible();
}

Manifest SaveAttempt::make_manifest() const {
  Manifest manifest = new_manifest(folders_.uuid, state_.step, options_.mesh, options_.config_toml,
                                   extra_, tensors_);
  manifest.shards = parse_shards("[" + record_ + "]", static_cast<std::int64_t>(tensors_.size()),
                                 folders_.partial);
  std::sort(
      manifest.shards.begin(), manifest.shards.end(),
      [](const ShardRecord& a, const ShardRecord& b) { return NaturalOrder()(a.name, b.name); });
  return manifest;
}

/// The commit: from now on, the checkpoint exists. False when another attempt was faster and its
/// checkpoint is kept.
bool SaveAttempt::make_visible() {
  if (folders_.exists)
    rename_path(folders_.whole, damaged_path(options_.folder, state_.step, folders_.uuid),
                ExitCode::checkpoint);
  if (fs::exists(folders_.whole) && verify(folders_.whole, false).empty()) {
    remove_quietly(folders_.partial);
    return false;
  }
  rename_path(folders_.partial, folders_.whole, ExitCode::checkpoint);
  folders_.partial.clear();
  sync_folder(options_.folder, ExitCode::checkpoint);
  return true;
}

SaveResult SaveAttempt::conclude() {
  const auto kept = static_cast<std::int64_t>(result_.kept_existing);
  result_.kept_existing = comm::all_reduce_scalar(control_, kept, comm::Op::max) != 0;
  result_.folder = folders_.whole;
  result_.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
  return result_;
}

void SaveAttempt::tidy() const {
  warn_if_it_fails([&] { write_hint(options_.folder); });
  warn_if_it_fails([&] {
    retain(options_.folder, {options_.keep_latest_k, options_.keep_every}, state_.step);
  });
  if (manifest_.uuid.empty() || result_.kept_existing) return;
  if (options_.write_index)
    warn_if_it_fails([&] { write_index(options_.folder, folders_.whole, manifest_); });
}

void SaveAttempt::abandon() {
  if (is_root() && !folders_.partial.empty()) remove_quietly(folders_.partial);
}

}  // namespace tessera::checkpoint
