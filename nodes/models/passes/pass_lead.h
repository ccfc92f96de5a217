#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <mutex>
#include <vector>

#include "engine/contract/world/pass_group.h"
#include "nodes/models/passes/group_exchange.h"
#include "nodes/models/passes/pass_command.h"

namespace sluice::nodes {

/// Leads the passes of a model that several ranks compute together: parts them into segments, gathers what each rank has found,
/// and has them all go through the backward at once. What else changes the model, the others do too, in the same order.
///
/// An objective sees what one rank would have: all outputs, and it gives a gradient for each. So only tokens, outputs and their
/// gradients go between the ranks, beside what attention needs.
///
/// Ownership: uses the groups, which outlive this. Threads: any, one pass or command at a time; a backward may come when other
/// passes without one have been computed. Failure: as PassGroup.
class PassLead {
 public:
  /// `saves`: for what is written beside passes; null: the model is frozen. `turn`: PassGroups::backward_on() of its device;
  /// null: it is on the host, where each thread runs its own.
  PassLead(engine::PassGroup& passes, engine::PassGroup* saves, std::mutex* turn)
      : passes_(passes), saves_(saves), turn_(turn), exchange_(passes) {}

  /// As outputs_of(), of a whole pass with at least one place. The backward of one that is differentiated comes before the next
  /// of those.
  std::vector<at::Tensor> outputs_of(const models::Transformer& model, const PassRequest& whole);

  /// The others do it, too; nobody waits.
  void tell(const PassCommand& command);

  /// Likewise, while this rank does `own`. Waits for: the others to have done it.
  void do_together(const PassCommand& command, const std::function<void()>& own);

  /// Of what is saved. Waits for: the others to have done it. Throws UserError with what one of them could not write.
  void have_saved(const PassCommand& command);

  /// The others are through. Waits for: them to hear it.
  void dismiss();

 private:
  using Tensors = std::vector<at::Tensor>;

  models::Segment segment_of(const PassRequest& whole, int place);
  std::vector<Tensors> gather(const PassRequest& whole, const Tensors& own);
  void run_backward_of_all(const PassRequest& whole, const Tensors& own, const Tensors& gradients);
  void send_to_all(engine::PassGroup& group, const PassCommand& command);

  engine::PassGroup& passes_;
  engine::PassGroup* const saves_;
  std::mutex* const turn_;
  std::mutex mutex_;  // guards passes_
  GroupExchange exchange_;
};

}  // namespace sluice::nodes
