// generation FOLDER float32|bfloat16 THREADS [DEVICE [PLUGIN]]: how long the generation engine takes, with random weights of the
// model in FOLDER.
//
//   {"ask": "decode", "batch": 16, "context": 128, "steps": 32}
//       {"seconds"} of `steps` steps of `batch` samples with prompts of `context` tokens, all different and read before; the first time
//       after the same once unmeasured
//   {"ask": "prefill", "samples": 16, "prompt": 512, "shared": true}
//       {"seconds"} until each sample has its first token; with "shared" all have one prompt, else all have different ones
//   {"ask": "continue", "samples": 1, "prompt": 64, "tokens": 256, "likeliest": true, "drafts": 8, "alone": 1}
//       {"seconds", "steps", "guessed", "right"} of sampling so many tokens after prompts that were read before, the likeliest each time
//       or at random, with so many guessed of a sample in a step, while no more samples run than so many (0: always); the same prompts
//       whenever it is asked
//   {..., "draft": {"layers": 2, "later": 0.1, "stretch": 8}}
//       the same of another model, for which its first layers guess if "drafts" is above 0: that of FOLDER, with what the layers after
//       them add multiplied by "later", and its logits by "stretch"
//
// No other prompt is used twice, so nothing of an earlier question helps.

#include <ATen/ops/mul.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/numbers/random.h"
#include "bench/questions.h"
#include "models/folder/folder.h"
#include "models/forward/transformer.h"
#include "models/layers/feed_forward/mlp.h"
#include "models/sample/generation.h"
#include "models/sample/packed_weights.h"

namespace sluice::bench {
namespace {

using models::GenerationEngine, models::SampleRequest, models::Transformer;

constexpr int64_t kStepTokens = 2048, kBlock = 16;

/// A model with random weights, and its first layers as one that guesses for it. Where the layers after them add little, the two
/// agree often.
struct WithDraft {
  models::PackedWeights weights;
  models::ModelConfig draft_config;
  models::PackedWeights draft;

  WithDraft(const models::ModelConfig& config, models::Weights of, models::Precision precision, const Json& question)
      : weights(precision), draft_config(config), draft(precision) {
    const int64_t first = question.at("layers");
    const double later = question.at("later"), stretch = question.at("stretch");
    for (size_t i = static_cast<size_t>(first); i < of.layers.size(); ++i) {
      scale(of.layers[i].attention_output.weight, later);
      scale(of.layers[i].feed_forward[models::Mlp::kDown].weight, later);
    }
    scale(of.final_norm, stretch);
    weights.pack(of);
    of.layers.resize(static_cast<size_t>(first));
    draft_config.layers = first;
    draft.pack(of);
  }

 private:
  static void scale(at::Tensor& tensor, double factor) { tensor = at::mul(tensor, factor); }
};

class Bench {
 public:
  Bench(const std::string& folder, models::Precision precision, at::Device device)
      : config_(models::read_config(folder)), device_(device), folder_(folder), weights_(loaded(), precision) {}

  Json answer(const Json& question) {
    if (question.at("ask") == "prefill")
      return {{"seconds", prefill(question.at("samples"), question.at("prompt"), question.at("shared"))}};
    if (question.at("ask") == "continue") return go_on(question);
    return {{"seconds", decode(question.at("batch"), question.at("context"), question.at("steps"))}};
  }

 private:
  models::GenerationOptions options() const {
    return {.sampling = {}, .end_of_sequence = {}, .precision = weights_.precision(), .device = device_};
  }

  models::GenerationLimits limits_for(int64_t samples, int64_t longest) const {
    return {.max_running_samples = samples,
            .max_step_tokens = kStepTokens + samples,
            .kv_block_size = kBlock,
            .kv_blocks = samples * (longest / kBlock + 1)};
  }

  GenerationEngine engine(int64_t samples, int64_t longest) const { return {config_, options(), limits_for(samples, longest)}; }

  void step(GenerationEngine& engine) const { engine.step(weights_); }

  std::vector<int64_t> random_tokens(RandomStream& random, int64_t length) const {
    std::vector<int64_t> tokens(static_cast<size_t>(length));
    for (int64_t& id : tokens) id = static_cast<int64_t>(random.below(static_cast<uint64_t>(config_.vocab_size)));
    return tokens;
  }

  std::vector<int64_t> new_prompt(int64_t length) { return random_tokens(prompts_, length); }

