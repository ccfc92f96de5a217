#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/plan/plan.h"

namespace sluice::engine {

/// What ranks give each other in an iteration because they have roles, at worst, all ranks together. Without roles nothing.
struct RoleTraffic {
  /// Of a model that some ranks train and others sample from.
  struct Version {
    std::string model;
    int64_t bytes = 0;  // that each rank gets which samples
  };
  /// Of a path, where it takes part in the iteration.
  struct Groups {
    int path = 0;              // index into Plan::paths
    int64_t groups = 0;        // that are made
    int64_t prompt_bytes = 0;  // to ranks that sample
    int64_t column_bytes = 0;  // from them
  };
  /// Of a node whose passes ranks of a role of its own compute, likewise.
  struct Passes {
    int node = 0;              // index into Plan::nodes
    int64_t asked_bytes = 0;   // to these ranks
    int64_t answer_bytes = 0;  // from them
  };
  std::vector<Version> versions;
  std::vector<Groups> groups;
  std::vector<Passes> passes;
};

RoleTraffic role_traffic(const Plan& plan);

}  // namespace sluice::engine
