#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/contract/settings.h"
#include "engine/contract/world/model_versions.h"
#include "models/layers/segment.h"
#include "nodes/models/passes/pass_request.h"

namespace sluice::nodes {

/// What the rank that leads says to those that compute passes of a model with it, in the order in which it does so itself. A
/// value, which goes as text.
struct PassCommand {
  enum class Kind {
    kCompute,    // a segment of a pass, whose tokens, places and targets come after
    kBackward,   // of the last one that is trained on, from gradients that come after
    kEnterSlot,  // as TrainedModel has them, from here on
    kEnterIteration,
    kLastBackward,
    kAddUpSlots,
    kAddUpRanks,
    kBringWeights,
    kStep,
    kPublish,
    kTakeSnapshot,     // and says when it is taken
    kPrepareSnapshot,  // what is saved has a group of its own
    kWriteSnapshot,
    kEnd,
  };

  Kind kind = Kind::kEnd;

  PassRequest request = {};             // of kCompute, without tensors
  int64_t tokens = 0, places = 0;       // how many it has
  int64_t route_bytes = 0;              // of a token; 0: it has no routes
  bool trains = false;                  // there is a backward
  std::vector<double> counted = {};     // RouterTraining::expected()
  std::vector<bool> has_gradient = {};  // of kBackward, by output
  int64_t number = 0;                   // the slot, counted from the first of this rank, the iteration, or the version
  double scale = 1;                     // of kStep
  engine::VersionRange versions = {};   // of kTakeSnapshot
  engine::CheckpointCopy copy = engine::CheckpointCopy::kMemory;
  std::string folder = {};  // of kWriteSnapshot

  std::string to_text() const;

  /// Throws InternalError on what to_text() does not write.
  static PassCommand from_text(const std::string& text);
};

/// The part of a whole request that the rank at a place computes.
PassRequest part_of(const PassRequest& whole, const models::Segment& segment);

/// The part of tokens [begin, end), with the offsets of the whole.
PassRequest tokens_of(const PassRequest& whole, int64_t begin, int64_t end);

}  // namespace sluice::nodes
