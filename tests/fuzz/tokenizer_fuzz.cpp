// SPDX-License-Identifier: Apache-2.0
// tokenizer.json; behind a zero byte, which JSON never holds, a text to encode.
#include "input.hpp"
#include "tessera/data/tokenizer.hpp"

using namespace tessera;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fuzz::InputFolder folder;
  fuzz::Front input(data, size);
  const auto file = folder.put("tokenizer.json", input.until('\0'));
  fuzz::takes({ExitCode::data}, [&] {
    const data::Tokenizer tokenizer = data::Tokenizer::load(file);
    for (const std::string_view text :
         {input.rest(), std::string_view("It's 12 o\u0301'clock \xff\n\n  <s>na\u00efve\t")}) {
      const auto ids = tokenizer.encode(text);
      (void)tokenizer.decode(ids);
      (void)tokenizer.pre_tokens(text);
    }
  });
  return 0;
}
