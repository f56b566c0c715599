// SPDX-License-Identifier: Apache-2.0
// A TOML job file and flags: the file, then each argument behind a zero byte.
#include "input.hpp"
#include "tessera/config/resolve.hpp"

using namespace tessera;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fuzz::InputFolder folder;
  fuzz::Front input(data, size);
  std::vector<std::string> args{folder.put("job.toml", input.until('\0')).string()};
  while (!input.empty()) args.emplace_back(input.until('\0'));
  config::Resolved job;
  if (!fuzz::takes({ExitCode::usage}, [&] { job = config::resolve(args); })) return 0;
  config::Reading reading = config::read_job(args);
  config::find_unsupported(reading);
  if (config::message_of(reading.problems).size() > (1 << 20)) fuzz::found("an endless message");
  // What follows costs more than all before: one input in 64, by its content, as lengths repeat in
  // a corpus.
  if (std::hash<std::string_view>()({reinterpret_cast<const char*>(data), size}) % 64 != 0)
    return 0;
  // What was taken reads back as the same job, from rank 0's broadcast and from the file beside the
  // run.
  const std::string text = job.to_toml(), broadcast = job.serialize();
  if (config::Resolved::deserialize(broadcast).serialize() != broadcast)
    fuzz::found("another job after the broadcast");
  config::Resolved again;
  if (!fuzz::takes({}, [&] { again = config::resolve({folder.put("again.toml", text).string()}); }))
    fuzz::found("its own TOML is refused");
  return 0;
}
