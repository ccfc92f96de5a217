#pragma once

#include <memory>
#include <string>
#include <utility>

#include "models/forward/transformer.h"
#include "nodes/models/passes/asked_passes.h"
#include "nodes/models/passes/pass_lead.h"

namespace sluice::nodes {

/// The live weights of a model as what only computes with them sees them: log-probabilities, values, scores. A model owns it;
/// `forward_model()` of model_parts.h gives it to a node.
///
/// Of a frozen model that is sampled from they are the packed ones. Whether the weights are trained, and when a node may read
/// them, the plan knows: a reader's turn is never beside an update.
class ForwardModel {
 public:
  ForwardModel(std::string name, models::Transformer transformer)
      : name_(std::move(name)), transformer_(std::move(transformer)) {}

  ForwardModel(const ForwardModel&) = delete;  // what is trained refers to the weights
  ForwardModel& operator=(const ForwardModel&) = delete;

  const std::string& name() const { return name_; }
  const models::ModelConfig& config() const { return transformer_.config(); }

  /// Throws UserError where this rank has none of its weights: what a node computes by nodes/forward/forward.h works there, too.
  const models::Transformer& transformer() const {
    if (asked_) throw_without_weights();
    return transformer_;
  }
  bool has_weights() const { return transformer_.weights().final_norm.defined(); }

  /// Other ranks compute passes with this one, which leads them; null: none does. Set before anybody computes.
  PassLead* lead() const { return lead_.get(); }
  void set_lead(std::unique_ptr<PassLead> lead) { lead_ = std::move(lead); }

  /// Ranks of a role of their own compute its passes, and this one has no weights; null: it has. Likewise.
  AskedPasses* asked() const { return asked_.get(); }
  void set_asked(std::unique_ptr<AskedPasses> asked) { asked_ = std::move(asked); }

 private:
  [[noreturn]] void throw_without_weights() const;

  const std::string name_;
  const models::Transformer transformer_;
  std::unique_ptr<PassLead> lead_;
  std::unique_ptr<AskedPasses> asked_;
};

}  // namespace sluice::nodes
