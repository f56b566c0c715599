// SPDX-License-Identifier: Apache-2.0
// tessera data prepare | show | verify | inspect.
#include <fmt/format.h>

#include <iostream>

#include "command.hpp"
#include "command_line.hpp"
#include "corpus_flags.hpp"
#include "data_inspect.hpp"
#include "tessera/base/log.hpp"
#include "tessera/data/prepare.hpp"

namespace {

namespace data = tessera::data;

std::string describe(const data::TokenFileInfo& info) {
  return fmt::format("{} tokens in {} documents, vocabulary {}, u{}", info.token_count,
                     info.document_count, info.vocab_size, 8 * info.token_bytes);
}

std::string id_text(std::optional<int> id) { return id ? std::to_string(*id) : "none"; }

struct Prepare {
  tessera::app::CorpusFlags corpus;
  data::PrepareOptions options;
  std::string tokenizer, output;
  tessera::app::Flags app;

  explicit Prepare(tessera::app::Flags& parent)
      : app(parent.add_subcommand("prepare", "tokenize text into a token file")) {
    app.add_option("--tokenizer", tokenizer, "tokenizer.json or its folder").required();
    app.add_option("-o,--output", output, "the token file to write").required();
    app.add_option("--seed", options.seed, "seed of the shuffle of documents [0]").at_least(0);
    app.add_option("--threads", options.threads, "threads that encode text [all cores]").positive();
    corpus.add_to(app);
  }

  int run() {
    // It may be the text itself, or a job.
    tessera::require(!std::filesystem::exists(output) || std::filesystem::is_directory(output) ||
                         data::TokenFile::is_token_file(output),
                     tessera::ExitCode::usage,
                     "'{}' is there and is not a token file; name another file", output);
    const data::Tokenizer loaded = data::Tokenizer::load(tokenizer);
    if (!loaded.bos_id() && !loaded.eos_id())
      tessera::log::warning(
          "the tokenizer has no token for the begin or the end of a document: nothing separates "
          "documents; name its eos_token in tokenizer_config.json");
    const auto folder = std::filesystem::absolute(output).parent_path();
    const data::TokenFileInfo info = data::prepare(corpus.open(folder), loaded, output, options,
                                                   data::terminal_progress("data prepare"));
    std::cout << fmt::format("{}: {}\n", output, describe(info));
    return 0;
  }
};

struct OneFile {
  std::string file;
  tessera::app::Flags app;

  OneFile(tessera::app::Flags& parent, const char* name, const char* summary)
      : app(parent.add_subcommand(name, summary)) {
    app.add_option("file", file, "token file").required();
  }

  int show() const {
    const data::TokenFileInfo info = data::TokenFile::open(file).info();
    std::cout << fmt::format("{}: {}\nbos {}, eos {}, seed {}, tokenizer {:016x}, text {:016x}\n",
                             file, describe(info), id_text(info.bos_id), id_text(info.eos_id),
                             info.seed, info.tokenizer_hash, info.source_hash);
    return 0;
  }

  int verify() const {
    const data::TokenFile tokens = data::TokenFile::open(file);
    tokens.verify(data::terminal_progress("data verify"));
    std::cout << fmt::format("{}: hash OK, {}\n", file, describe(tokens.info()));
    return 0;
  }
};

int run(const tessera::app::Args& args) {
  tessera::app::Flags app{"Makes and inspects token files, which training reads.", "data"};
  app.require_subcommand();
  Prepare prepare(app);
  OneFile show(app, "show", "print the header of a token file");
  OneFile verify(app, "verify", "compare a token file with its hash");
  tessera::app::DataInspect inspect(app);
  const auto [own, job_flags] = tessera::app::split_job_flags(args, {"--tokenizer"});
  if (!app.parse(own)) return 0;
  if (inspect.asked()) return inspect.run(job_flags);
  tessera::require(job_flags.empty(), tessera::ExitCode::usage,
                   "{} is a key of a job; only `tessera data inspect` takes those",
                   job_flags.empty() ? "" : job_flags.front());
  if (prepare.app.parsed()) return prepare.run();
  return show.app.parsed() ? show.show() : verify.verify();
}

const tessera::app::CommandRegistration registration{
    "data", "make token files; inspect token files and samples", &run};

}  // namespace
