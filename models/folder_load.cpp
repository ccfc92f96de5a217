#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <optional>

#include "base/error.h"
#include "models/folder.h"
#include "models/folder_check.h"
#include "models/fresh_weights.h"
#include "models/safetensors.h"
#include "models/weight_names.h"

namespace sluice::models {
namespace {

constexpr const char* kHeadName = "lm_head.weight";

at::Tensor read_weight(const TensorFolder& tensors, const ExpectedWeight& weight, const ModelConfig& config,
                       at::ScalarType dtype) {
  const at::Tensor result = at::empty(weight.shape, dtype);
  const StoredWeight& stored = weight.stored;
  const std::string name = name_in(tensors, stored, config);
  tensors.read_into(name, stored.transposed ? 1 : 0, stored.first_output, stored.transposed ? result.t() : result);
  return result;
}

// A tied folder may hold the output embedding all the same; if it differs, the model is not tied.
void check_tied(const TensorFolder& tensors, const ModelConfig& config, const Weights& weights) {
  if (!config.tied_embeddings || !tensors.contains(kHeadName)) return;
  const std::string where = tensors.file_of(kHeadName) + ": ";
  const std::string problem = tensors.problem_with(kHeadName, weights.embedding.sizes());
  if (!problem.empty()) throw UserError(where + problem);
  bool same = true;
  tensors.for_each_rows(kHeadName, [&](const at::Tensor& rows, int64_t first) {
    const at::Tensor embedding = weights.embedding.narrow(0, first, rows.size(0));
    same = same && rows.to(embedding.scalar_type()).equal(embedding);
  });
  if (same) return;
  throw UserError(where + "lm_head.weight differs from the input embedding, but config.json says tie_word_embeddings",
                  "set tie_word_embeddings to false in config.json");
}

void fill_fresh(const std::vector<ExpectedWeight>& expected, const ModelConfig& config, const LoadOptions& options) {
  for (const ExpectedWeight& weight : expected) *weight.slot = fresh_weight(weight, config, options.seed).to(options.dtype);
}

void fill_from(const TensorFolder& tensors, const std::vector<ExpectedWeight>& expected, const ModelConfig& config,
               const LoadOptions& options) {
  const bool value_head = options.head == Head::kValue;
  throw_tensor_problems(tensor_problems(tensors, expected, config, value_head), tensors, config);
  for (const ExpectedWeight& weight : expected) {
    const bool fresh = weight.kind == ExpectedWeight::Kind::kValueHead && !tensors.contains(weight.stored.name);
    *weight.slot = fresh ? fresh_weight(weight, config, options.seed).to(options.dtype)
                         : read_weight(tensors, weight, config, options.dtype);
  }
}

}  // namespace

Transformer load_folder(const std::filesystem::path& folder, const LoadOptions& options) {
  SLUICE_CHECK(!options.trainable || options.dtype == at::kFloat, "weights that are trained are float32");
  const at::NoGradGuard no_gradient;
  const ModelConfig config = read_config(folder);
  const bool value_head = options.head == Head::kValue;
  Weights weights;
  const auto expected = expected_weights(config, value_head, weights);
  if (options.random_init) {
    fill_fresh(expected, config, options);
  } else {
    const TensorFolder tensors(folder);
    fill_from(tensors, expected, config, options);
    check_tied(tensors, config, weights);
  }
  if (config.tied_embeddings && !value_head) weights.head = weights.embedding;
  if (options.trainable) {
    for (const auto& [name, tensor] : weights.named()) tensor.set_requires_grad(true);
  }
  return Transformer(config, std::move(weights));
}

}  // namespace sluice::models
