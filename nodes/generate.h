#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/contract.h"
#include "engine/node.h"
#include "models/generation.h"
#include "nodes/language_model.h"

namespace sluice::nodes {

/// The entries of the column `finish`: why a sample ended.
enum class Finish : uint8_t { kEndOfSequence = 0, kLength = 1 };

/// Samples responses from the published weights of a model, many at a time, one decoded token a step for each.
///
///   [nodes.generate]
///   type = "generate"
///   inputs = ["prompts"]
///   model = "actor"
///   samples_per_prompt = 4
///   max_new_tokens = 256
///   max_prompt_tokens = 512           # a longer prompt is an error
///   temperature = 1.0                 # 0: the likeliest token
///   top_k = 0                         # 0: all
///   top_p = 1.0
///   max_running_samples = 256         # decoded side by side; the others wait
///   ignore_end_of_sequence = false    # true: every sample runs to max_new_tokens
///   add_special_tokens = true         # false: the prompts hold theirs, as those that a chat template wrote
///
/// Reads prompt; writes tokens[T] (prompt and response), rollout_logprobs[A], response and finish. With add_special_tokens the
/// prompt gets the special tokens that the tokenizer puts around a text. A response that ends has its end-of-sequence token among
/// the actions, not in the text. rollout_logprobs are those of softmax(logits / temperature) over the whole vocabulary, whatever
/// top_k and top_p cut off; for temperature 0 those of temperature 1.
/// Its KV cache is a pool of the size that the plan predicts, enough for every sample that the token budget admits and a place is
/// free for.
/// A sample's text depends on (seed, iteration, group, sample), its prompt and the weights, not on what runs beside it.
struct GenerateParams {
  std::string model;
  int64_t samples_per_prompt = 1;
  int64_t max_new_tokens = 0;
  int64_t max_prompt_tokens = 512;
  double temperature = 1.0;
  int64_t top_k = 0;
  double top_p = 1.0;
  int64_t max_running_samples = 256;
  bool ignore_end_of_sequence = false;
  bool add_special_tokens = true;
};

class Generate final : public engine::Rollout {
 public:
  static void describe(engine::Contract<GenerateParams>& contract);

  Generate(const GenerateParams& params, engine::NodeResources& resources);

  /// From here on samples are drawn from the iteration's policy version. Nothing of another iteration may be running.
  void begin_iteration(const engine::Iteration& iteration) override;

  /// samples_per_prompt * (prompt + max_new_tokens). Throws UserError for a prompt that is empty or too long.
  int64_t worst_tokens(const engine::Group& prompt) const override;

  void start(engine::Group prompt) override;
  void step(Sink& sink) override;
  bool idle() const override { return running_.empty(); }
  void end_iteration(const engine::Iteration& iteration) override;

  /// The KV pool, which is allocated as a whole when the node is made.
  int64_t take_peak_bytes() override { return engine_.kv().bytes_held(); }

 private:
  struct RunningGroup {
    engine::Group group;
    std::vector<int64_t> prompt;
    std::vector<models::SampleResult> results;  // [samples_per_prompt]
    int64_t unfinished = 0;
  };

  const std::vector<int64_t>& prompt_tokens(const engine::Group& group) const;
  void take(models::SampleResult result, Sink& sink);
  engine::Group completed(RunningGroup running) const;

  const GenerateParams params_;
  const std::shared_ptr<LanguageModel> model_;
  const uint64_t seed_;
  engine::MetricsRecorder& metrics_;
  models::GenerationEngine engine_;
  const models::Weights* weights_ = nullptr;  // of the iteration's policy version
  std::map<int64_t, RunningGroup> running_;   // by group index

  // Prompts are needed when they are admitted and when they start: tokenised once, kept in between. By (iteration, group).
  mutable std::map<std::pair<int64_t, int64_t>, std::vector<int64_t>> tokenized_;
};

}  // namespace sluice::nodes
