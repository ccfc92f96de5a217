#include "nodes/models/passes/forward_model.h"

#include "base/error.h"

namespace sluice::nodes {

void ForwardModel::throw_without_weights() const {
  throw UserError(
      "the weights of model '" + name_ + "' are on ranks of a role of their own, and this node computes with them itself",
      "put it on the role that trains; of nodes, those alone may be elsewhere that compute by nodes/forward/forward.h");
}

}  // namespace sluice::nodes
