#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "models/config/config.h"
#include "models/config/output_head.h"
#include "models/layers/weights.h"

namespace sluice::models {

/// How a file holds one of our tensors: rows of a tensor that several share, perhaps [inputs, outputs] (GPT-2).
struct StoredWeight {
  std::string name;  // in the file, with the prefix of the family
  bool transposed = false;
  int64_t first_output = 0;    // of this part
  std::vector<int64_t> shape;  // of the whole tensor in the file
};

/// Every field that the family of `weights` has, defined or not, in a fixed order, with its name: that of the Hugging Face
/// tensor, followed by "[query]", "[up]", ... for a part of one. The names are unique and stay: optimizers and checkpoints key on
/// them. The pointers are valid as long as `weights.layers` is not resized.
std::vector<std::pair<std::string, at::Tensor*>> weight_slots(Weights& weights);
std::vector<std::pair<std::string, const at::Tensor*>> weight_slots(const Weights& weights);

/// A tensor of the file with what it is made of: fields one after the other along the outputs.
struct StoredSlot {
  std::string name;
  std::vector<const at::Tensor*> parts;  // defined all or none
  bool transposed = false;
};

/// The tensors that a file of `weights` holds, in the order of weight_slots.
std::vector<StoredSlot> stored_slots(const Weights& weights);

/// A tensor that a model of this configuration has.
struct ExpectedWeight {
  enum class Kind { kMatrix, kNorm, kBias, kHead, kValueHead };

  std::string name;
  at::Tensor* slot;
  std::vector<int64_t> shape;  // of the field
  Kind kind;
  StoredWeight stored;
  int64_t layer = -1;  // -1: before the layers or after them
  bool adapts = true;  // of a matrix of a layer: NetworkTensor::adapts

  /// Of a matrix of a layer, whether it may be quantised: all but the routers of a mixture.
  bool quantises = false;
};

/// Whether it is rounded to a model's precision wherever it is read: a matrix of a layer, the embedding, a head of the language
/// model. Learned positions, norms, biases and value heads are not.
bool is_operand(const ExpectedWeight& weight, const Weights& weights);

/// What a model with `config` needs, pointing into `weights`, whose layers are resized to match and which gets the names of the
/// family: those before the layers, layer by layer, those behind. A tied head is not listed.
std::vector<ExpectedWeight> expected_weights(const ModelConfig& config, Head head, Weights& weights);

/// The name of a tensor of this family whose file leaves the family's prefix away: "h.0.ln_1.weight" for
/// "transformer.h.0.ln_1.weight". The name itself where it has no prefix.
std::string without_prefix(const std::string& name, const ModelConfig& config);

/// Tensors that a folder may hold although nothing reads them: buffers that can be computed, an output embedding that is tied or
/// unused, and the value head of a policy that has both (a critic's folder says that it is one).
bool is_ignorable_weight(const std::string& name, const ModelConfig& config, Head head);

}  // namespace sluice::models
