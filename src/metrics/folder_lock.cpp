// SPDX-License-Identifier: Apache-2.0
#include "tessera/metrics/folder_lock.hpp"

#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>

#include "folder_owner.hpp"
#include "run_files.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/log.hpp"
#include "tessera/base/text_file.hpp"
#include "tessera/metrics/run_folder.hpp"

namespace tessera::metrics {
namespace {

namespace fs = std::filesystem;
using FileClock = fs::file_time_type::clock;

/// Beyond what clocks of two machines differ by: no need to watch such a file.
constexpr std::chrono::minutes kLongAgo{10};

fs::path file_of(const fs::path& folder) { return folder / ".owner"; }

/// False where the file is there already.
bool create_exclusively(const fs::path& file, const std::string& text) {
  std::FILE* out = std::fopen(file.c_str(), "wxe");
  if (out == nullptr && errno == EEXIST) return false;
  if (out == nullptr) fail_errno(kRunFiles, "cannot write", file, errno);
  const bool written = std::fwrite(text.data(), 1, text.size(), out) == text.size();
  if (std::fclose(out) == 0 && written) return true;
  const int code = errno;
  std::error_code ignored;
  fs::remove(file, ignored);
  fail_errno(kRunFiles, "cannot write", file, code);
}

/// Empty where the file is not there. Opening it makes a network file system look again.
std::optional<FolderOwner> owner_in(const fs::path& file) {
  const auto text = read_text(file);
  return text ? std::optional(FolderOwner::parse(*text)) : std::nullopt;
}

std::optional<fs::file_time_type> touched(const fs::path& file) {
  std::error_code error;
  const auto time = fs::last_write_time(file, error);
  return error ? std::nullopt : std::optional(time);
}

/// Watches an owner on another machine. Compares no clocks but for what is long ago.
bool gives_a_sign_of_life(const fs::path& file, const FolderOwner& owner,
                          std::chrono::milliseconds silence) {
  const auto before = touched(file);
  if (!before || *before < FileClock::now() - kLongAgo) return false;
  log::info("{} belongs to another job ({}); waiting {} s for its heartbeat",
            file.parent_path().string(), owner.description(),
            std::chrono::ceil<std::chrono::seconds>(silence).count());
  const auto end = std::chrono::steady_clock::now() + silence;
  while (std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(silence / 30);
    const auto now = owner_in(file);
    if (!now) return false;
    if (now->token != owner.token || touched(file) != before) return true;
  }
  return false;
}

}  // namespace

struct FolderLock::Impl {
  Impl(fs::path path, std::string_view key_of_folder, Timing times)
      : folder(std::move(path)),
        file(file_of(folder)),
        key(key_of_folder),
        timing(times),
        me(FolderOwner::this_process()) {}

  void acquire() {
    constexpr int kTries = 100;  // one is enough but where others try, too
    for (int i = 0; i < kTries; ++i) {
      if (create_exclusively(file, me.text())) return;
      const auto owner = owner_in(file);
      if (!owner) continue;
      if (is_alive(*owner)) refuse();
      take_over_from(*owner);
    }
    fail_errno(kRunFiles, "cannot write", file, EACCES);
  }

  bool is_alive(const FolderOwner& owner) const {
    const auto running = is_running(owner, me);
    return running ? *running : gives_a_sign_of_life(file, owner, timing.silence);
  }

  [[noreturn]] void refuse() const {
    fail(ExitCode::environment,
         "{} is in use by another job ({}); wait for its end, stop it, or choose another {}",
         folder.string(), owner_in(file).value_or(FolderOwner{}).description(), key);
  }

  /// By a rename, which one of several succeeds with. Who finds that it moved a living owner's file
  /// puts it back.
  void take_over_from(const FolderOwner& dead) const {
    const fs::path aside = file.string() + "-" + me.token;
    std::error_code error;
    fs::rename(file, aside, error);
    if (error) return;
    if (owner_in(aside).value_or(FolderOwner{}).token != dead.token)
      fs::create_hard_link(aside, file, error);
    fs::remove(aside, error);
    log::info("{} was owned by a job that ended abnormally ({}); this job takes it over",
              folder.string(), dead.description());
  }

  void beat(const std::stop_token& stop) {
    std::unique_lock lock(mutex);
    while (!wake.wait_for(lock, stop, timing.heartbeat, [&] { return stop.stop_requested(); }))
      beat_once();
  }

  void beat_once() {
    std::error_code ignored;
    const auto owner = owner_in(file);
    if (owner && owner->token != me.token)
      lost = true;
    else if (owner)
      fs::last_write_time(file, FileClock::now(), ignored);
  }

  fs::path folder, file;
  std::string_view key;
  Timing timing;
  FolderOwner me;
  bool made_folder = false;
  std::atomic<bool> lost = false;
  std::mutex mutex;
  std::condition_variable_any wake;
  std::jthread heart;  ///< last: it uses the others
};

FolderLock::FolderLock(fs::path folder, std::string_view key)
    : FolderLock(std::move(folder), Timing{}, key) {}

FolderLock::FolderLock(fs::path folder, Timing timing, std::string_view key)
    : impl_(std::make_unique<Impl>(std::move(folder), key, timing)) {
  std::error_code ignored;
  impl_->made_folder = !fs::exists(impl_->folder, ignored);
  RunFolder{impl_->folder};
  impl_->acquire();
  impl_->heart =
      std::jthread([impl = impl_.get()](const std::stop_token& stop) { impl->beat(stop); });
}

FolderLock::~FolderLock() {
  impl_->heart = {};
  std::error_code ignored;
  const auto owner = owner_in(impl_->file);
  if (owner && owner->token == impl_->me.token) fs::remove(impl_->file, ignored);
  if (impl_->made_folder)
    fs::remove(impl_->folder, ignored);  // does nothing to one that holds files
}

void FolderLock::check() const {
  if (impl_->lost)
    fail(ExitCode::environment,
         "{} was taken over by another job ({}), because this one sent no heartbeat; stop one of "
         "the two, or choose another {}",
         impl_->folder.string(), owner_in(impl_->file).value_or(FolderOwner{}).description(),
         impl_->key);
}

bool FolderLock::is_owned(const fs::path& folder) {
  std::error_code ignored;
  return fs::exists(file_of(folder), ignored);
}

}  // namespace tessera::metrics
