#pragma once

#include <vector>

#include "models/machine.h"

namespace sluice::models {

/// The kinds of machine whose kernels this one can run.
inline std::vector<Machine> machines() {
  std::vector<Machine> all = {Machine::kBaseline};
  if (this_machine() != Machine::kBaseline) all.push_back(Machine::kV3);
  if (this_machine() == Machine::kV4) all.push_back(Machine::kV4);
  return all;
}

}  // namespace sluice::models
