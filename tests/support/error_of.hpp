// SPDX-License-Identifier: Apache-2.0
// What a call refuses.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "tessera/base/error.hpp"

namespace tessera::test {

/// The message of the Error that `call` throws, "" when it throws none. Fails the test when the
/// error has another code.
template <class Call>
std::string error_if_any(ExitCode code, const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  return "";
}

/// The same; fails the test when nothing is thrown.
template <class Call>
std::string error_of(ExitCode code, const Call& call) {
  const std::string message = error_if_any(code, call);
  if (message.empty()) ADD_FAILURE() << "nothing was thrown";
  return message;
}

}  // namespace tessera::test
