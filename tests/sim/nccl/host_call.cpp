// SPDX-License-Identifier: Apache-2.0
#include "host_call.hpp"

#include <fmt/format.h>

#include <exception>

#include "names.hpp"

namespace tessera::sim::nccl {
namespace {

const char* name_of(HostCall::Kind kind) {
  switch (kind) {
    case HostCall::Kind::split:
      return "ncclCommSplit";
    case HostCall::Kind::finalize:
      return "ncclCommFinalize";
    case HostCall::Kind::window:
      return "ncclCommWindowRegister";
    default:
      return "nothing";
  }
}

}  // namespace

ncclResult_t result_of(const Communicator& communicator, const std::function<void()>& work) {
  try {
    work();
    return ncclSuccess;
  } catch (const Failure& failure) {
    if (communicator.is_open() && communicator.segment().broken == Segment::Broken::yes)
      remember(failure.what());  // who found it has told it
    else
      tell(failure.what());
    return failure.result();
  } catch (const std::exception& error) {
    tell(error.what());
    return ncclSystemError;
  }
}

void meet_in(Communicator& c, const HostCall& call) {
  c.mine().host_call = call;
  if (!c.meet_on_host()) c.throw_reason();
  for (int r = 0; r < c.size(); ++r) {
    if (c.slot(r).host_call.kind == call.kind) continue;
    c.break_rule(fmt::format("rank {} of {} calls {}, and rank {} calls {}", c.rank(), c.title(),
                             name_of(call.kind), r, name_of(c.slot(r).host_call.kind)));
    c.throw_reason();
  }
}

}  // namespace tessera::sim::nccl
