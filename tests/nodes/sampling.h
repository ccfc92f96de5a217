#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "nodes/columns/columns.h"
#include "nodes/rollout/generate.h"
#include "tests/nodes/tiny_model.h"

namespace sluice::nodes::testing {

inline engine::Group prompt_group(int64_t iteration, int64_t index, const std::string& prompt) {
  engine::Group group;
  group.iteration = iteration;
  group.index = index;
  group.layout.end_group();
  group.write(columns::kPrompt)[0] = prompt;
  return group;
}

class CollectingSink final : public engine::Rollout::Sink {
 public:
  void return_credit(int64_t group, int64_t tokens) override { returned[group] += tokens; }
  bool take_credit(int64_t, int64_t) override { return true; }
  void finish(engine::Group group) override { groups.push_back(std::move(group)); }
  void worked(int64_t prompt_tokens_read, int64_t tokens_sampled) override {
    ++steps;
    prompt_tokens += prompt_tokens_read;
    sampled_tokens += tokens_sampled;
  }

  int64_t steps = 0;
  int64_t prompt_tokens = 0;
  int64_t sampled_tokens = 0;
  std::map<int64_t, int64_t> returned;
  std::vector<engine::Group> groups;
};

inline constexpr int64_t kBlockBytes =
    TinyFolder::kLayers * TinyFolder::kKvHeads * 2 * 16 * TinyFolder::kHeadDim * 4;  // 16 tokens

/// A generate node with what it needs, in one process.
class Sampling {
 public:
  Sampling(const GenerateParams& params, const std::shared_ptr<LanguageModel>& model, int64_t kv_blocks = 256) {
    resources_.node = "generate";
    resources_.seed = 17;
    resources_.kv_bytes = kv_blocks * kBlockBytes;
    resources_.models = {{"actor", model}};
    resources_.metrics = &metrics_;
    node_.emplace(params, resources_);
  }

  /// All prompts of one iteration; the groups in order of their index.
  std::vector<engine::Group> run(const std::vector<std::string>& prompts, engine::Iteration iteration = {}) {
    node_->begin_iteration(iteration);
    for (size_t i = 0; i < prompts.size(); ++i) {
      engine::Group group = prompt_group(iteration.index, static_cast<int64_t>(i), prompts[i]);
      if (!node_->wants(group)) continue;
      worst_[group.index] = node_->worst_tokens(group);
      node_->start(std::move(group));
    }
    while (!node_->idle()) node_->step(sink_);
    node_->end_iteration(iteration);
    std::vector<engine::Group> groups = std::exchange(sink_.groups, {});
    std::ranges::sort(groups, {}, &engine::Group::index);
    return groups;
  }

  Generate& node() { return *node_; }
  const CollectingSink& sink() const { return sink_; }
  int64_t worst(int64_t group) const { return worst_.at(group); }
  int64_t returned(int64_t group) { return sink_.returned[group]; }
  engine::MetricRow metrics() { return metrics_.take(); }

 private:
  engine::MetricsRecorder metrics_;
  engine::NodeResources resources_;
  std::optional<Generate> node_;
  CollectingSink sink_;
  std::map<int64_t, int64_t> worst_;
};

inline std::vector<int64_t> tokens_of(const std::vector<engine::Group>& groups) {
  std::vector<int64_t> all;
  for (const engine::Group& group : groups) std::ranges::copy(group.read(columns::kTokens), std::back_inserter(all));
  return all;
}

/// Of sample s of a group: prompt and all after it.
inline std::vector<int64_t> tokens_of_sample(const engine::Group& group, size_t s) {
  const engine::Range range = group.layout.tokens_by_sample()[s];
  const auto tokens = group.read(columns::kTokens).subspan(range.begin, range.size());
  return {tokens.begin(), tokens.end()};
}

inline std::vector<float> logprobs_of(const std::vector<engine::Group>& groups) {
  std::vector<float> all;
  for (const engine::Group& group : groups) std::ranges::copy(group.read(columns::kRolloutLogprobs), std::back_inserter(all));
  return all;
}

inline GenerateParams params_with(int64_t samples, int64_t max_new_tokens) {
  GenerateParams params;
  params.model = "actor";
  params.samples_per_prompt = samples;
  params.max_new_tokens = max_new_tokens;
  return params;
}

}  // namespace sluice::nodes::testing
