// SPDX-License-Identifier: Apache-2.0
// Objects that are never destroyed.
#pragma once

#include <forward_list>
#include <mutex>
#include <utility>

namespace tessera {

/// Keeps an object until the process ends: a transfer that cannot be called back may still use its
/// memory. It stays reachable, so that leak checkers do not report it.
template <class T>
T& keep_for_ever(T object) {
  static auto* const mutex = new std::mutex;
  static auto* const kept = new std::forward_list<T>;
  const std::lock_guard lock(*mutex);
  return kept->emplace_front(std::move(object));
}

}  // namespace tessera
