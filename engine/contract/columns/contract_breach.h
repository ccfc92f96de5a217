#pragma once

#include <string>

#include "base/error.h"

namespace sluice::engine {

/// The code of a node does what its contract does not say: no bug of ours, and nothing that the pipeline's author can mend.
[[noreturn]] inline void throw_contract_breach(const std::string& what) {
  throw UserError(what, "this is a bug of the node's type: what its describe() promises and what its code does differ");
}

}  // namespace sluice::engine
