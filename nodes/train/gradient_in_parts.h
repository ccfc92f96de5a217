#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <functional>
#include <string>

namespace sluice::nodes {

/// Adds the gradient of a loss on what several passes give together, with the activations of one of them at a time: each is
/// computed once without a gradient, and once more with that of the loss. For samples whose loss is a joint one, such as a
/// pair's, that do not fit one pass.
///
/// parts      how many passes there are
/// output_of  what pass i gives: [N_i], with gradient where gradients are recorded; called twice for each
/// loss_of    a scalar of all outputs, back to back [N]
/// returns    its value; throws as accumulate_gradient() does
double accumulate_in_parts(size_t parts, const std::function<at::Tensor(size_t)>& output_of,
                           const std::function<at::Tensor(const at::Tensor&)>& loss_of, const std::string& what);

}  // namespace sluice::nodes
