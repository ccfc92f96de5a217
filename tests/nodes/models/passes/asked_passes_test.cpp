#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "engine/ranks/parcel_pass_groups.h"
#include "nodes/forward/forward.h"
#include "nodes/models/passes/asked_passes.h"
#include "tests/engine/ranks/parcels_in_one_process.h"
#include "tests/files/forwarding_file_system.h"
#include "tests/nodes/models/shared_model.h"
#include "tests/nodes/tiny_model.h"

// A frozen model whose passes ranks of a role of their own compute, threads of one process, against one that a rank has alone.
namespace sluice::nodes::asked_passes_test {
namespace {

using testing::Samples;
using testing::TinyFolder;
using testing::TinyOptions;

/// Ranks [0, asking) ask, those after them answer, each with each.
class RanksApart {
 public:
  RanksApart(const TinyFolder& folder, const TinyOptions& options, int asking, int answering)
      : parcels_(asking + answering, 3, 20) {
    for (int rank = 0; rank < asking + answering; ++rank) {
      groups_.push_back(std::make_unique<engine::ParcelPassGroups>(parcels_.rank(rank), std::vector<int>{rank}));
      const bool asks = rank < asking;
      engine::ModelUsage usage{.passes = groups_.back().get()};
      usage.forwarding = asks ? engine::Forwarding::kAsks : engine::Forwarding::kAnswers;
      usage.own_rank = rank;
      for (int peer = asks ? asking : 0; peer < (asks ? asking + answering : asking); ++peer) usage.peers.push_back(peer);
      models_.push_back(asks ? without_weights(folder, options) : testing::tiny_model(folder.path(), options));
      models_.back()->forward_passes(usage);
      if (!asks) answering_.emplace_back([this, rank] { answer(rank); });
    }
  }
  ~RanksApart() {
    for (const auto& model : models_) model->dismiss();
    join();
    parcels_.close();
  }

  void join() { answering_.clear(); }

  const ForwardModel& asks(int rank) const { return models_[static_cast<size_t>(rank)]->forward(); }
  const std::vector<std::string>& failures() const { return failures_; }
  engine::PassGroups& groups(int rank) { return *groups_[static_cast<size_t>(rank)]; }

 private:
  static std::shared_ptr<LanguageModel> without_weights(const TinyFolder& folder, const TinyOptions& options) {
    return std::make_shared<FrozenLanguageModel>(options.value_head ? "critic" : "actor", folder.path(),
                                                 models::read_config(folder.path()), options.precision);
  }

  void answer(int rank) {
    try {
      models_[static_cast<size_t>(rank)]->assist(unsynced_disk());
    } catch (const std::exception& error) {
      failures_.push_back(error.what());
      for (const auto& group : groups_) group->abandon();  // as the loss of the rank would
    }
  }

