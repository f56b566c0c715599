// SPDX-License-Identifier: Apache-2.0
#include "device_hooks.hpp"

#include <mutex>
#include <set>
#include <utility>

#include "tessera/comm/device.hpp"

namespace tessera::comm {
namespace {

struct Registered {
  std::mutex mutex;
  std::set<DeviceHooks*> all;
};
Registered& registered() {
  static auto* const instance = new Registered;  // outlives every communicator
  return *instance;
}

}  // namespace

DeviceHooks::DeviceHooks(Functions functions) : functions_(std::move(functions)) {
  const std::lock_guard lock(registered().mutex);
  registered().all.insert(this);
}

DeviceHooks::~DeviceHooks() {
  const std::lock_guard lock(registered().mutex);
  registered().all.erase(this);
}

void DeviceHooks::call(std::function<void()> Functions::*function) {
  const std::lock_guard lock(registered().mutex);
  for (const DeviceHooks* each : registered().all) (each->functions_.*function)();
}

void note_graph_capture() { DeviceHooks::call(&DeviceHooks::Functions::graph_begins); }

void note_graph_abandoned() { DeviceHooks::call(&DeviceHooks::Functions::graph_abandoned); }

void note_graph_launch() { DeviceHooks::call(&DeviceHooks::Functions::graph_launched); }

void collect_device_waits() { DeviceHooks::call(&DeviceHooks::Functions::collect_waits); }

}  // namespace tessera::comm
