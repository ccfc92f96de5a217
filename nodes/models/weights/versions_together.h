#pragma once

#include <cstdint>
#include <mutex>
#include <string>

#include "engine/contract/model.h"
#include "engine/contract/world/pass_group.h"

namespace sluice::nodes {

class ReceivedWeights;

/// Of ranks that sample together from a model which other ranks train, the one that leads: it tells the others when a version may
/// land, and when it has packed it. Steps of generations go by another group (nodes/models/sampling/sampling_lead.h), whose lock
/// is held while one is made; here nobody waits, so the thread of a publication may call it.
///
/// Ownership: uses the group, which outlives it. Threads: any. Failure: where a version cannot be had the run fails, and who
/// waits here learns it as PassGroup has it.
class VersionsLead {
 public:
  explicit VersionsLead(engine::PassGroup& group) : group_(group) {}

  void receive(int64_t version);
  void let_take(int64_t version);

  /// No version comes any more. Waits for: the others to hear it.
  void dismiss();

 private:
  void tell(const std::string& text);

  engine::PassGroup& group_;
  std::mutex mutex_;  // of what is sent
};

/// The others: receives what that rank says, until it says that there is no more. `told`: of each version. Waits for: that rank.
/// Throws as PassGroup does.
void follow_versions(engine::PassGroup& group, ReceivedWeights& received, const engine::VersionReceived& told);

}  // namespace sluice::nodes