  engine::testing::ParcelsInOneProcess parcels_;
  std::vector<std::unique_ptr<engine::ParcelPassGroups>> groups_;
  std::vector<std::shared_ptr<LanguageModel>> models_;
  std::vector<std::string> failures_;
  std::vector<std::jthread> answering_;
};

using Asked = std::function<std::vector<at::Tensor>(const ForwardModel&, const RaggedSamples&)>;

std::vector<at::Tensor> logprobs(const ForwardModel& model, const RaggedSamples& samples) {
  return {policy_logprobs(model, samples, 0.7)};
}

std::vector<at::Tensor> entropies(const ForwardModel& model, const RaggedSamples& samples) {
  const PolicyOutputs outputs = policy_logprobs_and_entropy(model, samples, 0.8);
  return {outputs.logprobs, outputs.entropy};
}

std::vector<at::Tensor> scores(const ForwardModel& model, const RaggedSamples& samples) {
  return {token_values(model, samples, last_tokens(samples.sample_offsets))};
}

void expect_equal(const Asked& asked, const ForwardModel& ours, const ForwardModel& theirs, const RaggedSamples& samples) {
  const at::NoGradGuard no_gradient;
  const std::vector<at::Tensor> here = asked(ours, samples), there = asked(theirs, samples);
  ASSERT_EQ(here.size(), there.size());
  for (size_t i = 0; i < here.size(); ++i) EXPECT_TRUE(at::equal(here[i], there[i])) << i;
}

struct AskedCase {
  std::string name;
  TinyOptions options;
  Asked asked;
  bool mixture = false;
};

class PassesOfOthers : public ::testing::TestWithParam<AskedCase> {};

TEST_P(PassesOfOthers, GiveTheBitsOfOneRankHoweverManyAnswer) {
  const TinyFolder folder;
  if (GetParam().mixture) testing::make_mixture(folder);
  const Samples samples;
  const std::shared_ptr<LanguageModel> alone = testing::tiny_model(folder.path(), GetParam().options);
  for (int answering = 1; answering <= 5; ++answering) {  // of four samples
    SCOPED_TRACE(answering);
    const RanksApart ranks(folder, GetParam().options, 1, answering);
    for (int pass = 0; pass < 3; ++pass) expect_equal(GetParam().asked, ranks.asks(0), alone->forward(), samples.ragged());
  }
}

TEST_P(PassesOfOthers, OneRankAnswersSeveralThatAskAtTheSameTime) {
  const TinyFolder folder;
  if (GetParam().mixture) testing::make_mixture(folder);
  const Samples samples;
  const std::shared_ptr<LanguageModel> alone = testing::tiny_model(folder.path(), GetParam().options);
  constexpr int kAsking = 3;
  const RanksApart ranks(folder, GetParam().options, kAsking, 2);
  std::vector<std::jthread> asking;
  for (int rank = 0; rank < kAsking; ++rank) {
    asking.emplace_back([&, rank] {
      for (int pass = 0; pass < 4; ++pass) expect_equal(GetParam().asked, ranks.asks(rank), alone->forward(), samples.ragged());
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Models, PassesOfOthers,
                         ::testing::Values(AskedCase{"Logprobs", {}, logprobs}, AskedCase{"Entropies", {}, entropies},
                                           AskedCase{"InBfloat16", {.precision = models::Precision::kBfloat16}, entropies},
                                           AskedCase{"Scores", {.value_head = true}, scores},
                                           AskedCase{"OfAMixture", {}, logprobs, true}),
                         [](const auto& info) { return info.param.name; });

TEST(PassesOfOthers, TheEndOfTheRunEndsTheWaitOfAllThatAskAndAnswer) {
  const TinyFolder folder;
  const Samples samples;
  std::vector<std::string> failures;
  {
    RanksApart ranks(folder, {}, 2, 1);
    logprobs(ranks.asks(0), samples.ragged());
    for (int rank = 0; rank < 3; ++rank) ranks.groups(rank).abandon();
    for (int rank = 0; rank < 2; ++rank) EXPECT_THROW(logprobs(ranks.asks(rank), samples.ragged()), UserError);
    ranks.join();
    failures = ranks.failures();
  }
  ASSERT_EQ(failures.size(), 1u);  // of the rank that answers both
  EXPECT_NE(failures.front().find("the ranks that compute passes of model actor"), std::string::npos);
}

TEST(PassesOfOthers, ATokenOfAnotherVocabularyIsNotEvenAsked) {
  const TinyFolder folder;
  Samples samples;
  samples.tokens[3] = TinyFolder::kVocabulary;
  const RanksApart ranks(folder, {}, 1, 1);
  EXPECT_THROW(logprobs(ranks.asks(0), samples.ragged()), UserError);
  EXPECT_TRUE(ranks.failures().empty());
}

TEST(PassesOfOthers, ANodeThatWantsTheWeightsThemselvesIsToldWhereTheyAre) {
  const TinyFolder folder;
  const RanksApart ranks(folder, {}, 1, 1);
  EXPECT_EQ(ranks.asks(0).config().vocab_size, TinyFolder::kVocabulary);
  EXPECT_THROW(ranks.asks(0).transformer(), UserError);
}

// Together they are the whole, and no part could give its nearest sample away and be closer to its share.
TEST(PartsOfAPass, AreWholeSamplesOfAboutAsManyTokens) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 1000; ++round) {
    engine::Layout layout;
    std::vector<int64_t> tokens;
    size_t longest = 0;
    const size_t count = 1 + random() % 12;
    for (size_t sample = 0; sample < count; ++sample) {
      const size_t length = 1 + random() % 40, actions = random() % length;
      layout.add_sample(length, actions);
      longest = std::max(longest, length);
      for (size_t i = 0; i < length; ++i) tokens.push_back(static_cast<int64_t>(random() % 90));
    }
    const RaggedSamples samples = all_samples({tokens}, layout);
    PassRequest whole{.tokens = samples.tokens,
                      .sample_offsets = samples.sample_offsets,
                      .places = samples.predicting,
                      .targets = samples.targets};
    whole.logprobs = true;
    const size_t ranks = 1 + random() % 8;
    const std::vector<PassRequest> parts = parts_of(whole, ranks);
    ASSERT_LE(parts.size(), ranks);
    int64_t begin = 0;
    std::vector<at::Tensor> all_tokens, places, targets;
    for (const PassRequest& part : parts) {
      ASSERT_GE(part.sample_offsets.size(), 2u);
      EXPECT_EQ(part.sample_offsets.back(), part.tokens.numel());
      EXPECT_LE(part.tokens.numel(), samples.tokens.numel() / static_cast<int64_t>(ranks) + 2 * static_cast<int64_t>(longest));
      all_tokens.push_back(part.tokens), places.push_back(part.places.add(begin)), targets.push_back(part.targets);
      begin += part.tokens.numel();
    }
    EXPECT_TRUE(at::equal(at::cat(all_tokens), whole.tokens));
    EXPECT_TRUE(at::equal(at::cat(places), whole.places));
    EXPECT_TRUE(at::equal(at::cat(targets), whole.targets));
  }
}

}  // namespace
}  // namespace sluice::nodes::asked_passes_test
