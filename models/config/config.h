#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace sluice::models {

struct Family;  // config_families.h

enum class NormKind { kRms, kRmsFromOne, kLayer };  // x/rms * w, x/rms * (1 + w) (Gemma), LayerNorm with a bias (GPT-2)
enum class NormPlace {
  kBefore,
  kAfter,
  kBoth
};  // of attention and of the MLP: on what goes in, what comes out (OLMo 2), both (Gemma 2)
enum class QkNorm { kNone, kHead, kProjection };  // of queries and keys: each head alone (Qwen3), all heads together (OLMo 2)
enum class Activation { kSilu, kGeluTanh, kGelu };
enum class RopeScaling { kNone, kLinear, kDynamic, kYarn, kLlama3, kLongrope };

/// Rotary positions: which share of a head is rotated, how fast, and how that is stretched for samples longer than those trained
/// on.
/// A factor that a kind of scaling does not use is left at its default.
struct RopeConfig {
  double theta = 10000.0;
  int64_t dims = 0;  // of each head that are rotated, from the first; even. 0: all of it; fewer: partial rotary
  RopeScaling scaling = RopeScaling::kNone;
  double factor = 1.0;
  int64_t original_positions = 0;                                  // the longest sample before stretching
  double low_frequency_factor = 1.0, high_frequency_factor = 4.0;  // llama3
  double beta_fast = 32.0, beta_slow = 1.0;                        // yarn
  bool truncate = true;                                            // yarn: round the bounds of the ramp to whole dimensions
  double attention_factor = 1.0;                                   // yarn, longrope: on cosines and sines; resolved when read
  std::vector<double> short_factors, long_factors;                 // longrope: [dims/2] each

  /// Whether the angles of all tokens change once a sample is longer than original_positions.
  bool depends_on_length() const { return scaling == RopeScaling::kDynamic || scaling == RopeScaling::kLongrope; }
};

inline constexpr int64_t kNoRope = -1;  // in place of a number of ModelConfig::rope_at(): nothing is rotated

/// A mixture of experts in place of the MLP of a layer: a router chooses some of E MLPs for each token and weighs what they
/// give (Shazeer et al. 2017, "Outrageously large neural networks"). All mixtures of a model are alike.
struct ExpertsConfig {
  int64_t count = 0;        // E, of each mixture; 0: no layer is one
  int64_t per_token = 0;    // K, that a token goes through
  int64_t size = 0;         // intermediate size of each
  int64_t shared_size = 0;  // of one more that every token goes through, after a gate of its own (Qwen2-MoE); 0: none
  bool normalised = false;  // the weights of a token's experts sum to one; else they are shares of the softmax over all E
  std::vector<int64_t> dense_layers = {};  // ascending: those that have an MLP instead (ModelConfig::intermediate_size)

  bool any() const { return count > 0; }
  bool is_mixture(int64_t layer) const { return any() && !std::ranges::binary_search(dense_layers, layer); }

  /// How many of the layers [0, layer) are mixtures: of a mixture its number among them.
  int64_t mixtures_before(int64_t layer) const {
    return any() ? layer - (std::ranges::lower_bound(dense_layers, layer) - dense_layers.begin()) : 0;
  }
  bool operator==(const ExpertsConfig&) const = default;
};

/// What `config.json` of a Hugging Face folder says about the maths of a decoder-only transformer: one transformer, and the
/// switches that make it a Llama, a GPT-2 or a Gemma. A plain value. Lengths are counts of elements.
struct ModelConfig {
  std::string architecture;        // "LlamaForCausalLM", ...: written back as read
  std::string model_type;          // "llama", ...
  const Family* family = nullptr;  // its row in the table of families; none: put together by hand
  int64_t vocab_size = 0;          // V
  int64_t hidden_size = 0;         // H
  int64_t intermediate_size = 0;   // I
  int64_t layers = 0;
  int64_t heads = 0;          // query heads
  int64_t kv_heads = 0;       // key and value heads; heads is a multiple of it
  int64_t head_dim = 0;       // D
  int64_t max_positions = 0;  // the longest sample

