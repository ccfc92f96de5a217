#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "models/kernels/parallel.h"
#include "models/sample/generation.h"
#include "tests/models/dense_reference.h"

namespace sluice::models::generation_mixes_test {
namespace {

const ModelConfig kConfig = reference::small_config();

/// Models that guess: one that is never wrong, since it is the same one; one that often is; and one that knows nothing of the
/// other.
struct DraftCase {
  ModelConfig config;
  PackedWeights weights;
};

std::vector<DraftCase> draft_cases(const Weights& weights) {
  std::vector<DraftCase> cases;
  cases.push_back({kConfig, PackedWeights(weights)});
  Weights first_layer = weights;
  first_layer.layers.resize(1);
  ModelConfig config = kConfig;
  config.layers = 1;
  cases.push_back({config, PackedWeights(first_layer)});
  config.hidden_size = 20, config.kv_heads = 4;
  cases.push_back({config, PackedWeights(reference::random_weights(config, 0.15))});
  return cases;
}

/// Requests of several groups, and where their samples pause and stop.
struct Mix {
  struct Pause {
    size_t at = 0;  // tokens after the prompt
    std::vector<int64_t> given;
  };
  std::vector<SampleRequest> requests;
  std::map<uint64_t, Pause> pauses;
  std::map<uint64_t, size_t> stops;
  GenerationOptions options;
  size_t draft = 0;  // which of kDrafts guesses, where options.draft says that one does

  Next judge(uint64_t id, size_t tokens) const {
    if (const auto stop = stops.find(id); stop != stops.end() && stop->second == tokens) return Next::kEnds;
    const auto pause = pauses.find(id);
    return pause != pauses.end() && pause->second.at == tokens ? Next::kPauses : Next::kGoesOn;
  }
};

class Mixer {
 public:
  explicit Mixer(uint64_t seed) : random_(seed, 0) {}

  int64_t below(int64_t bound) { return static_cast<int64_t>(random_.below(static_cast<uint64_t>(bound))); }
  bool one_in(int64_t n) { return below(n) == 0; }

  Mix mix() {
    Mix mix{
        .options = {.sampling = {.temperature = 0.9, .top_p = one_in(2) ? 0.95 : 1.0, .presence_penalty = one_in(4) ? 0.4 : 0.0},
                    .end_of_sequence = {3}},
        .draft = static_cast<size_t>(below(3))};
    const std::vector<int64_t> beginning = tokens(48);  // of most prompts, to different lengths
    for (int64_t group = 1 + below(4); group > 0; --group) {
      std::vector<int64_t> prompt(beginning.begin(), beginning.begin() + below(49));
      const std::vector<int64_t> rest = tokens(below(3) + (prompt.empty() ? 1 : 0));
      prompt.insert(prompt.end(), rest.begin(), rest.end());
      const PromptTokens shared = prompt;
      for (int64_t sample = 1 + below(4); sample > 0; --sample) add(mix, one_in(4) ? PromptTokens(prompt) : shared);
    }
    return mix;
  }

  GenerationLimits limits() {
    const int64_t places = 1 + below(6);
    return {.max_running_samples = places,
            .max_step_tokens = places + (one_in(2) ? below(8) : 60),
            .kv_block_size = 16,
            .kv_blocks = 6 + below(10),  // the longest sample has 50 + 29 tokens: 5 blocks
            .admission = one_in(2) ? KvAdmission::kOnDemand : KvAdmission::kWorstCase,
            .drafts = one_in(2) ? DraftLimits{.tokens = 1 + below(8), .samples = below(4)} : DraftLimits{}};
  }

 private:
  std::vector<int64_t> tokens(int64_t count) {
    std::vector<int64_t> tokens(static_cast<size_t>(count));
    for (int64_t& token : tokens) token = below(kConfig.vocab_size);
    return tokens;
  }

  void add(Mix& mix, const PromptTokens& prompt) {
    const auto id = static_cast<uint64_t>(mix.requests.size());
    const int64_t most = 1 + below(30);
    mix.requests.push_back(
        {.id = id, .prompt = prompt, .max_new_tokens = most, .stream = RandomStream(4, id), .greedy = one_in(8)});
    if (most > 6 && one_in(3)) mix.pauses[id] = {.at = static_cast<size_t>(1 + below(most - 5)), .given = tokens(below(4))};
    if (one_in(6)) mix.stops[id] = static_cast<size_t>(1 + below(most));
  }

  RandomStream random_;
};

SampleResult alone(const Mix& mix, size_t index, const PackedWeights& weights) {
  GenerationEngine engine(kConfig, mix.options,
                          {.max_running_samples = 1, .max_step_tokens = 256, .kv_block_size = 16, .kv_blocks = 8});
  const uint64_t id = mix.requests[index].id;
  bool paused = false;
  engine.set_judge([&](uint64_t, std::span<const int64_t> tokens) {
    const Next next = mix.judge(id, tokens.size());
    paused = next == Next::kPauses;
    return next;
  });
  engine.submit(mix.requests[index]);
  while (true) {
    for (SampleResult& result : engine.step(weights)) return std::move(result);
    if (paused) engine.resume(id, mix.pauses.at(id).given);
    paused = false;
  }
}

/// All of a mix in one engine, with replies that take their time and preemptions at any time.
class Together {
 public:
  /// draft: the one that guesses; null: texts do.
  Together(const Mix& mix, const GenerationLimits& limits, Mixer& random, const DraftCase* draft)
      : mix_(mix), random_(random), draft_(draft), engine_(kConfig, with(mix.options, draft), limits) {
    engine_.set_judge([this](uint64_t id, std::span<const int64_t> tokens) {
      const Next next = mix_.judge(id, tokens.size());
      if (next == Next::kPauses) replies_[id] = random_.below(5), disturbed_ = true;
      return next;
    });
    for (const SampleRequest& request : mix.requests) engine_.submit(request);
  }

