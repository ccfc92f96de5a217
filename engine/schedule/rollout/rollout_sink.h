#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "engine/contract/node.h"
#include "engine/contract/world/metrics.h"
#include "engine/observe/work_observer.h"
#include "engine/schedule/stages/admission_stage.h"

namespace sluice::engine {

/// What a step of a rollout reports, kept until the step is done. Belongs to the step.
class RolloutSink final : public Rollout::Sink {
 public:
  struct Finished {
    Group group;
    Contribution metrics;  // what was recorded since the group before
  };

  /// `metrics`: of the rollout, where they go with its groups; null: they stay.
  RolloutSink(AdmissionStage& admission, Slice& slice, MetricsRecorder* metrics = nullptr)
      : admission_(admission), slice_(slice), metrics_(metrics) {}

  void return_credit(int64_t group_index, int64_t tokens) override { admission_.return_credit(group_index, tokens); }
  bool take_credit(int64_t group_index, int64_t tokens) override { return admission_.take_credit(group_index, tokens); }
  void finish(Group group) override {
    finished_.push_back({std::move(group), metrics_ != nullptr ? metrics_->contribution() : Contribution()});
  }
  void worked(int64_t prompt_tokens, int64_t sampled_tokens) override {
    slice_.prompt_tokens += prompt_tokens;
    slice_.tokens += sampled_tokens;
  }

  std::vector<Finished> take_finished() { return std::move(finished_); }

 private:
  AdmissionStage& admission_;
  Slice& slice_;
  MetricsRecorder* const metrics_;
  std::vector<Finished> finished_;
};

}  // namespace sluice::engine
