// SPDX-License-Identifier: Apache-2.0
// train, bench, eval, generate and --version: this process becomes the program that has them.
#include "tensor_program.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "tensor_commands.hpp"
#include "this_program.hpp"

namespace {

using namespace tessera::app;

/// In libexec, or next to `tessera` where somebody copied both.
std::filesystem::path tensor_program(const std::filesystem::path& folder) {
  const std::filesystem::path beside = folder / "tessera-tensors";
  std::error_code ignored;
  return std::filesystem::exists(beside, ignored) ? beside
                                                  : folder / "../libexec/tessera/tessera-tensors";
}

}  // namespace

namespace tessera::app {

void become_tensor_program(const std::string& command, const Args& args) {
  const std::string self = this_program();
  const std::filesystem::path program = tensor_program(std::filesystem::path(self).parent_path());
  std::vector<std::string> words{self, command};  // the name that users look for among processes
  words.insert(words.end(), args.begin(), args.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  execv(program.c_str(), pointers.data());
  tessera::fail(tessera::ExitCode::environment, "cannot start '{}': {}; install Tessera again",
                program.string(), std::strerror(errno));
}

}  // namespace tessera::app

namespace {

template <const TensorCommand& command>
int run(const Args& args) {
  become_tensor_program(command.name, args);
}

template <const TensorCommand& command>
const CommandRegistration registration{command.name, command.summary, &run<command>};

template const CommandRegistration registration<kTrain>;
template const CommandRegistration registration<kEval>;
template const CommandRegistration registration<kBench>;
template const CommandRegistration registration<kGenerate>;
template const CommandRegistration registration<kShowVersion>;

}  // namespace
