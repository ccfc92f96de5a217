#pragma once

#include <vector>

#include "models/kernels/instruction_set.h"

namespace sluice::models {

/// The kinds of machine whose kernels this one can run.
inline std::vector<Machine> machines() {
  std::vector<Machine> all;
  for (const Machine machine : {Machine::kV4Bfloat16, Machine::kV4, Machine::kV3, Machine::kBaseline}) {
    if (machine >= this_machine()) all.push_back(machine);
  }
  return all;
}

}  // namespace sluice::models
