#pragma once

#include <ATen/core/Tensor.h>

#include <mutex>
#include <vector>

#include "engine/contract/world/pass_group.h"
#include "nodes/models/passes/pass_request.h"

namespace sluice::nodes {

/// Has ranks of a role of their own compute the passes of a frozen model, whose weights this rank does not have. A pass is cut
/// between samples into as many parts of about equal size as there are ranks to ask; they are computed at the same time. Since a
/// sample's outputs do not depend on what else is in its pass, these are, on the CPU, what one rank would have to the bit.
///
/// Ownership: uses the groups, which outlive this. Threads: any, one pass at a time. Waits for: the ranks that it asks. Failure:
/// as engine/contract/world/pass_group.h.
class AskedPasses {
 public:
  /// In each group this rank has place 0, and there is one other. At least one group.
  explicit AskedPasses(std::vector<engine::PassGroup*> groups) : groups_(std::move(groups)) {}

  /// As outputs_of() of nodes/models/passes/pass_request.h, of a whole pass with at least one place. Not differentiable.
  std::vector<at::Tensor> outputs_of(const PassRequest& whole);

  /// Nothing is asked any more. Waits for: the others to hear it.
  void dismiss();

 private:
  const std::vector<engine::PassGroup*> groups_;
  std::mutex mutex_;  // guards what is asked
};

/// Computes passes of a frozen model for one rank that asks, until that one is through; `turn` is held while it computes, so that
/// a rank that many ask has the activations of one pass. Threads: one for each group. Waits for: the rank that asks. Failure:
/// what the pass throws, and as engine/contract/world/pass_group.h.
void answer_passes(engine::PassGroup& group, const models::Transformer& model, std::mutex& turn);

/// `whole` cut between samples into at most so many requests of about as many tokens, in order; none of them is without samples.
std::vector<PassRequest> parts_of(const PassRequest& whole, size_t count);

}  // namespace sluice::nodes
