#include "cli/init/init_sizes.h"

#include <algorithm>

#include "base/error.h"
#include "base/text/strings.h"

namespace sluice::cli {
namespace {

constexpr int64_t kSamples = 8;           // to a prompt: enough to tell them apart
constexpr int64_t kPrompts = 16;          // of an iteration
constexpr int64_t kExamples = 32;         // likewise, or pairs
constexpr int64_t kMostIterations = 200;  // of reinforcement, after which one looks again
constexpr int64_t kMostTokens = 65536;    // in flight
constexpr int64_t kReasoning = 512;       // tokens that a model which chats may think for
constexpr int64_t kMostNew = 2048;

// Half as much again as the longest of the rows that were measured, in steps.
int64_t with_margin(int64_t tokens) {
  const int64_t step = tokens < 32 ? 8 : 64;
  return (tokens + tokens / 2 + step) / step * step;
}

// Small models take larger steps. The rates are those of a model of a billion parameters.
struct Rates {
  double learning_rate = 0;
  double critic = 0;
};
Rates rates_of(InitKind kind) {
  switch (kind) {
    case InitKind::kGrpo:
      return {1e-6, 0};
    case InitKind::kPpo:
      return {1e-6, 1e-5};
    case InitKind::kSft:
      return {1e-5, 0};
    case InitKind::kDpo:
      return {5e-7, 0};
    case InitKind::kReward:
      return {1e-5, 0};
  }
  return {};
}
double scale_of(int64_t parameters) { return parameters < 100'000'000 ? 50 : parameters < 1'000'000'000 ? 5 : 1; }

bool samples(InitKind kind) { return kind == InitKind::kGrpo || kind == InitKind::kPpo; }

void require_room(const InitModel& model, int64_t tokens, const std::string& what) {
  if (tokens < model.max_positions) return;
  throw UserError("the model takes " + plural(model.max_positions, "token") + ", and " + what + " of the data has " +
                      std::to_string(tokens) + " with nothing left for an answer",
                  "take a model with more positions, or shorter rows");
}

void choose_lengths(const InitModel& model, const InitLengths& lengths, InitPipeline& pipeline) {
  if (!samples(pipeline.kind)) {
    if (lengths.shortest_whole > model.max_positions) {
      throw UserError("the model takes " + plural(model.max_positions, "token") + ", and the shortest of the first rows has " +
                          std::to_string(lengths.shortest_whole),
                      "take a model with more positions, or shorter rows");
    }
    pipeline.max_tokens = std::min(with_margin(lengths.whole), model.max_positions);
    return;
  }
  require_room(model, lengths.prompt, "a prompt");
  const int64_t answer = std::max(with_margin(lengths.answer), pipeline.chats ? kReasoning : 0);
  pipeline.max_new_tokens = std::min({answer, kMostNew, model.max_positions - lengths.prompt});
  pipeline.max_prompt_tokens = std::min(with_margin(lengths.prompt), model.max_positions - pipeline.max_new_tokens);
}

}  // namespace

void choose_sizes(const InitModel& model, const InitData& data, InitPipeline& pipeline) {
  const bool reads_texts = pipeline.fields.messages.empty() && !pipeline.fields.pairs_are_messages;
  const bool has_prompts = !pipeline.fields.prompt.empty();  // pairs may have none: their common beginning is it, as it is
  pipeline.chats = model.has_template && reads_texts && has_prompts;
  pipeline.passes_over_template = model.has_template && reads_texts && !has_prompts;
  choose_lengths(model, lengths_of(model, data, pipeline.fields, {pipeline.chats, pipeline.scorer.suffix}), pipeline);
  const auto rows = static_cast<int64_t>(data.count);
  const bool sampled = samples(pipeline.kind);
  pipeline.groups = std::min(rows, sampled ? kPrompts : kExamples);
  pipeline.samples = kSamples;
  const int64_t once = (rows + pipeline.groups - 1) / pipeline.groups;
  pipeline.iterations = sampled ? std::min(once, kMostIterations) : once;
  const int64_t in_a_group = sampled                           ? kSamples * (pipeline.max_prompt_tokens + pipeline.max_new_tokens)
                             : pipeline.kind == InitKind::kSft ? pipeline.max_tokens
                                                               : 2 * pipeline.max_tokens;
  pipeline.tokens_in_flight = std::max(2 * in_a_group, std::min(pipeline.groups * in_a_group, kMostTokens));
  const Rates rates = rates_of(pipeline.kind);
  pipeline.learning_rate = rates.learning_rate * scale_of(model.parameters);
  pipeline.critic_learning_rate = rates.critic * scale_of(model.parameters);
}

}  // namespace sluice::cli
