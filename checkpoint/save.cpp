#include <algorithm>
#include <chrono>
#include <ctime>

#include "box.hpp"
#include "collective.hpp"
#include "file_io.hpp"
#include "index_file.hpp"
#include "json_text.hpp"
#include "shard_plan.hpp"
#include "shard_writer.hpp"
#include "step_folder.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/log.hpp"
#include "tessera/checkpoint/checkpoint.hpp"

namespace tessera::checkpoint {
namespace {

namespace fs = std::filesystem;

std::string now_utc() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

/// One attempt to save. Each step is collective and ends with all ranks knowing whether all succeeded, so that an
/// asynchronous save can run write() on other threads and come back for commit().
class Saving {
 public:
  Saving(comm::Communicator& control, const SaveOptions& options, const State& state, std::span<const SliceView> views)
      : control_(control), options_(options), state_(state), views_(views) {}

  SaveResult run() {
    const auto begin = std::chrono::steady_clock::now();
    try {
      plan();
      if (open_attempt()) {
        write();
        commit();
      }
    } catch (...) {
      if (is_root() && !partial_.empty()) remove_quietly(partial_);
      throw;
    }
    result_.folder = final_;
    result_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return result_;
  }

 private:
  bool is_root() const { return control_.rank() == 0; }
  void stage(SaveStage stage) const {
    if (options_.on_stage) options_.on_stage(stage);
  }

  /// What this rank writes, and the table of all tensors on every rank.
  void plan() {
    std::string mine;
    together(control_, [&] {
      check_options();
      check_views(views_);
      pieces_ = owned_pieces(views_);
      mine = table_of(views_, pieces_).to_text();
    });
    std::string all = reduce_to_root(control_, std::move(mine), TensorTable::merge_texts);
    together(control_, [&] {
      if (is_root()) check_table(TensorTable::from_text(all));
    });
    const TensorTable table = TensorTable::from_text(comm::broadcast_string(control_, all, 0));
    tensors_ = table.tensors();
    for (const TensorInfo& tensor : tensors_) result_.bytes += *checked_bytes(tensor.shape, tensor.dtype);
  }

  void check_options() {
    require(options_.files == FileLayout::rank, ExitCode::usage,
            "checkpoint files \"node\" and \"single\" are not implemented; use \"rank\"");
    require(state_.step >= 0, ExitCode::usage, "step {} cannot be saved", state_.step);
    require(!options_.coord_name.empty() && options_.coord_name.find('/') == std::string::npos, ExitCode::usage,
            "\"{}\" cannot name a shard file", options_.coord_name);
    const nlohmann::json extra = parse_json(state_.json_extra, {"the training state", ExitCode::usage});
    require(extra.is_object(), ExitCode::usage, "the training state is not a JSON object");
    extra_ = extra.dump();
  }

  /// The ranks' boxes must make up each tensor: a hole would show only when the job is resumed.
  static void check_table(const TensorTable& table) {
    require(table.conflict().empty(), ExitCode::usage, "cannot save: {}", table.conflict());
    for (const auto& [name, row] : table.rows())
      require(row.elements == element_count(row.shape), ExitCode::usage,
              "cannot save: the ranks' boxes of {} {} hold {} elements where {} were expected (wrong boxes or replica "
              "numbers)",
              name, to_string(row.shape), row.elements, element_count(row.shape));
  }

  /// Makes the partial folder. False when a valid checkpoint of this step is there already and is kept.
  bool open_attempt() {
    final_ = options_.folder / step_name(state_.step);
    bool exists = false;
    together(control_, [&] {
      if (!is_root()) return;
      make_folder(options_.folder);
      remove_dead_attempts(options_.folder, options_.stale_partial_seconds);
      exists = fs::exists(final_);
      uuid_ = make_uuid();
    });
    exists_ = comm::all_reduce_scalar(control_, static_cast<std::int64_t>(exists), comm::Op::max) != 0;
    if (exists_ && existing_is_valid()) {
      result_.kept_existing = true;
      return false;
    }
    uuid_ = comm::broadcast_string(control_, uuid_, 0);
    partial_ = partial_path(options_.folder, state_.step, uuid_);
    together(control_, [&] {
      if (is_root()) make_partial(partial_);
    });
    together(control_, [&] { stage(SaveStage::prepared); });
    return true;
  }

