#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/contract/registry.h"
#include "engine/run/try_node.h"
#include "nodes/models/language_model.h"
#include "nodes/models/weights/trained_parameters.h"

namespace sluice::nodes::testing {

/// A temporary folder with config.json and tokenizer.json of a two-layer Llama over printable ASCII: id 0 is "<eos>", id 1 is a
/// space, then one id a character. No weights: models are made with random ones. Removed by the destructor.
class TinyFolder {
 public:
  TinyFolder();
  ~TinyFolder();
  TinyFolder(const TinyFolder&) = delete;
  TinyFolder& operator=(const TinyFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

  static constexpr int64_t kVocabulary = 96, kHidden = 32, kLayers = 2, kHeads = 4, kKvHeads = 2, kHeadDim = 8,
                           kIntermediate = 48;
  static constexpr int64_t kPositions = 256;

 private:
  std::filesystem::path path_;
};

/// Makes the model a Qwen2-MoE: layers of so many experts, two of which a token goes through, and of a shared one.
void make_mixture(const TinyFolder& folder, int64_t experts = 5, const std::vector<int64_t>& dense_layers = {});

struct TinyOptions {
  uint64_t seed = 1;
  bool value_head = false;
  bool both_heads = false;                        // a policy with a value head
  std::optional<models::AdamWOptions> optimizer;  // none: frozen
  int64_t readable_versions = 1;
  int64_t saved_versions = 0;
  models::Precision precision = models::Precision::kFloat32;
  TrainedParameters trained;   // with an optimizer
  double router_aux_loss = 0;  // likewise
  bool recompute = false;      // the backward computes each layer again
  at::Device device = at::kCPU;
  engine::World world;  // whose slots it has gradients of
  bool shard_optimizer = false;
  engine::GradientGroup* gradients = nullptr;
  engine::CommonMemory* common = nullptr;      // null: the rank has its weights alone
  int64_t floats_of_bucket = kFloatsOfABlock;  // so that there are several
  models::ColumnShare share;                   // of what is sampled from
};

/// A model with random weights, held as a pipeline's are; a value head is random too. With an optimizer it is a trained one.
std::shared_ptr<LanguageModel> tiny_model(const std::filesystem::path& folder, const TinyOptions& options);

/// What is trained of a model that has an optimizer. Throws std::bad_cast where it has none.
TrainedModel& trained(LanguageModel& model);

/// Makes the live weights of a trained model `version`.
void publish(LanguageModel& model, int64_t version);

/// Writes the live weights as a Hugging Face folder.
void save_model(const LanguageModel& model, const std::filesystem::path& folder);

/// All weights, one after the other, as float32.
std::vector<float> all_weights(const LanguageModel& model);

/// The first number of the embedding of a published version.
float first_embedding(const models::PackedWeights& weights);

/// Adds `amount` to every weight.
void shift_weights(LanguageModel& model, float amount);

using Models = std::map<std::string, std::shared_ptr<engine::Model>>;

/// One node alone on `groups`, packed as `groups_per_batch` says (empty: all in one micro-batch), in passes of `pass_tokens`.
template <class T, class P>
engine::NodeOutcome run_node(const P& params, const Models& models, std::vector<engine::Group> groups,
                             std::vector<size_t> groups_per_batch = {}, int64_t pass_tokens = engine::NodeResources::kNoLimit) {
  engine::Registry registry;
  registry.add<T>();
  engine::MetricsRecorder metrics;  // of every name: a component that a test makes by hand has declared none to its node
  engine::NodeTrial trial;
  trial.type = &registry.nodes().begin()->second;
  trial.params = std::make_shared<P>(params);
  trial.resources.models = models;
  trial.resources.pass_tokens = pass_tokens;
  trial.resources.metrics = &metrics;
  trial.groups = std::move(groups);
  trial.groups_per_batch = std::move(groups_per_batch);
  return engine::try_node(std::move(trial));
}

/// The needs that a node states for `params`.
template <class T, class P>
engine::NodeNeeds needs_of(const P& params) {
  engine::Contract<P> contract;
  T::describe(contract);
  return contract.needs_of(params);
}

/// The entries of an action column of an outcome.
std::vector<float> floats(const engine::NodeOutcome& outcome, const std::string& column);

/// Throws std::out_of_range if it was not recorded.
double metric(const engine::MetricRow& row, const std::string& name);

/// Sample s of a group: tokens, of which the last `actions` are actions.
struct TinySample {
  std::vector<int64_t> tokens;
  int64_t actions = 0;
};

/// A complete group with tokens.
engine::Group group_of(const std::vector<TinySample>& samples);

/// Four groups of one to three samples, of different lengths.
std::vector<engine::Group> mixed_groups();

}  // namespace sluice::nodes::testing
