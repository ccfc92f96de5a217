#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/numbers/random.h"
#include "engine/ranks/parcel_pass_groups.h"
#include "models/sample/generation.h"
#include "nodes/models/sampling/sampling_lead.h"
#include "tests/engine/ranks/parcels_in_one_process.h"
#include "tests/files/forwarding_file_system.h"
#include "tests/nodes/tiny_model.h"

// A model that two ranks sample from together, of which one leads, against one that a rank has alone.
namespace sluice::nodes::shared_sampling_test {
namespace {

using engine::testing::ParcelsInOneProcess;
using testing::TinyFolder;
using testing::TinyOptions;

constexpr int kSamplers = 2;  // as many as the model has heads of keys

// The rank that leads, and a thread for the one that assists, which ends when this goes.
class ModelSampledTogether {
 public:
  /// `share`: of rank 0, without its place.
  ModelSampledTogether(const TinyFolder& folder, const TinyOptions& options, const models::ColumnShare& share) {
    for (int rank = 0; rank < kSamplers; ++rank) {
      TinyOptions own = options;
      own.world = {rank, kSamplers, kSamplers};
      own.share = share;
      own.share.place = rank;
      models_.push_back(testing::tiny_model(folder.path(), own));
      groups_.push_back(std::make_unique<engine::ParcelPassGroups>(parcels_.rank(rank), std::vector<int>{0, 1}));
      models_.back()->share_passes(*groups_.back());
    }
    assisting_ = std::jthread([this] { models_.back()->assist(unsynced_disk()); });
  }
  ~ModelSampledTogether() {
    models_.front()->dismiss();
    assisting_.join();
    parcels_.close();
    EXPECT_TRUE(parcels_.failures().empty());
  }

  LanguageModel& leads() { return *models_.front(); }
  const std::vector<std::shared_ptr<LanguageModel>>& all() const { return models_; }

 private:
  ParcelsInOneProcess parcels_{kSamplers, 3, 20};
  std::vector<std::unique_ptr<engine::ParcelPassGroups>> groups_;
  std::vector<std::shared_ptr<LanguageModel>> models_;
  std::jthread assisting_;
};

struct Sampled {
  std::vector<int64_t> tokens;
  std::vector<float> logprobs;

  bool operator==(const Sampled&) const = default;
};
using AllSampled = std::map<uint64_t, Sampled>;

// Of prompts that begin alike, more of them than there are places and, on demand, blocks.
class Sampling {
 public:
  Sampling(const LanguageModel& model, models::KvAdmission admission)
      : sampled_(model.sampled()),
        engine_(sampled_.config(),
                {.sampling = {.temperature = 0.9, .top_p = 0.95, .presence_penalty = 0.3},
                 .end_of_sequence = {0},
                 .precision = sampled_.precision(),
                 .together = sampled_.lead() ? sampled_.lead()->steps() : nullptr},
                {.max_running_samples = 5, .max_step_tokens = 24, .kv_blocks = 9, .admission = admission}) {}

  AllSampled all(int64_t version) {
    engine_.forget_prefixes();
    for (uint64_t id = 0; id < 12; ++id) {
      std::vector<int64_t> prompt;
      for (uint64_t i = 0; i < 20 + id % 4; ++i) prompt.push_back(static_cast<int64_t>(i < 18 ? 2 + i : 2 + (i * id) % 90));
      engine_.submit({.id = id, .prompt = prompt, .max_new_tokens = 24, .stream = RandomStream(5, id)});
    }
    AllSampled all;
    while (!engine_.idle()) step(version, all);
    return all;
  }

  void step(int64_t version, AllSampled& all) {
    for (models::SampleResult& result : engine_.step(sampled_.at(version)))
      all[result.id] = {std::move(result.tokens), std::move(result.logprobs)};
  }

  const models::GenerationEngine& engine() const { return engine_; }

