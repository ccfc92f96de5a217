#pragma once

#include <string>
#include <vector>

#include "engine/plan/plan.h"

namespace sluice::engine {

/// A key of which a checkpoint's pipeline and the one that is to go on have different values.
struct PipelineChange {
  std::string table;  // "budget", "nodes.generate"
  std::string key;
  std::string before;     // as TOML; empty: not there
  std::string after;      // likewise
  bool harmless = false;  // the results are the same: ParamInfo::harmless
  std::string why = {};   // EffectiveKey::why
};

/// The effective pipeline as a checkpoint keeps it: of a component or a table each key for itself, `optimizer.learning_rate`.
std::vector<EffectiveKey> keys_to_compare(const Plan& plan);

/// Every key that differs, in the order of `after`, then what is gone. Both: keys_to_compare(), of then and of now.
std::vector<PipelineChange> pipeline_changes(const std::vector<EffectiveKey>& before, const std::vector<EffectiveKey>& after);

/// `[budget] micro_batch_tokens: 512 -> 1024`; why it changes results in brackets, where that needs a word.
std::string change_text(const PipelineChange& change);

}  // namespace sluice::engine
