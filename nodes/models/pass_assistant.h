#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <vector>

#include "base/files/file_system.h"
#include "engine/contract/world/pass_group.h"
#include "nodes/models/passes/forward_model.h"
#include "nodes/models/passes/group_exchange.h"
#include "nodes/models/passes/pass_command.h"
#include "nodes/models/trained_model.h"

namespace sluice::nodes {

/// Computes segments of the passes of a model that another rank leads (nodes/models/passes/pass_lead.h), and does with the model
/// what that one does. Keeps what the backward of the last segment needs that is trained on.
///
/// Ownership: uses what it is given, which outlives it. Threads: one. Waits for: the rank that leads. Ends when: it says so, or
/// the run is over, which is thrown as PassGroup has it.
class PassAssistant {
 public:
  /// trained: null where the model is frozen.
  PassAssistant(engine::PassGroup& passes, const ForwardModel& model, TrainedModel* trained)
      : passes_(passes), exchange_(passes), model_(model), trained_(trained) {}

  void assist_passes();

 private:
  bool obey(const PassCommand& command);
  void compute(const PassCommand& command);
  void run_backward(const PassCommand& command);
  TrainedModel& trained() const;

  engine::PassGroup& passes_;
  GroupExchange exchange_;
  const ForwardModel& model_;
  TrainedModel* const trained_;
  std::vector<at::Tensor> outputs_;  // of the last segment that is trained on
};

/// Writes what this rank has of the model's snapshots, when the rank that leads says so, on another thread beside the passes.
/// What cannot be written that rank learns. Waits and ends as PassAssistant does. `source`: as TrainedModel::write_snapshot().
void assist_saves(engine::PassGroup& saves, TrainedModel& trained, const std::filesystem::path& source, FileSystem& files);

}  // namespace sluice::nodes
