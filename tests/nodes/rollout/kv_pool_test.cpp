#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "engine/memory/kv_bound.h"
#include "models/sample/generation.h"
#include "tests/models/dense_reference.h"

namespace sluice::nodes::kv_pool_test {
namespace {

using models::GenerationEngine;
using models::SampleResult;

// A rollout as the engine drives it: groups are admitted in order while their worst case fits the token budget; a sample that
// ends gives back what it will not use, and a complete group the rest, a while later, as its last reader would.
class AdmittedByTokens {
 public:
  explicit AdmittedByTokens(RandomStream& random) : random_(random), weights_(models::reference::random_weights(config_, 0.1)) {
    demand_.block_tokens = 16;
    samples_per_group_ = 1 + pick(6);
    max_new_tokens_ = 1 + pick(40);
    longest_prompt_ = 1 + pick(50);
    demand_.least_sample_tokens = 1 + max_new_tokens_;
    demand_.worst_sample_tokens = longest_prompt_ + max_new_tokens_;
    demand_.tokens = samples_per_group_ * demand_.worst_sample_tokens + pick(600);
    demand_.running_samples = 1 + pick(40);
  }

  // Steps until `groups` are done. After each, whoever waits must lack a place, not blocks.
  void run(int64_t groups) {
    const models::GenerationLimits limits{.max_running_samples = demand_.running_samples,
                                          .max_step_tokens = 2048,
                                          .kv_block_size = demand_.block_tokens,
                                          .kv_blocks = engine::worst_kv_blocks(demand_)};
    GenerationEngine generation(config_, {.end_of_sequence = {3, 17}}, limits);
    int64_t next_group = 0, prompt = 1 + pick(longest_prompt_);
    while (next_group < groups || !generation.idle()) {
      while (next_group < groups && in_flight_ + samples_per_group_ * (prompt + max_new_tokens_) <= demand_.tokens) {
        admit(generation, next_group++, prompt);
        prompt = 1 + pick(longest_prompt_);
      }
      for (const SampleResult& result : generation.step(weights_)) end(result);
      ASSERT_TRUE(generation.waiting() == 0 || generation.running() + ended_ >= demand_.running_samples)
          << generation.waiting() << " wait beside " << generation.running() << " of " << demand_.running_samples;
      ended_ = 0;
      release_some();
    }
    EXPECT_LE(generation.take_kv_peak_bytes(), generation.backend().bytes_held());
  }

 private:
  struct Running {
    int64_t prompt = 0, unfinished = 0, tokens = 0;
  };

  int64_t pick(int64_t below) { return static_cast<int64_t>(random_.below(static_cast<uint64_t>(below))); }

  void admit(GenerationEngine& generation, int64_t group, int64_t prompt) {
    in_flight_ += samples_per_group_ * (prompt + max_new_tokens_);
    running_[group] = {.prompt = prompt, .unfinished = samples_per_group_};
    std::vector<int64_t> tokens(static_cast<size_t>(prompt));
    for (int64_t& token : tokens) token = pick(config_.vocab_size);
    for (int64_t s = 0; s < samples_per_group_; ++s) {
      const auto id = static_cast<uint64_t>(group * samples_per_group_ + s);
      generation.submit({.id = id, .prompt = tokens, .max_new_tokens = max_new_tokens_, .stream = RandomStream(5, id)});
    }
  }

  void end(const SampleResult& result) {
    ++ended_;
    const auto found = running_.find(static_cast<int64_t>(result.id) / samples_per_group_);
    const auto length = static_cast<int64_t>(result.tokens.size());
    in_flight_ -= max_new_tokens_ - length;
    found->second.tokens += found->second.prompt + length;
    if (--found->second.unfinished > 0) return;
    downstream_.push_back(found->second.tokens);
    running_.erase(found);
  }

  void release_some() {
    while (!downstream_.empty() && (running_.empty() || pick(3) == 0)) {
      in_flight_ -= downstream_.back();
      downstream_.pop_back();
    }
  }

  RandomStream& random_;
  const models::ModelConfig config_ = models::reference::small_config();
  const models::PackedWeights weights_;
  engine::KvDemand demand_;
  int64_t samples_per_group_ = 0, max_new_tokens_ = 0, longest_prompt_ = 0;
  int64_t in_flight_ = 0;
  int64_t ended_ = 0;  // in the last step: their places are taken in the next
  std::map<int64_t, Running> running_;
  std::vector<int64_t> downstream_;  // tokens of complete groups that somebody still reads
};

TEST(KvPool, OfThePredictedSizeNeverKeepsASampleWaitingThatHasItsTokensAndAPlace) {
  RandomStream random(23, 0);
  for (int round = 0; round < 60; ++round) AdmittedByTokens(random).run(12);
}

}  // namespace
}  // namespace sluice::nodes::kv_pool_test