  /// Every byte is looked at, by all ranks together: a checkpoint that could not be loaded must not shadow this one.
  bool existing_is_valid() {
    const auto findings = verify(final_, true, control_.rank(), control_.size());
    for (const Finding& finding : findings) log::warning("{}", finding.what);
    return comm::all_reduce_scalar(control_, static_cast<std::int64_t>(findings.size()), comm::Op::max) == 0;
  }

  void write() {
    together(control_, [&] {
      if (pieces_.empty()) return;
      const std::string name = fmt::format("shard-{}.h5", options_.coord_name);
      record_ = to_text(write_shard(partial_ / name, options_.coord_name, std::move(pieces_), tensors_));
    });
    together(control_, [&] { stage(SaveStage::written); });
  }

  void commit() {
    const std::string records = reduce_to_root(control_, record_, [](std::string a, const std::string& b) {
      return a.empty() || b.empty() ? a + b : a + "," + b;
    });
    Manifest manifest;
    together(control_, [&] {
      if (!is_root()) return;
      manifest = make_manifest(records);
      if (options_.write_index) manifest.index = write_index(partial_, manifest);
    });
    together(control_, [&] { stage(SaveStage::indexed); });
    together(control_, [&] {
      if (is_root()) seal(manifest);
    });
    together(control_, [&] { stage(SaveStage::committing); });
    bool kept = false;
    together(control_, [&] {
      if (is_root()) kept = !make_visible();
    });
    result_.kept_existing = comm::all_reduce_scalar(control_, static_cast<std::int64_t>(kept), comm::Op::max) != 0;
    if (is_root()) tidy();
  }

  Manifest make_manifest(const std::string& records) const {
    Manifest manifest{
        uuid_,    state_.step, options_.mesh, now_utc(), "tessera " TESSERA_VERSION, options_.config_toml, extra_,
        tensors_, {},          std::nullopt};
    manifest.shards = parse_shards("[" + records + "]", static_cast<std::int64_t>(tensors_.size()), partial_);
    std::sort(manifest.shards.begin(), manifest.shards.end(),
              [](const ShardRecord& a, const ShardRecord& b) { return NaturalOrder()(a.name, b.name); });
    return manifest;
  }

  void seal(const Manifest& manifest) const {
    drop_owner_note(partial_);
    write_text(partial_ / kManifestName, to_text(manifest), ExitCode::checkpoint);
    sync_folder(partial_, ExitCode::checkpoint);
  }

  /// The one moment at which the checkpoint comes into being. False when another attempt was faster and its one is
  /// kept.
  bool make_visible() {
    if (exists_) rename_path(final_, damaged_path(options_.folder, state_.step, uuid_), ExitCode::checkpoint);
    if (fs::exists(final_) && verify(final_, false).empty()) {
      remove_quietly(partial_);
      return false;
    }
    rename_path(partial_, final_, ExitCode::checkpoint);
    partial_.clear();
    sync_folder(options_.folder, ExitCode::checkpoint);
    return true;
  }

  /// What may fail without harm: the checkpoint is there.
  void tidy() const {
    try {
      write_hint(options_.folder, final_.filename().string(), uuid_);
      retain_newest(options_.folder, options_.keep_latest_k);
    } catch (const std::exception& error) {
      log::warning("{}", error.what());
    }
  }

  comm::Communicator& control_;
  const SaveOptions& options_;
  const State& state_;
  std::span<const SliceView> views_;
  std::vector<Piece> pieces_;
  std::vector<TensorInfo> tensors_;
  std::string extra_, uuid_, record_;
  fs::path partial_, final_;
  bool exists_ = false;
  SaveResult result_;
};

}  // namespace

FileLayout file_layout_from_name(std::string_view name) {
  if (name == "rank") return FileLayout::rank;
  if (name == "node") return FileLayout::node;
  if (name == "single") return FileLayout::single;
  fail(ExitCode::usage, "\"{}\" is no layout of checkpoint files; use \"rank\", \"node\" or \"single\"", name);
}

SaveResult save(comm::Communicator& control, const SaveOptions& options, const State& state,
                std::span<const SliceView> views) {
  return Saving(control, options, state, views).run();
}

}  // namespace tessera::checkpoint
