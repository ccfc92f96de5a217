#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace sluice::models {

/// What `config.json` of a Hugging Face folder says about the maths of a decoder-only transformer.
/// A plain value. Lengths are counts of elements.
struct ModelConfig {
  std::string architecture;       // "LlamaForCausalLM", ...: written back as read
  std::string model_type;         // "llama", ...
  int64_t vocab_size = 0;         // V
  int64_t hidden_size = 0;        // H
  int64_t intermediate_size = 0;  // I
  int64_t layers = 0;
  int64_t heads = 0;          // query heads
  int64_t kv_heads = 0;       // key and value heads; heads is a multiple of it
  int64_t head_dim = 0;       // D, even
  int64_t max_positions = 0;  // the longest sample
  double rms_norm_eps = 1e-6;
  double rope_theta = 10000.0;
  bool tied_embeddings = false;  // the output embedding is the input embedding
  bool qkv_bias = false;         // biases on the query, key and value projections (Qwen2)
  double initializer_range = 0.02;
  std::vector<int64_t> end_of_sequence;  // ids that end a sample; may be empty
};

/// Reads `folder/config.json`. Throws UserError naming the file and the key: missing, of a wrong type, out of range,
/// an architecture or a key that changes the maths and is not known.
ModelConfig read_config(const std::filesystem::path& folder);

}  // namespace sluice::models
