#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "engine/contract/world/pass_group.h"
#include "models/sample/decoder.h"
#include "models/sample/kv_cache.h"
#include "nodes/models/passes/group_exchange.h"
#include "nodes/models/sampling/sampled_weights.h"
#include "nodes/models/sampling/sampling_command.h"

namespace sluice::nodes {

/// Makes its part of the steps of generations that another rank leads (nodes/models/sampling/sampling_lead.h), with its part of
/// the weights.
///
/// Ownership: uses what it is given, which outlives it. Threads: one. Waits for: the rank that leads, and for the version that it
/// samples with to be published here, too. Ends when: it says so, or the run is over, which is thrown as PassGroup has it.
class SamplingAssistant {
 public:
  SamplingAssistant(engine::PassGroup& group, const SampledWeights& sampled);

  void assist();

 private:
  // Of one generation of the rank that leads.
  struct Part {
    std::optional<models::KvCache> cache;  // none: it has experts alone
    models::Decoder decoder;
  };

  bool obey(const SamplingCommand& command);
  void open(const SamplingCommand& command);
  void copy_block(const SamplingCommand& command);
  void step(const SamplingCommand& command);

  engine::PassGroup& group_;
  const SampledWeights& sampled_;
  GroupExchange exchange_;
  std::map<int64_t, Part> parts_;
  std::vector<int64_t> numbers_;  // of the step at hand, as the next
  std::vector<int32_t> blocks_;
};

}  // namespace sluice::nodes
