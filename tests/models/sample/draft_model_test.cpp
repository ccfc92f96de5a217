#include "models/sample/draft_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "models/sample/generation.h"
#include "tests/models/dense_reference.h"

namespace sluice::models::draft_model_test {
namespace {

constexpr int64_t kBlock = 16, kBlocks = 40;

/// The steps of a model that says anything: often what was guessed.
class Scripted {
 public:
  explicit Scripted(uint64_t seed)
      : random_(seed, 0),
        scheduler_(limits()),
        weights_(reference::random_weights(config_, 0.15)),
        draft_({.config = config_}, kSampling, kBlock, kBlocks, kStepTokens) {}

  int64_t below(int64_t bound) { return static_cast<int64_t>(random_.below(static_cast<uint64_t>(bound))); }

  void run() {
    std::vector<int64_t> beginning = tokens(40);
    for (uint64_t id = 0; id < 12; ++id) {
      if (id % 4 == 0) beginning.resize(static_cast<size_t>(3 + below(38))), prompt_ = beginning;
      scheduler_.submit({.id = id, .prompt = prompt_, .max_new_tokens = 5 + below(40), .stream = RandomStream(7, id)});
    }
    while (!scheduler_.idle()) step();
    EXPECT_EQ(scheduler_.pool().in_use(), 0);
  }

  int64_t guessed = 0, preempted = 0, reused = 0;

 private:
  static constexpr int64_t kStepTokens = 24;
  static constexpr SamplingOptions kSampling = {.temperature = 0.9};

  static GenerationLimits limits() {
    return {.max_running_samples = 6,
            .max_step_tokens = kStepTokens,
            .kv_block_size = kBlock,
            .kv_blocks = kBlocks,
            .drafts = {.tokens = 6, .by_model = true}};
  }

  std::vector<int64_t> tokens(int64_t count) {
    std::vector<int64_t> tokens(static_cast<size_t>(count));
    for (int64_t& token : tokens) token = below(config_.vocab_size);
    return tokens;
  }

  void step() {
    scheduler_.plan();
    reused += scheduler_.work().reused_tokens;
    for (const auto& [from, to] : scheduler_.copies()) draft_.copy_block(from, to, scheduler_.pool());
    draft_.guess(weights_, scheduler_.running(), scheduler_.pool());
    for (const auto& sample : scheduler_.running()) {
      if (sample->drafts.empty()) continue;
      guessed += std::ssize(sample->drafts);
      EXPECT_EQ(sample->drafts, said_alone(*sample)) << "sample " << sample->request.id;
    }
    scheduler_.advance();
    for (const auto& sample : scheduler_.running())
      if (sample->row >= 0) say(*sample);
    scheduler_.drop_done();
    preempt();
  }

  // What the draft says after the text when nothing else runs.
  std::vector<int64_t> said_alone(const Sample& sample) const {
    const std::span<const int64_t> prompt = sample.request.prompt.ids();
    std::vector<int64_t> text(prompt.begin(), prompt.end());
    text.insert(text.end(), sample.result.tokens.begin(), sample.result.tokens.end());
    GenerationEngine engine(config_, {.sampling = kSampling}, {.max_running_samples = 1, .kv_blocks = 8});
    engine.submit({.prompt = text, .max_new_tokens = std::ssize(sample.drafts), .stream = sample.request.stream});
    while (true)
      for (const SampleResult& result : engine.step(weights_)) return result.tokens;
  }

  void say(Sample& sample) {
    std::vector<int64_t>& said = sample.result.tokens;
    const int64_t most = std::ssize(sample.drafts);
    const int64_t right = below(4) == 0 ? below(most + 1) : most;
    for (int64_t i = 0; i <= right; ++i) {
      sample.request.stream.uniform();
      said.push_back(i < right ? sample.drafts[static_cast<size_t>(i)] : below(config_.vocab_size));
    }
    scheduler_.keep_drafts(sample, right);
    if (std::ssize(said) == sample.request.max_new_tokens) scheduler_.finish(sample);
  }

  void preempt() {
    if (scheduler_.running().empty() || below(12) > 0) return;
    const uint64_t id = scheduler_.running()[static_cast<size_t>(below(std::ssize(scheduler_.running())))]->request.id;
    scheduler_.preempt(id);
    scheduler_.restart(id);
    ++preempted;
    if (below(2) == 0) scheduler_.forget_prefixes();
  }

  const ModelConfig config_ = reference::small_config();
  RandomStream random_;
  Scheduler scheduler_;
  const PackedWeights weights_;
  DraftModel draft_;
  PromptTokens prompt_;
};

TEST(DraftModel, GuessesWhatItSaysAlone) {
  int64_t guessed = 0, preempted = 0, reused = 0;
  for (uint64_t seed = 0; seed < 40 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Scripted scripted(seed);
    scripted.run();
    guessed += scripted.guessed, preempted += scripted.preempted, reused += scripted.reused;
  }
  EXPECT_GT(guessed, 4000);
  EXPECT_GT(preempted, 40);
  EXPECT_GT(reused, 4000);
}

constexpr double kRows = 12;

TEST(DraftAgreement, GuessesMoreWhereMoreIsRightAndRestsWhereNothingIs) {
  DraftAgreement agreement;
  agreement.set_costs(0.1, kRows);
  EXPECT_EQ(agreement.next(4, 1), 4);
  for (int step = 0; step < 200; ++step) agreement.learn(8, 5);
  EXPECT_EQ(agreement.next(64, 1), 5);  // five times in six: 1, 1.56, 1.86, 2.03, 2.10, 2.12, 2.09
  for (int step = 0; step < 200; ++step) agreement.learn(8, 8);
  EXPECT_GT(agreement.next(64, 1), 60);
  for (int step = 0; step < 200; ++step) agreement.learn(4, 0);
  for (const int rest : {32, 64, 128}) {
    EXPECT_EQ(agreement.next(64, 1), 1) << "it is tried";
    for (int step = 0; step < rest; ++step) EXPECT_EQ(agreement.next(64, 1), 0) << rest;
  }
  for (int step = 0; step < 50; ++step) agreement.learn(1, 1);
  EXPECT_GE(agreement.next(64, 1), 1);
}

TEST(DraftAgreement, GuessesLessWhereAGuessCostsMoreAndNothingWhereItCannotPay) {
  const auto guesses_at = [](double cost, int64_t samples) {
    DraftAgreement agreement;
    agreement.set_costs(cost, kRows);
    for (int step = 0; step < 200; ++step) agreement.learn(4, 3);
    return agreement.next(64, samples);
  };
  EXPECT_GT(guesses_at(0.05, 1), guesses_at(0.3, 1));
  EXPECT_GT(guesses_at(0.3, 1), guesses_at(0.6, 1));
  EXPECT_GT(guesses_at(0.05, 1), guesses_at(0.05, 8));
  EXPECT_EQ(guesses_at(0.5, 12), 0);
  EXPECT_EQ(guesses_at(0.1, 200), 0);
}

TEST(DraftModel, OfAnotherVocabularyIsRefused) {
  ModelConfig other = reference::small_config();
  other.vocab_size = 38;
  const GenerationOptions options{.draft = DraftOptions{.config = other}};
  EXPECT_THROW(GenerationEngine(reference::small_config(), options, {.kv_blocks = 8}), UserError);
}

}  // namespace
}  // namespace sluice::models::draft_model_test
