#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/files/file_system.h"
#include "engine/contract/model.h"
#include "engine/contract/params/scheduled_number.h"
#include "engine/contract/world/model_versions.h"
#include "models/folder/folder.h"
#include "models/train/adamw.h"
#include "nodes/models/gradients/common_gradients.h"
#include "nodes/models/gradients/common_training.h"
#include "nodes/models/gradients/gradient_buckets.h"
#include "nodes/models/passes/forward_model.h"
#include "nodes/models/snapshot/model_snapshot.h"
#include "nodes/models/weights/publish_together.h"
#include "nodes/models/weights/saved_versions.h"
#include "nodes/models/weights/weight_publisher.h"

namespace sluice::nodes {

/// How a model is trained and saved.
struct Training {
  models::AdamWOptions optimizer;
  std::optional<engine::ValueSchedule> learning_rate;  // unset: that of the optimizer, always
  models::SavedAdapter saved_adapter = models::SavedAdapter::kBoth;
  engine::World world;                          // of the ranks that hold it, whose slots it has gradients of
  SlotRange slots = {};                         // those of them that micro-batches name here; empty: those of `world`
  bool shard_optimizer = false;                 // each rank steps what it owns alone
  engine::GradientGroup* gradients = nullptr;   // that adds them over the ranks, and outlives it; null: there is one rank
  engine::DeviceExchange* devices = nullptr;    // whose devices give each other gradients, likewise; null: the host does
  int64_t floats_of_bucket = kFloatsOfABucket;  // in which they are added
  std::optional<CommonTraining> common;         // none: this rank has weights and gradients alone
};

/// What is trained of a model: its live weights, their optimizer, and the copies of both that checkpoints are made of. Models
/// that are frozen have none. A model owns it; `trained_model()` of model_parts.h gives it to a node.
///
/// Where other ranks compute passes with this one (ForwardModel::lead()), they do all that changes the model, too.
///
/// Belongs to the executor thread of the node that trains: also take_snapshot() runs there, and only what was copied then is
/// written on another thread. bytes() from any thread. What cannot be read or written is a UserError that names file and tensor.
class TrainedModel {
 public:
  /// `live` and `next`, where publications go, must outlive this. The weights of `live` that need a gradient lie in one buffer
  /// from now on.
  TrainedModel(const ForwardModel& live, const Training& training, engine::ModelVersions versions, WeightPublisher& next);

  const std::string& name() const { return live_.name(); }
  const models::Transformer& transformer() const { return live_.transformer(); }
  const ForwardModel& forward() const { return live_; }
  models::AdamW& optimizer() { return optimizer_; }
  const models::AdamW& optimizer() const { return optimizer_; }

  /// Sets the learning rate of the optimizer to that of an iteration, and returns it.
  double enter_iteration(int64_t iteration);

  /// A backward adds to the gradients of this slot of the run from now on (MicroBatch::slot()), or of this one of those that the
  /// rank has.
  void enter_slot(int slot);
  void enter_own_slot(int64_t place);

  /// One step of the optimizer with the gradients times `scale`, on this rank and those that assist it: as AdamW::step().
  double step(double scale);

  /// The next backward is the last that adds to the gradients of the step on this rank: what it is done with may be added over
  /// the ranks at once, while it goes on. Who does not know does not say it.
  void expect_last_backward();

  /// As engine::Model has them.
  bool add_up_slots();
  void add_up_ranks(const std::function<void()>& done);
  void bring_weights(const std::function<void()>& done);

  /// Makes the live weights a version, which checkpoints may then save, on this rank and those that assist it.
  WeightPublisher& publisher() { return publishes_; }

  /// Likewise, on this rank alone.
  void publish_here(int64_t version) { saved_versions_.publish(version); }

  /// As engine::Model has them. `NAME/` is a Hugging Face folder, with configuration and tokenizer of the folder `source`,
  /// adapters merged in; or the adapters in PEFT's format in it or instead. What lies beside it:
  /// nodes/models/snapshot/snapshot_files.h.
  void prepare_snapshot();
  void take_snapshot(engine::VersionRange versions, engine::CheckpointCopy copy);
  void write_snapshot(const std::filesystem::path& source, const std::filesystem::path& folder, FileSystem& files);
  void restore(const std::filesystem::path& folder, engine::VersionRange versions);

  /// The form of `NAME/`, and this rank's share of it.
  models::SaveOptions save_options() const { return snapshot_.save_options(); }

  /// Copies, gradients and optimizer: all but the live weights.
  engine::ModelBytes bytes() const;

 private:
  std::unique_ptr<BucketTransport> transport_of(const Training& training);
  GradientExchange* exchange() const;
  std::vector<FloatRange> part_in_common() const;
  void tell_assistants(const PassCommand& command) const;
  void restore_version(const models::NamedTensors& weights, int64_t version, const std::filesystem::path& folder);
  void meet() const;

  const ForwardModel& live_;
  const std::optional<engine::ValueSchedule> learning_rate_;
  const engine::World world_;
  const int first_slot_;  // that micro-batches name here
  models::AdamW optimizer_;
  const std::optional<CommonTraining> common_;
  std::unique_ptr<CommonGradients> common_gradients_;  // null: this rank has gradients of its own
  std::unique_ptr<GradientBuckets> buckets_;           // null: likewise not, or there is one rank
  SavedVersions saved_versions_;
  PublishTogether publishes_{live_, saved_versions_};
  ModelSnapshot snapshot_;
  int64_t brought_ = 0;  // steps whose weights all ranks have
  int64_t optimizer_bytes_ = 0;
  int64_t gradient_bytes_ = 0;  // of all slots
};

}  // namespace sluice::nodes
