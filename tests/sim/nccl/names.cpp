// SPDX-License-Identifier: Apache-2.0
#include "names.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <mutex>

namespace tessera::sim::nccl {
namespace {

struct Type {
  const char* name;
  std::size_t bytes;
};
constexpr std::array<Type, ncclNumTypes> kTypes{{{"int8", 1},
                                                 {"uint8", 1},
                                                 {"int32", 4},
                                                 {"uint32", 4},
                                                 {"int64", 8},
                                                 {"uint64", 8},
                                                 {"float16", 2},
                                                 {"float32", 4},
                                                 {"float64", 8},
                                                 {"bfloat16", 2},
                                                 {"float8e4m3", 1},
                                                 {"float8e5m2", 1}}};

struct Last {
  std::mutex mutex;
  std::string text;
};
Last& last() {
  static auto* instance = new Last;
  return *instance;
}

}  // namespace

const char* name_of(Kind kind) {
  static constexpr const char* kNames[] = {"ncclAllReduce", "ncclAllGather", "ncclReduceScatter",
                                           "ncclBroadcast", "ncclAlltoAll",  "ncclSend",
                                           "ncclRecv"};
  return kNames[static_cast<int>(kind)];
}

const char* name_of(ncclDataType_t type) {
  return size_of(type) ? kTypes[static_cast<std::size_t>(type)].name : "?";
}

const char* name_of(ncclRedOp_t op) {
  static constexpr const char* kNames[] = {"sum", "prod", "max", "min", "avg"};
  return op >= 0 && op < ncclNumOps ? kNames[op] : "?";
}

const char* text_of(ncclResult_t result) {
  static constexpr const char* kTexts[] = {"no error",
                                           "unhandled cuda error",
                                           "unhandled system error",
                                           "internal error",
                                           "invalid argument",
                                           "invalid usage",
                                           "remote process exited or there was a network error",
                                           "NCCL operation in progress"};
  return result >= 0 && result < ncclNumResults ? kTexts[result] : "unknown result code";
}

std::size_t size_of(ncclDataType_t type) {
  return type >= 0 && type < ncclNumTypes ? kTypes[static_cast<std::size_t>(type)].bytes : 0;
}

std::string describe(const Call& call) {
  std::string text = fmt::format("{}(", name_of(call.kind));
  if (reduces(call.kind)) text += fmt::format("{}, ", name_of(call.op));
  text += fmt::format("{}, {} elements", name_of(call.type), call.count);
  if (call.kind == Kind::broadcast) text += fmt::format(", root {}", call.peer);
  if (call.kind == Kind::send) text += fmt::format(", to rank {}", call.peer);
  if (call.kind == Kind::recv) text += fmt::format(", from rank {}", call.peer);
  return text + ")";
}

void remember(const std::string& text) {
  const std::lock_guard lock(last().mutex);
  last().text = text;
}

void tell(const std::string& text) {
  remember(text);
  std::fprintf(stderr, "sim nccl: %s\n", text.c_str());
}

const char* last_told() {
  thread_local std::string copy;
  const std::lock_guard lock(last().mutex);
  copy = last().text;
  return copy.c_str();
}

}  // namespace tessera::sim::nccl
