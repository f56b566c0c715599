// SPDX-License-Identifier: Apache-2.0
#include "tessera/comm/hooks.hpp"

#include <mutex>
#include <utility>

#include "call_log.hpp"
#include "hook_list.hpp"

namespace tessera::comm {
namespace {

std::mutex& list_mutex() {
  static auto* const instance = new std::mutex;
  return *instance;
}

/// Outlives every communicator.
std::shared_ptr<const HookList>& list() {
  static auto* const instance = new std::shared_ptr<const HookList>(
      std::make_shared<const HookList>(1, make_call_recorder()));
  return *instance;
}

template <class Change>
void change_list(Change change) {
  const std::lock_guard lock(list_mutex());
  HookList changed = *list();
  change(changed);
  list() = std::make_shared<const HookList>(std::move(changed));
}

}  // namespace

void add_hook(std::shared_ptr<Hook> hook) {
  change_list([&](HookList& hooks) { hooks.insert(hooks.end() - 1, std::move(hook)); });
}

void remove_hook(const std::shared_ptr<Hook>& hook) {
  change_list([&](HookList& hooks) { std::erase(hooks, hook); });
}

std::shared_ptr<const HookList> hooks() noexcept {
  const std::lock_guard lock(list_mutex());
  return list();
}

void call_before_abort(std::string_view why) noexcept {
  for (const auto& hook : *hooks()) hook->before_abort(why);
}

}  // namespace tessera::comm
