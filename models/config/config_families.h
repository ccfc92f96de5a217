#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/config/config.h"
#include "models/config/config_file.h"

namespace sluice::models {

/// Which keys of config.json carry what; nullptr: the family has no such key.
struct FamilyKeys {
  const char* hidden_size = "hidden_size";
  const char* intermediate_size = "intermediate_size";
  const char* layers = "num_hidden_layers";
  const char* heads = "num_attention_heads";
  const char* kv_heads = "num_key_value_heads";
  const char* head_dim = "head_dim";
  const char* max_positions = "max_position_embeddings";
  const char* norm_eps = "rms_norm_eps";
  const char* activation = "hidden_act";
  const char* attention_bias = nullptr;  // biases on all four projections of attention
  const char* mlp_bias = nullptr;
  const char* qkv_bias = nullptr;           // without the output's; true where it is absent
  const char* window_pattern = nullptr;     // every so many-th layer has no window
  const char* window_rope_theta = nullptr;  // of the layers that have one
};

/// What Hugging Face takes when config.json lacks the key.
struct FamilyDefaults {
  int64_t max_positions;
  double norm_eps = 1e-6;
  const char* activation = "silu";
  bool tied_embeddings = false;
  std::optional<int64_t> kv_heads = {};  // without a value: as many as query heads
  std::optional<int64_t> head_dim = {};  // without a value: hidden size by heads
  double rope_theta = 10000.0;
  std::optional<double> window_rope_theta = {};     // without a value: rope_theta
  double rotary_share = 1.0;                        // of each head
  double attention_softcap = 0, logit_softcap = 0;  // 0: none
};

/// A family that has mixtures of experts: its keys, and what Hugging Face takes where they are absent.
struct FamilyExperts {
  const char* size_key = "moe_intermediate_size";
  int64_t count, per_token, size;
  int64_t shared_size = 0;         // 0: the family has no shared expert
  int64_t dense_size = 0;          // intermediate size of layers that have an MLP instead; 0: all its layers are mixtures
  bool dense_adapts = false;       // these may have adapters; else PEFT takes their names for those of the experts
  bool always_normalised = false;  // else norm_topk_prob says
};

/// How the layers of a family that has windows are told apart.
enum class WindowRule {
  kNone,           // no windows
  kAllLayers,      // sliding_window, when there is one, holds in every layer
  kUpperLayers,    // switched on by use_sliding_window, in the layers from max_window_layers on, or as layer_types says
  kAllButEvery,    // in all layers but every n-th (window_pattern), or as layer_types says
  kWithoutRotary,  // switched on by use_sliding_window, in the layers without rotary positions, or as layer_types says
};

/// Which soft caps a family's config.json may ask for, beside a scale of the scores of its own (query_pre_attn_scalar).
enum class Softcaps { kNone, kOfLogits, kOfLogitsAndScores };

class FeedForward;  // models/layers/feed_forward/feed_forward.h

/// A row of the table of families: all in which they differ but the names of the weights (models/layers/weight_tables.h).
struct Family {
  const char* model_type;
  const char* language_class;  // names in "architectures"
  const char* value_class;
  FamilyDefaults defaults;
  FamilyKeys keys = {};
  NormKind norm = NormKind::kRms;
  NormPlace norm_place = NormPlace::kBefore;
  QkNorm qk_norm = QkNorm::kNone;
  WindowRule windows = WindowRule::kNone;
  std::optional<int64_t> default_window = {};  // where sliding_window is absent; a null is no window
  int64_t window_pattern = 0;                  // of kAllButEvery
  bool qkv_bias = false;                       // whatever config.json says
  bool output_and_mlp_bias = false;            // likewise
  bool gated_mlp = true;
  bool learned_positions = false;
  bool partial_rotary = false;     // may rotate only a part of each head
  bool longrope_alone = false;     // is stretched by longrope or not at all, from a length that stands at the top
  bool rotary_neighbours = false;  // dimensions 2i and 2i+1 of a head are a pair
  bool ropes_by_window = false;    // layers with a window have rotary positions of their own
  int64_t plain_every = 0;  // no_rope_layers says which layers have rotary positions; absent: all but every so many-th. 0: all do
  bool scaled_embedding = false;
  Softcaps softcaps = Softcaps::kNone;
  std::optional<FamilyExperts> experts = {};  // what its layers have instead of an MLP
  const char* weights_like = nullptr;         // the family whose names its weights have; nullptr: it has its own
  const FeedForward* feed_forward = nullptr;  // what its layers have after attention, outliving all; null: as `experts` says
};

std::span<const Family> builtin_families();

/// The row for "model_type". Throws UserError naming it and the known ones.
const Family& read_family(const ConfigObject& file, std::span<const Family> families);

/// Checks "architectures"; the language model of the family when there is none.
std::string read_architecture(const ConfigObject& file, const Family& family);

}  // namespace sluice::models
