// SPDX-License-Identifier: Apache-2.0
#include "tessera/comm/device.hpp"

namespace tessera::comm {
namespace {

thread_local int scopes = 0;

}  // namespace

WaitsBeside::WaitsBeside() { ++scopes; }
WaitsBeside::~WaitsBeside() { --scopes; }
bool WaitsBeside::here() { return scopes > 0; }

}  // namespace tessera::comm
