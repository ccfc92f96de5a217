#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/contract/model.h"
#include "engine/contract/world/model_versions.h"
#include "models/layers/column_share.h"
#include "models/sample/load_packed.h"
#include "nodes/models/model_text.h"
#include "nodes/models/passes/forward_model.h"
#include "nodes/models/sampling/sampled_weights.h"
#include "nodes/models/trained_model.h"
#include "nodes/models/weights/local_publisher.h"
#include "nodes/models/weights/received_weights.h"

namespace sluice::nodes {

/// Memory that ranks have in common with weights of a model; it outlives the model.
struct InCommon {
  engine::CommonMemory& memory;
  bool has_copies = true;       // all that hold the weights sample from them, too: what is published is there once
  int64_t bytes_of_others = 0;  // of the live weights
};

/// A model of a run as the engine sees it: the owner of its parts. Nodes see parts alone, those that they ask for
/// (model_parts.h); each part says which threads may use it.
///
/// Every model has its text, its weights for forward passes, and what is sampled from, whose version 0 are the weights that it
/// begins with. A frozen one that is sampled from holds them once, packed, and its passes read those; on a GPU it has none for
/// passes then. What is trained and what publishes belong to a TrainedLanguageModel.
class LanguageModel : public engine::Model {
 public:
  LanguageModel(const LanguageModel&) = delete;  // parts refer to one another
  LanguageModel& operator=(const LanguageModel&) = delete;

  engine::ModelBytes bytes() const override;

  /// Its passes are computed by several ranks, of which this one leads or assists, and where it has a share of the versions steps
  /// of generations, too. Before anybody computes; the groups outlive it.
  void share_passes(engine::PassGroups& groups);

  /// Likewise: of a frozen one, other ranks compute its passes for this one, or this one does so for others, as `usage` says.
  void forward_passes(const engine::ModelUsage& usage);

  void assist(FileSystem& files) override;
  void dismiss() override;

  const std::string& name() const { return text_.name(); }
  const ModelText& text() const { return text_; }
  const ForwardModel& forward() const { return forward_; }
  const SampledWeights& sampled() const { return sampled_; }

 protected:
  /// What this rank has of the live weights, and what other ranks have of them, where they have them in common.
  struct LiveBytes {
    int64_t own = 0;
    int64_t of_others = 0;
  };

  /// `folder`: where the tokenizer is. `common`: has what is published too; null: this rank has it alone. `share`: what it has of
  /// each version, without an exchange.
  LanguageModel(const std::string& name, const std::filesystem::path& folder, const models::Transformer& transformer,
                engine::ModelVersions versions, LiveBytes live_bytes, const InCommon* common = nullptr,
                const models::ColumnShare& share = {});

  /// Of one without weights, whose passes other ranks compute.
  LanguageModel(const std::string& name, const std::filesystem::path& folder, const models::ModelConfig& config,
                models::Precision precision);

  /// Of one that holds its weights as they are sampled from, on `device`.
  LanguageModel(const std::string& name, const std::filesystem::path& folder, models::PackedModel&& packed, at::Device device);

  /// Null: nobody trains it here; and nobody elsewhere.
  virtual TrainedModel* trained_part() { return nullptr; }
  virtual ReceivedWeights* received_part() { return nullptr; }

  const ModelText text_;
  ForwardModel forward_;
  SampledWeights sampled_;
  std::unique_ptr<VersionsLead> versions_lead_;  // null: nobody trains it elsewhere, or nobody samples with this rank

 private:
  engine::PassGroup& sampling_group() const;
  void assist_lead(FileSystem& files);
  void answer_others();

  const LiveBytes live_bytes_;
  engine::PassGroups* groups_ = nullptr;
  std::vector<engine::PassGroup*> asking_;  // ranks for which this one computes passes
};

/// One that nobody trains: it stays version 0, and nothing of it is saved (InternalError).
class FrozenLanguageModel final : public LanguageModel {
 public:
  enum class Weights { kOwn, kShared };  // with a model that counts them in its bytes()

  FrozenLanguageModel(const std::string& name, const std::filesystem::path& folder, const models::Transformer& transformer,
                      engine::ModelVersions versions, Weights weights = Weights::kOwn, const InCommon* common = nullptr,
                      const models::ColumnShare& share = {});

  /// One without weights, whose passes other ranks compute.
  FrozenLanguageModel(const std::string& name, const std::filesystem::path& folder, const models::ModelConfig& config,
                      models::Precision precision);

  /// One that holds its weights as they are sampled from: version 0 alone, without live weights.
  FrozenLanguageModel(const std::string& name, const std::filesystem::path& folder, models::PackedModel&& packed,
                      at::Device device);

  void take_snapshot(engine::VersionRange, engine::CheckpointCopy) override { refuse(); }
  void write_snapshot(const std::filesystem::path&, FileSystem&) override { refuse(); }
  void restore(const std::filesystem::path&, engine::VersionRange) override { refuse(); }

 private:
  [[noreturn]] void refuse() const;
};

/// One that this rank samples from and others train: nothing of it is saved here (InternalError).
class ReceivedLanguageModel final : public LanguageModel {
 public:
  /// `transformer`: with the landed weights, which are version 0. `common`: has the copies to sample from; null: this rank has
  /// its own.
  ReceivedLanguageModel(const std::filesystem::path& folder, const models::Transformer& transformer, WireLayout layout,
                        LandedModel landed, const engine::ModelUsage& usage, const InCommon* common = nullptr,
                        const models::ColumnShare& share = {});

  ReceivedWeights* received_part() override { return &received_; }

  void begin_with_version(int64_t first) override { received_.restart(first); }
  void receive_version(int64_t version, engine::VersionReceived done) override;
  void take_snapshot(engine::VersionRange, engine::CheckpointCopy) override { refuse(); }
  void write_snapshot(const std::filesystem::path&, FileSystem&) override { refuse(); }

  /// From the ranks that train it, which read them. Ranks that sample with this one do so themselves.
  void restore(const std::filesystem::path& folder, engine::VersionRange versions) override;

 private:
  [[noreturn]] void refuse() const;

  ReceivedWeights received_;
};

class TrainedLanguageModel final : public LanguageModel {
 public:
  /// `publisher`: where versions go; null: to the samplers of this process.
  TrainedLanguageModel(const std::string& name, const std::filesystem::path& folder, const models::Transformer& transformer,
                       const Training& training, engine::ModelVersions versions, std::unique_ptr<WeightPublisher> publisher = {},
                       const InCommon* common = nullptr, const models::ColumnShare& share = {});

  engine::ModelBytes bytes() const override;

  TrainedModel& trained() { return trained_; }
  const TrainedModel& trained() const { return trained_; }
  TrainedModel* trained_part() override { return &trained_; }

  bool add_up_slots() override { return trained_.add_up_slots(); }
  void add_up_ranks(const std::function<void()>& done) override { trained_.add_up_ranks(done); }
  void bring_weights(const std::function<void()>& done) override { trained_.bring_weights(done); }
  void prepare_snapshot() override { trained_.prepare_snapshot(); }
  void take_snapshot(engine::VersionRange versions, engine::CheckpointCopy copy) override {
    trained_.take_snapshot(versions, copy);
  }
  void write_snapshot(const std::filesystem::path& folder, FileSystem& files) override {
    trained_.write_snapshot(text_.folder(), folder, files);
  }
  void restore(const std::filesystem::path& folder, engine::VersionRange versions) override {
    trained_.restore(folder, versions);
  }

 private:
  const std::unique_ptr<WeightPublisher> publisher_;
  TrainedModel trained_;
};

}  // namespace sluice::nodes
