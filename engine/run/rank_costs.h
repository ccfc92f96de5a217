#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "engine/observe/costs.h"

namespace sluice::engine {

/// What another rank than 0 gives to costs.json, which rank 0 writes, so far: the costs of nodes that rank 0 does not have, and
/// how much of their prompts samples have cost. A plain value.
struct RankCosts {
  int64_t read_prompt_tokens = 0;          // by rollouts: fewer where the samples of a group share their prompt
  int64_t sample_prompt_tokens = 0;        // of all samples packed
  std::map<std::string, NodeCosts> nodes;  // per_prompt_token_us is of a token that is read

  bool operator==(const RankCosts&) const = default;
};

/// For the mail. rank_costs_from() throws InternalError on what bytes_of() does not write.
std::string bytes_of(const RankCosts& costs);
RankCosts rank_costs_from(std::string_view bytes);

}  // namespace sluice::engine