 private:
  const SampledWeights& sampled_;
  models::GenerationEngine engine_;
};

struct SamplingCase {
  std::string name;
  TinyOptions options;
  models::KvAdmission admission = models::KvAdmission::kWorstCase;
  models::ColumnShare share = {.ranks = kSamplers};
  bool mixture = false;
  std::vector<int64_t> dense_layers = {};
};

TinyOptions optimized(TinyOptions options = {}) {
  options.optimizer = models::AdamWOptions{.learning_rate = 1e-2};
  return options;
}

std::vector<SamplingCase> sampling_cases() {
  return {{"Frozen", {}},
          {"Trained", optimized()},
          {"InBfloat16", optimized({.precision = models::Precision::kBfloat16})},
          {"OnDemand", optimized(), models::KvAdmission::kOnDemand},
          {"OfSeveralVersions", optimized({.readable_versions = 3})},
          {"OfExperts", optimized(), models::KvAdmission::kOnDemand, {.expert_ranks = kSamplers}, true},
          {"OfExpertsBesideAnMlp", optimized(), models::KvAdmission::kOnDemand, {.expert_ranks = kSamplers}, true, {0}},
          {"OfExpertsAndColumns",
           optimized({.readable_versions = 3, .precision = models::Precision::kBfloat16}),
           models::KvAdmission::kWorstCase,
           {.ranks = kSamplers, .expert_ranks = kSamplers},
           true}};
}

class SharedSampling : public ::testing::TestWithParam<SamplingCase> {};

TEST_P(SharedSampling, GivesTheTokensOfOneRank) {
  const TinyFolder folder;
  const SamplingCase& of = GetParam();
  if (of.mixture) testing::make_mixture(folder, 6, of.dense_layers);
  const std::shared_ptr<LanguageModel> alone = testing::tiny_model(folder.path(), of.options);
  ModelSampledTogether shared(folder, of.options, of.share);
  Sampling theirs(*alone, of.admission), ours(shared.leads(), of.admission), others(shared.leads(), of.admission);
  EXPECT_EQ(ours.all(0), theirs.all(0));
  EXPECT_EQ(of.share.ranks * ours.engine().backend().bytes_held(), theirs.engine().backend().bytes_held());
  if (!of.options.optimizer) return;
  for (int64_t version = 1; version < 4; ++version) {
    for (const std::shared_ptr<LanguageModel>& model : shared.all()) testing::shift_weights(*model, 0.01F);
    testing::shift_weights(*alone, 0.01F);
    testing::publish(shared.leads(), version);
    testing::publish(*alone, version);
    const AllSampled expected = theirs.all(version);
    EXPECT_EQ(ours.all(version), expected) << "version " << version;
    EXPECT_EQ(others.all(version), expected) << "version " << version << ", another generation";
  }
}

INSTANTIATE_TEST_SUITE_P(Models, SharedSampling, ::testing::ValuesIn(sampling_cases()),
                         [](const auto& info) { return info.param.name; });

// What is held of a version is a part, and all parts together little more than one rank has alone.
TEST(SharedSamplingMemory, EachRankHasAPartOfAVersion) {
  const TinyFolder folder;
  const std::shared_ptr<LanguageModel> alone = testing::tiny_model(folder.path(), {});
  ModelSampledTogether shared(folder, {}, {.ranks = kSamplers});
  const auto bytes_of = [](const LanguageModel& model) { return static_cast<double>(model.sampled().bytes()); };
  for (const std::shared_ptr<LanguageModel>& model : shared.all()) {
    const SampledWeights& sampled = model->sampled();
    EXPECT_LT(bytes_of(*model), 0.75 * bytes_of(*alone));  // panels of 32 outputs are half full in so small a model
    EXPECT_EQ(sampled.bytes(), models::PackedWeights::bytes_for(sampled.config(), sampled.precision(), sampled.share()));
  }
}

}  // namespace
}  // namespace sluice::nodes::shared_sampling_test
