#pragma once

#include <vector>

#include "models/kernels/instruction_set.h"

namespace sluice::models {

/// The kinds of machine whose kernels this one can run.
inline std::vector<InstructionSet> runnable_instruction_sets() {
  std::vector<InstructionSet> all;
  for (const InstructionSet set :
       {InstructionSet::kV4Bfloat16, InstructionSet::kV4, InstructionSet::kV3, InstructionSet::kBaseline}) {
    if (set >= best_instruction_set()) all.push_back(set);
  }
  return all;
}

}  // namespace sluice::models