  void submit(GenerationEngine& engine, int64_t index, std::vector<int64_t> prompt, int64_t new_tokens) const {
    const auto id = static_cast<uint64_t>(index);
    engine.submit({.id = id, .prompt = std::move(prompt), .max_new_tokens = new_tokens, .stream = RandomStream(1, id)});
  }

  // An engine and its pool serve until another batch or length is asked for, as they do in a run: a pool that is new has no
  // memory yet.
  double decode(int64_t batch, int64_t context, int64_t steps) {
    const int64_t reading = batch * context / kStepTokens + 2;  // steps; who is read first decodes meanwhile
    const int64_t new_tokens = reading + steps + 1;
    if (const std::array asked{batch, context, steps}; asked != asked_) {
      engine_.emplace(this->engine(batch, context + new_tokens));
      asked_ = asked;
      decode(batch, context, steps);
    }
    GenerationEngine& engine = *engine_;
    while (!engine.idle()) step(engine);
    for (int64_t i = 0; i < batch; ++i) submit(engine, submitted_++, new_prompt(context), new_tokens);
    do step(engine);
    while (engine.last_step().prompt_tokens > 0 || engine.waiting() > 0);
    const double seconds = seconds_of([&] {
      for (int64_t i = 0; i < steps; ++i) step(engine);
    });
    if (engine.last_step().sampled_tokens != batch) throw InternalError("a sample ended too early");
    return seconds;
  }

  double prefill(int64_t samples, int64_t length, bool shared) {
    GenerationEngine engine = this->engine(samples, length + 1);
    const std::vector<int64_t> prompt = new_prompt(length);
    for (int64_t i = 0; i < samples; ++i) submit(engine, i, shared ? prompt : new_prompt(length), 1);
    return seconds_of([&] {
      while (!engine.idle()) step(engine);
    });
  }

  models::Weights loaded() const {
    return models::load_transformer(folder_, {.random_init = true, .device = device_, .compute = {}}).weights();
  }

  const WithDraft& with_draft(const Json& question) {
    if (!with_draft_ || asked_draft_ != question) {
      with_draft_.emplace(config_, loaded(), weights_.precision(), question);
      asked_draft_ = question;
    }
    return *with_draft_;
  }

  Json go_on(const Json& question) {
    const int64_t samples = question.at("samples"), length = question.at("prompt"), tokens = question.at("tokens");
    models::GenerationLimits limits = limits_for(samples, length + tokens);
    limits.drafts = {.tokens = question.at("drafts"), .samples = question.at("alone")};
    const WithDraft* const other = question.contains("draft") ? &with_draft(question.at("draft")) : nullptr;
    const bool guesses = other != nullptr && limits.drafts.tokens > 0;
    models::GenerationOptions with = options();
    if (guesses) with.draft = models::DraftOptions{other->draft_config, weights_.precision(), device_};
    const auto step = [&](GenerationEngine& engine) {
      engine.step(other != nullptr ? other->weights : weights_, guesses ? &other->draft : nullptr);
    };
    GenerationEngine engine(config_, with, limits);
    RandomStream text(3, 0);
    for (int64_t i = 0; i < samples; ++i) {
      const auto id = static_cast<uint64_t>(i);
      engine.submit({.id = id,
                     .prompt = random_tokens(text, length),
                     .max_new_tokens = tokens,
                     .stream = RandomStream(1, id),
                     .greedy = question.at("likeliest")});
    }
    do step(engine);
    while (engine.last_step().prompt_tokens > 0 || engine.waiting() > 0);
    int64_t steps = 0, guessed = 0, right = 0;
    const double seconds = seconds_of([&] {
      for (; !engine.idle(); ++steps) {
        step(engine);
        guessed += engine.last_step().drafted_tokens, right += engine.last_step().kept_drafts;
      }
    });
    return {{"seconds", seconds}, {"steps", steps}, {"guessed", guessed}, {"right", right}};
  }

  const models::ModelConfig config_;
  const at::Device device_;
  const std::string folder_;
  const models::PackedWeights weights_;
  std::optional<WithDraft> with_draft_;
  Json asked_draft_;
  RandomStream prompts_{2, 0};
  std::optional<GenerationEngine> engine_;
  std::array<int64_t, 3> asked_{};
  int64_t submitted_ = 0;
};

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) { return sluice::bench::answer_about_model<sluice::bench::Bench>(argc, argv); }
