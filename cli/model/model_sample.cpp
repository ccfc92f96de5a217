#include <algorithm>
#include <cstdio>
#include <deque>
#include <map>
#include <utility>

#include "base/error.h"
#include "base/files/path_kind.h"
#include "base/text/printable.h"
#include "base/text/strings.h"
#include "cli/model/commands.h"
#include "cli/model/sample_printer.h"
#include "cli/model/sample_prompts.h"
#include "cli/model/sampled_model.h"
#include "cli/process/exit_codes.h"

namespace sluice::cli {
namespace {

constexpr int64_t kDefaultNewTokens = 256;
constexpr int64_t kSideBySide = 16;           // samples: each holds a KV cache of its worst case
constexpr int64_t kMostCached = 65536;        // tokens of them, unless one sample needs more: fewer run side by side then
constexpr uint64_t kAhead = 4 * kSideBySide;  // of the sample that is printed: what has ended before its turn waits in memory
constexpr size_t kMostPrompts = 20;           // that are named as wrong

int64_t new_tokens(const SamplingArguments& arguments, const models::ModelConfig& config, int64_t prompt) {
  if (arguments.max_new_tokens > 0) return arguments.max_new_tokens;
  return std::clamp<int64_t>(config.steady_positions() - prompt, 1, kDefaultNewTokens);
}

// Tokens of the longest sample. Reads all prompts once, so that one without room is told before anything is sampled.
int64_t longest_sample(const SamplePrompts& prompts, const SamplingArguments& arguments, const models::ModelConfig& config) {
  Problems problems;
  int64_t longest = 0;
  for (size_t row = 0; row < prompts.count() && problems.size() < kMostPrompts; ++row) {
    const auto prompt = static_cast<int64_t>(prompts.at(row).ids.size());
    const int64_t tokens = prompt + new_tokens(arguments, config, prompt), room = config.steady_positions();
    longest = std::max(longest, tokens);
    const std::string message = prompt == 0     ? "the prompt has no tokens: it is empty, or the tokenizer knows none of its text"
                                : tokens > room ? "a prompt of " + plural(prompt, "token") + " and a response of " +
                                                      plural(tokens - prompt, "token") + " do not fit into the model's " +
                                                      plural(room, "position")
                                                : "";
    if (!message.empty())
      problems.push_back({.where = prompts.where(row),
                          .message = message,
                          .help = tokens > room ? "a smaller --max-new-tokens, or shorter prompts" : ""});
  }
  if (!problems.empty()) throw UserError(std::move(problems));
  return longest;
}

/// Samples side by side, given to the printer in order: all of the first prompt, then all of the next. Memory is that of kAhead
/// samples, however many there are. What is sampled depends on seed, prompt, row and index alone.
class SampleRun {
 public:
  SampleRun(const SampleArguments& arguments, const SampledModel& model, const SamplePrompts& prompts)
      : arguments_(arguments), model_(model), prompts_(prompts), engine_(model.model.config, model.options, limits()) {}

  void print_with(SamplePrinter& printer) {
    for (submit(); !engine_.idle(); submit()) {
      for (models::SampleResult& result : engine_.step(model_.model.weights)) waiting_.emplace(result.id, std::move(result));
      for (auto next = waiting_.find(at_hand_); next != waiting_.end(); next = waiting_.find(at_hand_)) {
        const SampleName name = name_of(at_hand_);
        printer.ended(name, open_.front(), next->second);
        waiting_.erase(next);
        ++at_hand_;
        if (name.index + 1 == arguments_.samples) open_.pop_front();
      }
      printer.grown(engine_.sampled(at_hand_));
    }
  }

 private:
  SampleName name_of(uint64_t number) const {
    const auto samples = static_cast<uint64_t>(arguments_.samples);
    return {.row = number / samples, .index = static_cast<int64_t>(number % samples)};
  }

  uint64_t all() const { return prompts_.count() * static_cast<uint64_t>(arguments_.samples); }

  models::GenerationLimits limits() const {
    models::GenerationLimits limits;
    limits.max_running_samples = static_cast<int64_t>(std::min<uint64_t>(all(), kSideBySide));
    const int64_t longest = longest_sample(prompts_, arguments_.sampling, model_.model.config);
    const int64_t of_one = longest / limits.kv_block_size + 1, most = kMostCached / limits.kv_block_size;
    limits.kv_blocks = std::min(limits.max_running_samples * of_one, std::max(of_one, most));
    return limits;
  }

  void submit() {
    for (; submitted_ < std::min(all(), at_hand_ + kAhead); ++submitted_) {
      const SampleName name = name_of(submitted_);
      if (name.index == 0) {
        SamplePrompts::Prompt prompt = prompts_.at(name.row);
        open_.push_back(std::move(prompt.written));
        newest_ = std::move(prompt.ids);
      }
      const RandomStream stream(arguments_.sampling.seed, 0, static_cast<uint32_t>(name.row), static_cast<uint32_t>(name.index));
      engine_.submit({.id = submitted_,
                      .prompt = newest_,
                      .max_new_tokens = new_tokens(arguments_.sampling, model_.model.config, newest_.size()),
                      .stream = stream});
    }
  }

  const SampleArguments& arguments_;
  const SampledModel& model_;
  const SamplePrompts& prompts_;
  models::GenerationEngine engine_;
  models::PromptTokens newest_;                       // of the row that was submitted last
  std::deque<Json> open_;                             // prompts as they were given, from the row that is printed on
  uint64_t submitted_ = 0;                            // samples
  uint64_t at_hand_ = 0;                              // the sample that is printed
  std::map<uint64_t, models::SampleResult> waiting_;  // for those before them
};

}  // namespace

int model_sample(const SampleArguments& arguments) {
  const bool writes = !arguments.output.empty();
  if (writes && is_same_file(arguments.output, arguments.prompts))
    throw UserError(arguments.output.string() + " is the file of the prompts", "name another file with --output");
  if (writes && is_file(arguments.output) && file_bytes(arguments.output) > 0)
    throw UserError(arguments.output.string() + " is there already", "remove it, or name another file with --output");
  const SampledModel model = load_to_sample(arguments.folder, arguments.sampling);
  const auto prompts = sample_prompts(arguments, model.tokenizer);
  SampleRun run(arguments, model, *prompts);
  const auto printer = sample_printer(arguments, model.tokenizer);
  run.print_with(*printer);
  printer->finish();
  if (writes) {
    std::printf("%s each of %s: %s\n", plural(arguments.samples, "sample").c_str(),
                plural(static_cast<int64_t>(prompts->count()), "prompt").c_str(), printable(arguments.output.string()).c_str());
  }
  return kDone;
}

}  // namespace sluice::cli