  NormKind norm = NormKind::kRms;
  NormPlace norm_place = NormPlace::kBefore;
  QkNorm qk_norm = QkNorm::kNone;
  double norm_eps = 1e-6;

  bool qkv_bias = false;  // biases on the query, key and value projections (Qwen2)
  bool attention_output_bias = false;
  bool mlp_bias = false;         // on every projection of the MLP
  double attention_scale = 0;    // on queries times keys; 0: 1 / sqrt(D)
  double attention_softcap = 0;  // c: scores become c tanh(scores / c); 0: they do not (Gemma 2)
  double logit_softcap = 0;      // likewise the logits
  std::vector<int64_t> windows;  // [layers]: tokens that a token sees, itself included; 0: all. Empty: 0 everywhere

  bool learned_positions = false;      // a table of position embeddings instead of rotary positions (GPT-2)
  RopeConfig rope;                     // of the layers of which rope_of_layer says nothing else
  std::vector<RopeConfig> more_ropes;  // rope_at(1), ...: of layers with others (Gemma 3: those with a window)
  std::vector<int64_t> rope_of_layer;  // [layers]: a number for rope_at(), or kNoRope (SmolLM 3). Empty: 0 everywhere
  bool rotary_neighbours = false;      // dimensions 2i and 2i+1 are a pair (GLM-4), not i and i + dims/2

  Activation activation = Activation::kSilu;
  bool gated_mlp = true;         // down(act(gate(x)) * up(x)); else down(act(up(x)))
  ExpertsConfig experts;         // instead of the MLP, whose intermediate_size says nothing where all layers are mixtures
  double embedding_scale = 1.0;  // on the embeddings of tokens (Gemma: sqrt(H), rounded to the compute dtype)
  bool tied_embeddings = false;  // the output embedding is the input embedding
  double initializer_range = 0.02;
  std::vector<int64_t> end_of_sequence;  // ids that end a sample; may be empty

  double score_scale() const;

  /// Parameters that a token does not go through: of the experts that it is not sent to.
  int64_t idle_parameters() const;

  /// How many layers are mixtures of experts; is_mixture() says which. All layers are alike but for that.
  int64_t mixtures() const { return experts.mixtures_before(layers); }
  bool is_mixture(int64_t layer) const { return experts.is_mixture(layer); }

  int64_t ropes() const { return 1 + static_cast<int64_t>(more_ropes.size()); }
  const RopeConfig& rope_at(int64_t which) const { return which == 0 ? rope : more_ropes[static_cast<size_t>(which - 1)]; }
  int64_t rotary_dims(int64_t which = 0) const { return rope_at(which).dims == 0 ? head_dim : rope_at(which).dims; }

  /// The number of the rotary positions of a layer; kNoRope where nothing is rotated.
  int64_t rope_index(int64_t layer) const {
    if (learned_positions) return kNoRope;
    return rope_of_layer.empty() ? 0 : rope_of_layer[static_cast<size_t>(layer)];
  }
  int64_t window_of(int64_t layer) const { return windows.empty() ? 0 : windows[static_cast<size_t>(layer)]; }

  /// The longest sample that can be generated token by token with keys that stay as they were cached: with dynamic and longrope
  /// scaling the angles of all tokens change once a sample is longer than this. max_positions for all others.
  int64_t steady_positions() const;
};

/// Reads `folder/config.json` of a model of one of the built-in families. Throws UserError naming the file and the key: missing,
/// of a wrong type, out of range, an architecture or a key that changes the maths and is not known.
ModelConfig read_config(const std::filesystem::path& folder);

/// The same of one of `families`, which outlive the config.
ModelConfig read_config(const std::filesystem::path& folder, std::span<const Family> families);

}  // namespace sluice::models