  std::vector<SampleResult> run(const PackedWeights& weights) {
    std::vector<SampleResult> results;
    for (int steps = 0; !engine_.idle() && steps < 10000; ++steps) {
      disturbed_ = false;
      for (SampleResult& result : engine_.step(weights, draft_ == nullptr ? nullptr : &draft_->weights))
        results.push_back(std::move(result)), disturbed_ = true;
      preempted += engine_.last_step().preemptions;
      reused += engine_.last_step().reused_tokens;
      drafted += engine_.last_step().drafted_tokens;
      kept += engine_.last_step().kept_drafts;
      if (draft_ != nullptr && mix_.draft == 0 && !disturbed_) {
        EXPECT_EQ(engine_.last_step().kept_drafts, engine_.last_step().drafted_tokens);
      }
      reply();
      preempt(results);
    }
    EXPECT_EQ(engine_.kv_blocks().in_use(), 0);
    std::ranges::sort(results, {}, &SampleResult::id);
    return results;
  }

  int64_t preempted = 0, reused = 0, drafted = 0, kept = 0;

 private:
  static GenerationOptions with(GenerationOptions options, const DraftCase* draft) {
    if (draft != nullptr) options.draft = DraftOptions{.config = draft->config, .cost = 0.05};
    return options;
  }

  void reply() {
    for (auto next = replies_.begin(); next != replies_.end();) {
      if (next->second-- > 0) {
        ++next;
        continue;
      }
      engine_.resume(next->first, mix_.pauses.at(next->first).given);
      next = replies_.erase(next);
    }
  }

  void preempt(const std::vector<SampleResult>& ended) {
    if (!held_.empty() && random_.one_in(3)) {
      engine_.restart(held_.back());
      held_.pop_back();
    }
    if (preemptions_left_ == 0 || !random_.one_in(8)) return;
    const auto id = static_cast<uint64_t>(random_.below(static_cast<int64_t>(mix_.requests.size())));
    if (std::ranges::find(held_, id) != held_.end() || std::ranges::find(ended, id, &SampleResult::id) != ended.end()) return;
    engine_.preempt(id);
    held_.push_back(id);
    --preemptions_left_;
  }

  const Mix& mix_;
  Mixer& random_;
  const DraftCase* const draft_;
  bool disturbed_ = false;  // in the last step a sample ended or paused
  GenerationEngine engine_;
  std::map<uint64_t, int64_t> replies_;  // steps until they come
  std::vector<uint64_t> held_;
  int preemptions_left_ = 6;
};

// Together they say what each says alone, to the bit.
void compare_mixes(uint64_t seed, int mixes, int threads) {
  const Weights live = reference::random_weights(kConfig, 0.15);
  const PackedWeights weights(live);
  const std::vector<DraftCase> drafts = draft_cases(live);
  const int64_t had = loop_threads();
  Mixer random(seed);
  int64_t preempted = 0, reused = 0, drafted = 0, kept = 0, kept_of_models = 0;
  for (int i = 0; i < mixes && !::testing::Test::HasFailure(); ++i) {
    SCOPED_TRACE("seed " + std::to_string(seed) + " mix " + std::to_string(i));
    const Mix mix = random.mix();
    const GenerationLimits limits = random.limits();
    set_loop_threads(threads);
    const DraftCase* const draft = limits.drafts.tokens > 0 && random.one_in(2) ? &drafts[mix.draft] : nullptr;
    Together together(mix, limits, random, draft);
    const std::vector<SampleResult> results = together.run(weights);
    set_loop_threads(1);
    preempted += together.preempted;
    reused += together.reused;
    drafted += together.drafted;
    kept += together.kept;
    if (draft != nullptr) kept_of_models += together.kept;
    ASSERT_EQ(results.size(), mix.requests.size());
    for (size_t s = 0; s < results.size(); ++s) {
      const SampleResult expected = alone(mix, s, weights);
      EXPECT_EQ(results[s].tokens, expected.tokens) << "sample " << s;
      EXPECT_EQ(results[s].logprobs, expected.logprobs) << "sample " << s;
      EXPECT_EQ(results[s].finish, expected.finish) << "sample " << s;
    }
  }
  set_loop_threads(had);
  EXPECT_GT(preempted, mixes / 4);
  EXPECT_GT(reused, mixes);
  EXPECT_GT(kept, mixes / 12);
  EXPECT_GT(kept_of_models, mixes / 2);
  EXPECT_GT(drafted, kept + mixes / 4);
}

TEST(GenerationMixes, SayWhatTheirSamplesSayAlone) { compare_mixes(1, 450, 1); }
TEST(GenerationMixes, SayWhatTheirSamplesSayAloneWithOtherSeeds) { compare_mixes(2, 450, 1); }
TEST(GenerationMixes, SayWhatTheirSamplesSayAloneOnThreeThreads) { compare_mixes(3, 100, 3); }

}  // namespace
}  // namespace sluice::models::generation_mixes_test
