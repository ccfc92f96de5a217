#include <algorithm>
#include <cstdio>
#include <iostream>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/terminal.h"
#include "models/sample/generation.h"
#include "models/sample/load_packed.h"
#include "text/chat_template.h"
#include "text/stream_decoder.h"
#include "text/tokenizer.h"

namespace sluice::cli {
namespace {

constexpr int64_t kDefaultNewTokens = 256;
constexpr int64_t kSideBySide = 16;  // samples: each holds a KV cache of its worst case

std::string standard_input() { return {std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()}; }

std::vector<int64_t> end_of_sequence_ids(const models::ModelConfig& config, const text::Tokenizer& tokenizer) {
  std::vector<int64_t> ids = config.end_of_sequence;
  if (const auto id = tokenizer.end_of_sequence(); id && std::ranges::find(ids, *id) == ids.end()) ids.push_back(*id);
  return ids;
}

std::span<const int64_t> without_end(const models::SampleResult& result) {
  const bool ended = result.finish == models::FinishReason::kEndOfSequence;
  return std::span(result.tokens).first(result.tokens.size() - (ended ? 1 : 0));
}

void print(const std::string& text) {
  print_text(text);
  std::fflush(stdout);
}

/// Prints samples one after the other. Not thread-safe.
class Printer {
 public:
  virtual ~Printer() = default;

  /// What the sample at hand has sampled so far.
  virtual void grown(std::span<const int64_t> tokens) = 0;

  /// The sample at hand is complete; the next call is about the next one.
  virtual void ended(const models::SampleResult& result) = 0;
};

/// The text as it grows, in whole characters; a line end behind each sample.
class TextPrinter final : public Printer {
 public:
  explicit TextPrinter(const text::Tokenizer& tokenizer) : tokenizer_(tokenizer), decoder_(tokenizer, /*skip_special=*/true) {}

  void grown(std::span<const int64_t> tokens) override {
    std::string piece;
    for (; printed_ < tokens.size(); ++printed_) piece += decoder_.push(tokens[printed_]);
    print(piece);
  }

  void ended(const models::SampleResult& result) override {
    grown(without_end(result));
    print(decoder_.finish() + "\n");
    decoder_ = text::StreamDecoder(tokenizer_, /*skip_special=*/true);
    printed_ = 0;
  }

 private:
  const text::Tokenizer& tokenizer_;
  text::StreamDecoder decoder_;
  size_t printed_ = 0;  // tokens of the sample at hand
};

/// One JSON object a line.
class JsonPrinter final : public Printer {
 public:
  explicit JsonPrinter(const text::Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

  void grown(std::span<const int64_t>) override {}

  void ended(const models::SampleResult& result) override {
    const bool ended = result.finish == models::FinishReason::kEndOfSequence;
    const Json line = {{"text", tokenizer_.decode(without_end(result), /*skip_special=*/true)},
                       {"tokens", result.tokens},
                       {"logprobs", result.logprobs},
                       {"finish", ended ? "end_of_sequence" : "length"}};
    print(line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
  }

 private:
  const text::Tokenizer& tokenizer_;
};

// A template writes the special tokens itself.
std::vector<int64_t> prompt_ids(const SampleArguments& arguments, const text::Tokenizer& tokenizer) {
  const std::string prompt = arguments.prompt.empty() ? standard_input() : arguments.prompt;
  if (!arguments.chat) return tokenizer.encode(prompt, /*add_special=*/true);
  const Json messages = Json::array({{{"role", "user"}, {"content", prompt}}});
  return tokenizer.encode(text::ChatTemplate::load(arguments.folder).render(messages, {.add_generation_prompt = true}));
}

int64_t new_tokens(const SampleArguments& arguments, const models::ModelConfig& config, int64_t prompt) {
  if (arguments.max_new_tokens > 0) return arguments.max_new_tokens;
  return std::clamp<int64_t>(config.steady_positions() - prompt, 1, kDefaultNewTokens);
}

/// Samples side by side, given to the printer in order.
class SampleRun {
 public:
  SampleRun(const SampleArguments& arguments, const models::PackedModel& model, std::vector<int64_t> prompt,
            const models::GenerationOptions& options)
      : arguments_(arguments),
        model_(model),
        prompt_(std::move(prompt)),
        new_tokens_(new_tokens(arguments, model.config, prompt_.size())),
        engine_(model.config, options, limits()) {}

  void print_with(Printer& printer) {
    for (submit(); !engine_.idle(); submit()) {
      for (models::SampleResult& result : engine_.step(model_.weights)) waiting_.emplace(result.id, std::move(result));
      for (auto next = waiting_.find(at_hand_); next != waiting_.end(); next = waiting_.find(at_hand_)) {
        printer.ended(next->second);
        waiting_.erase(next);
        ++at_hand_;
      }
      printer.grown(engine_.sampled(at_hand_));
    }
  }

 private:
  models::GenerationLimits limits() const {
    models::GenerationLimits limits;
    limits.max_running_samples = std::min<int64_t>(arguments_.samples, kSideBySide);
    const int64_t longest = std::min(new_tokens_, model_.config.steady_positions()) + prompt_.size();
    limits.kv_blocks = limits.max_running_samples * (longest / limits.kv_block_size + 1);
    return limits;
  }

  // So far ahead of the sample at hand and no further: what has ended before its turn waits in memory.
  void submit() {
    for (; submitted_ < std::min<uint64_t>(arguments_.samples, at_hand_ + kSideBySide); ++submitted_) {
      const RandomStream stream(arguments_.seed, 0, 0, static_cast<uint32_t>(submitted_));
      engine_.submit({.id = submitted_, .prompt = prompt_, .max_new_tokens = new_tokens_, .stream = stream});
    }
  }

  const SampleArguments& arguments_;
  const models::PackedModel& model_;
  models::PromptTokens prompt_;
  int64_t new_tokens_;
  models::GenerationEngine engine_;
  uint64_t submitted_ = 0;
  uint64_t at_hand_ = 0;                              // the sample that is printed
  std::map<uint64_t, models::SampleResult> waiting_;  // for those before them
};

}  // namespace

int model_sample(const SampleArguments& arguments) {
  const text::Tokenizer tokenizer = text::Tokenizer::load(arguments.folder);
  const models::Precision precision = arguments.dtype == "bfloat16" ? models::Precision::kBfloat16 : models::Precision::kFloat32;
  const models::PackedModel model = models::load_packed(arguments.folder, {.compute = {precision}, .narrow_operands = true});
  const std::vector<int64_t> prompt = prompt_ids(arguments, tokenizer);
  const models::GenerationOptions options{.sampling = {.temperature = arguments.temperature,
                                                       .top_k = arguments.top_k,
                                                       .top_p = arguments.top_p,
                                                       .min_p = arguments.min_p,
                                                       .repetition_penalty = arguments.repetition_penalty,
                                                       .presence_penalty = arguments.presence_penalty,
                                                       .frequency_penalty = arguments.frequency_penalty},
                                          .end_of_sequence = end_of_sequence_ids(model.config, tokenizer),
                                          .precision = precision};
  SampleRun run(arguments, model, prompt, options);
  TextPrinter text(tokenizer);
  JsonPrinter json(tokenizer);
  run.print_with(arguments.json ? static_cast<Printer&>(json) : text);
  return kDone;
}

}  // namespace sluice::cli
