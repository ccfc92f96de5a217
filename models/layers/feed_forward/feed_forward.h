#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "models/config/config.h"
#include "models/layers/feed_forward/router_training.h"
#include "models/layers/feed_forward/routes.h"
#include "models/layers/layer_pass.h"
#include "models/layers/packed_linear.h"
#include "models/layers/pass_shape.h"
#include "models/layers/residual.h"
#include "models/layers/step_scratch.h"
#include "models/layers/tensor_maths.h"
#include "models/layers/tensor_shape.h"
#include "models/layers/weights.h"

namespace sluice::models {

/// A kind of feed-forward network: all that is known of it, from the names of its weights to a step of generation. A family says
/// which one its layers have (Family::feed_forward); a new kind is a class of its own and that one word. Layers of one model may
/// have different kinds: which, feed_forward_of() alone says.
///
/// The network maps rows [T,H] to rows [T,H]. Norms and the residual stream are around it (feed_forward_sublayer.h). It computes
/// with the linear layers of one decoder layer, LayerWeights::feed_forward, in the order of its own choice.
///
/// Immutable, without state: one object serves all models and threads, and outlives them.
class FeedForward {
 public:
  // Weights.

  /// The tensors of a network, as the files of a family name them: those that a layer of this configuration has, parts of one
  /// tensor of the file side by side.
  virtual std::vector<NetworkTensor> tensors(const ModelConfig& config) const = 0;

  /// Which of so many linear layers generation packs into one matrix, because they read the same rows.
  virtual std::vector<std::vector<size_t>> stacks(size_t linears) const = 0;

  /// Which of the outputs of this one of so many linear layers a rank has that samples together with others (column_share.h).
  /// None: the layer is not there.
  virtual TokenRange outputs_of(size_t /*linear*/, size_t /*linears*/, int64_t outputs, const ColumnShare& share) const {
    return share.of(outputs);
  }

  // Training, on the CPU. Operands are rounded where step() rounds them.

  /// The tensors that the forward fills for the backward.
  virtual TensorShapes kept(const PassShape& shape) const = 0;

  /// out[T,H] (+)= the network of in[T,H], an operand; out is float32. `kept`: tensors of the shapes kept(), or none, and then
  /// the inner activations of all tokens do not exist at a time. `routes`: where a mixture has to send the tokens.
  virtual void forward(const LayerPass& pass, std::span<const LinearWeights> weights, const at::Tensor& in,
                       std::span<const at::Tensor> kept, const LayerRoutes& routes, const at::Tensor& out, bool add) const = 0;

  /// From the gradient of the result, grad[T,H], an operand, to that of `in`; adds the gradients of the weights. Uses up `kept`.
  /// `router`: a mixture tells it of its tokens, and adds the loss that it has; may be null.
  virtual void backward(const LayerPass& pass, std::span<const LinearWeights> weights, const at::Tensor& in,
                        std::span<const at::Tensor> kept, const at::Tensor& grad, const ReadGradient& of_in,
                        const RouterOfLayer* router) const = 0;

  /// What kept() takes, and what forward() and backward() allocate at most at a time.
  virtual PartBytes bytes(const PassShape& shape) const = 0;

  /// What adapters of its matrices widen of operands, at most at a time (widened_bytes()).
  virtual int64_t adapter_bytes(const PassShape& shape) const = 0;

  // In LibTorch's operators, on any device; differentiable.

  /// in[T,H], an operand; returns [T,H]. `router`: likewise, where the gradient reaches the router.
  virtual at::Tensor in_operators(const ModelConfig& config, std::span<const LinearWeights> weights, const at::Tensor& in,
                                  const TensorMaths& maths, const RouterOfLayer* router,
                                  const RoutesInOperators& routes) const = 0;

  // Generation, on the CPU.

  /// `packed`: a matrix for each of stacks(), or nothing of it (outputs_of()). A row has the same bits whatever the other rows
  /// are. Allocates nothing but what `scratch` has to grow, unless ranks share the layer. Of a rank without columns `rows` has
  /// numbers alone; where nothing else is shared out, it has nothing to do.
  virtual void step(const ModelConfig& config, std::span<const PackedLinear> packed, const StepRows& rows,
                    StepScratch& scratch) const = 0;

 protected:
  ~FeedForward() = default;  // nobody owns one
};

/// That of a layer: of the config's family; where that says nothing, experts (experts.h) if the layer is a mixture, and else the
/// MLP (mlp.h).
const FeedForward& feed_forward_of(const ModelConfig& config, int64_t layer);

/// Likewise of the weights of a layer, which expected_weights() was asked for.
const FeedForward& feed_forward_of(const LayerWeights& layer);

}  // namespace sluice::models
