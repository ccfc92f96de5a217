#include "cli/process/started_once.h"

#include "base/error.h"
#include "base/process/world_environment.h"

namespace sluice::cli {

void require_to_be_started_once(const std::string& why, const std::string& help) {
  const auto world = world_environment();
  if (!world) return;
  throw UserError("this is already rank " + std::to_string(world->rank) + " of " + std::to_string(world->size) + ", started by " +
                      world->from + ": " + why,
                  help);
}

}  // namespace sluice::cli
