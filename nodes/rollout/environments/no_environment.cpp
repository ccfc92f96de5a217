#include "nodes/rollout/environments/no_environment.h"

#include "base/error.h"

namespace sluice::nodes {

void NoEnvironment::describe(engine::Contract<NoEnvironmentParams>& c) { c.type(kType, "a response is one turn"); }

Reply NoEnvironment::reply(const Turn&) const { throw InternalError("nobody is to be asked where there is no environment"); }

}  // namespace sluice::nodes
