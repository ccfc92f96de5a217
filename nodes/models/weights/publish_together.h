#pragma once

#include "nodes/models/passes/forward_model.h"
#include "nodes/models/weights/weight_publisher.h"

namespace sluice::nodes {

/// Publishes on this rank, and has those that assist it do so: they sample with it, or have a part of what is saved. This rank
/// first, which waits until nobody samples from the memory of the new version: they sample with it, so there nobody does either.
class PublishTogether final : public WeightPublisher {
 public:
  /// Both must outlive this.
  PublishTogether(const ForwardModel& model, WeightPublisher& own) : model_(model), own_(own) {}

  void publish(int64_t version) override {
    own_.publish(version);
    if (PassLead* const lead = model_.lead()) lead->tell({.kind = PassCommand::Kind::kPublish, .number = version});
  }
  void restart() override { own_.restart(); }

 private:
  const ForwardModel& model_;
  WeightPublisher& own_;
};

}  // namespace sluice::nodes
