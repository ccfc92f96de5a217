#pragma once

#include <cstdint>
#include <vector>

#include "engine/contract/columns/micro_batch.h"
#include "models/sample/sample.h"
#include "nodes/rollout/running_weights.h"
#include "nodes/rollout/turns.h"

namespace sluice::nodes {

/// A response that is sampled. `result` and `summary` are there once it has ended.
struct Response {
  models::SampleResult result;
  Turns::Summary summary;
  std::vector<VersionRun> versions;
  bool ended = false;
};

/// A group whose responses are sampled.
struct RunningGroup {
  engine::Group group;
  models::PromptTokens prompt;
  std::vector<Response> responses;  // [responses_per_prompt], the baseline's last
  int64_t unfinished = 0;
};

}  // namespace sluice::nodes
