#include "cli/model/sample_printer.h"

#include <cstdio>
#include <numeric>
#include <optional>
#include <string>

#include "base/files/file.h"
#include "cli/model/sampled_model.h"
#include "cli/terminal/terminal.h"

namespace sluice::cli {
namespace {

/// A line end after each sample.
class TextSamples final : public SamplePrinter {
 public:
  explicit TextSamples(const text::Tokenizer& tokenizer) : tokenizer_(tokenizer), text_(tokenizer) {}

  void grown(std::span<const int64_t> tokens) override { text_.grown(tokens); }

  void ended(const SampleName&, const Json&, const models::SampleResult& result) override {
    text_.grown(without_end(result));
    text_.finish();
    std::printf("\n");
    std::fflush(stdout);
    text_ = GrowingText(tokenizer_);
  }

 private:
  const text::Tokenizer& tokenizer_;
  GrowingText text_;
};

class JsonSamples final : public SamplePrinter {
 public:
  JsonSamples(const SampleArguments& arguments, const text::Tokenizer& tokenizer) : arguments_(arguments), tokenizer_(tokenizer) {
    if (!arguments.output.empty()) file_.emplace(arguments.output);
  }

  void grown(std::span<const int64_t>) override {}

  void ended(const SampleName& name, const Json& prompt, const models::SampleResult& result) override {
    Json line = {{"prompt", prompt},
                 {"row", name.row},
                 {"index", name.index},
                 {"text", tokenizer_.decode(without_end(result), /*skip_special=*/true)},
                 {"finish", finish_name(result.finish)},
                 {"token_count", result.tokens.size()},
                 {"logprob_sum", std::accumulate(result.logprobs.begin(), result.logprobs.end(), 0.0)},
                 {"seed", arguments_.sampling.seed}};
    if (arguments_.tokens) line["tokens"] = result.tokens, line["logprobs"] = result.logprobs;
    print_line(line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
  }

  void finish() override {
    if (file_) file_->close();
  }

 private:
  void print_line(const std::string& line) {
    if (file_) return file_->write(line);
    print_text(line);
    std::fflush(stdout);
  }

  const SampleArguments& arguments_;
  const text::Tokenizer& tokenizer_;
  std::optional<OutputFile> file_;
};

}  // namespace

std::unique_ptr<SamplePrinter> sample_printer(const SampleArguments& arguments, const text::Tokenizer& tokenizer) {
  if (arguments.json || arguments.tokens || !arguments.prompts.empty())
    return std::make_unique<JsonSamples>(arguments, tokenizer);
  return std::make_unique<TextSamples>(tokenizer);
}

}  // namespace sluice::cli
