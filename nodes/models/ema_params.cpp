#include "nodes/models/ema_params.h"

namespace sluice::nodes {

engine::ParamSet<EmaParams> ema_params() {
  engine::ParamSet<EmaParams> params;
  params.param("of", &EmaParams::of).required().doc("a model that is trained");
  params.param("decay", &EmaParams::decay)
      .between(0, 1)
      .doc("what stays of the average at each move, the rest is the model's; 0: it becomes the model");
  params.param("every_steps", &EmaParams::every_steps)
      .at_least(1)
      .unit("steps")
      .doc("it moves after each so many steps of the model's optimizer");
  return params;
}

}  // namespace sluice::nodes
