#include "models/sample/decoder.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace sluice::models {
namespace {

const float* floats(const at::Tensor& tensor) { return tensor.const_data_ptr<float>(); }
const float* floats_or_null(const at::Tensor& tensor) { return tensor.defined() ? floats(tensor) : nullptr; }

// Rows move to the front, never past one that is still needed.
template <class T>
void move_row(T* rows, int64_t size, int64_t from, int64_t to) {
  if (from != to) std::memcpy(rows + to * size, rows + from * size, static_cast<size_t>(size) * sizeof(T));
}

}  // namespace

Decoder::Decoder(const ModelConfig& config, const ColumnShare& share)
    : config_(config), share_(share), heads_(heads_of(config, share.ranks)) {}

std::span<const float> Decoder::step(const PackedWeights& weights, KvCache& cache, std::span<const DecodeSequence> sequences,
                                     RouteBlocks* routes) {
  if (sequences.empty()) return {};
  begin(weights, cache, sequences);
  embed(weights, sequences);
  for (int64_t index = 0; index < config_.layers; ++index) {
    const PackedLayer& layer = weights.layers()[static_cast<size_t>(index)];
    project_heads(layer, index, cache);
    if (index + 1 == config_.layers) keep_last_tokens(sequences);
    if (tokens_ == 0) return {};
    attend(layer, index, cache);
    feed_forward(layer, index, routes);
  }
  return logits(weights);
}

void Decoder::assist(const PackedWeights& weights, std::span<const DecodeSequence> sequences) {
  SLUICE_CHECK(!share_.has_columns(), "a rank that has columns makes steps");
  int64_t tokens = 0, wanted = 0;
  for (const DecodeSequence& sequence : sequences) {
    tokens += std::ssize(sequence.tokens);
    wanted += sequence.wants_logits ? 1 : 0;
  }
  for (int64_t index = 0; index < config_.layers; ++index) {
    const int64_t of_layer = index + 1 == config_.layers ? wanted : tokens;
    if (of_layer == 0) return;
    feed_forward_of(config_, index)
        .step(config_, weights.layers()[static_cast<size_t>(index)].matrices.feed_forward, {.tokens = of_layer, .share = share_},
              scratch_);
  }
}

void Decoder::begin(const PackedWeights& weights, const KvCache& cache, std::span<const DecodeSequence> sequences) {
  SLUICE_CHECK(!weights.empty() && weights.precision() == cache.precision() &&
                   static_cast<int64_t>(weights.layers().size()) == config_.layers,
               "weights that do not fit the decoder or the cache");
  precision_ = weights.precision();
  sequences_.clear();
  places_.clear();
  int64_t longest = 0;
  for (const DecodeSequence& sequence : sequences) {
    const int64_t added = static_cast<int64_t>(sequence.tokens.size()), end = sequence.cached + added;
    SLUICE_CHECK(added > 0 && end <= config_.steady_positions(), "a sequence without new tokens or past the model's positions");
    SLUICE_CHECK(cache.blocks_for(end) <= static_cast<int64_t>(sequence.blocks.size()), "a sequence without room in its blocks");
    sequences_.push_back({.cached = sequence.cached, .new_tokens = added, .blocks = sequence.blocks});
    for (int64_t position = sequence.cached; position < end; ++position)
      places_.push_back({position, sequence.blocks[static_cast<size_t>(position / cache.block_size())]});
    longest = std::max(longest, end);
  }
  tokens_ = static_cast<int64_t>(places_.size());
  attention_.begin(sequences_);
  grow_rotary_tables(config_, longest, rotary_);
}

// The rows of the embedding, of the ranks that have them.
void Decoder::look_up(const PackedWeights& weights, std::span<const DecodeSequence> sequences) {
  float* row = hidden_.at_least(tokens_ * config_.hidden_size);
  embedded_at_.clear();
  for (const DecodeSequence& sequence : sequences) {
    for (const int64_t token : sequence.tokens) {
      const int at = share_.place_of(config_.vocab_size, token);
      if (at == share_.place) weights.embedding_row(token - share_.of(config_.vocab_size).begin, row);
      embedded_at_.push_back(at);
      row += config_.hidden_size;
    }
  }
  share_.gather_rows(hidden_.data(), config_.hidden_size, embedded_at_);
}

void Decoder::embed(const PackedWeights& weights, std::span<const DecodeSequence> sequences) {
  look_up(weights, sequences);
  const int64_t size = config_.hidden_size;
  const float* positions = config_.learned_positions ? floats(weights.positions()) : nullptr;
  const auto scale = static_cast<float>(config_.embedding_scale);
  float* row = hidden_.data();
  for (const DecodeSequence& sequence : sequences) {
    int64_t position = sequence.cached;
    for (size_t i = 0; i < sequence.tokens.size(); ++i) {
      const float* of_position = positions ? positions + position * size : nullptr;
      for (int64_t j = 0; j < size; ++j) row[j] = row[j] * scale + (of_position ? of_position[j] : 0.0f);
      row += size;
      ++position;
    }
  }
}

// A norm over all heads, of queries or keys, of which this rank has those that begin at `own` in each row: it takes all of them.
void Decoder::normalize_all_heads(const at::Tensor& weight, float* own, int64_t columns) {
  const int64_t stride = heads_size(), size = columns * share_.ranks, first = share_.of(size).begin;
  float* const all = all_projected_.at_least(tokens_ * size);
  for (int64_t t = 0; t < tokens_; ++t) std::copy_n(own + t * stride, columns, all + t * size + first);
  share_.gather(all, tokens_, size);
  normalize(norm(weight, {}), all, tokens_, size, {.wide = all});
  for (int64_t t = 0; t < tokens_; ++t) std::copy_n(all + t * size + first, columns, own + t * stride);
}

// Queries, keys and values of the new tokens; the latter two go into the cache.
void Decoder::project_heads(const PackedLayer& layer, int64_t index, const KvCache& cache) {
  float* const qkv = qkv_.at_least(tokens_ * heads_size());
  project(layer.matrices.qkv, read(layer.attention_norm, layer.attention_norm_bias), tokens_, qkv);
  const bool is_normed = config_.qk_norm == QkNorm::kProjection && !share_.has_all_columns();
  if (is_normed) {
    normalize_all_heads(layer.query_norm, qkv, queries_size());
    normalize_all_heads(layer.key_norm, qkv + queries_size(), heads_.kv_heads * heads_.head_dim);
  }
  const QkNorm qk_norm = is_normed ? QkNorm::kNone : config_.qk_norm;
  const bool normed = qk_norm != QkNorm::kNone;
  const int64_t rope = config_.rope_index(index);
  prepare_heads({.cache = cache,
                 .layer = index,
                 .heads = heads_.heads,
                 .tokens = std::span(places_).first(static_cast<size_t>(tokens_)),
                 .rotary = rope == kNoRope ? nullptr : &rotary_[static_cast<size_t>(rope)],
                 .qk_norm = qk_norm,
                 .query_norm = normed ? norm(layer.query_norm, {}) : RowNorm{},
                 .key_norm = normed ? norm(layer.key_norm, {}) : RowNorm{},
                 .qkv = qkv,
                 .narrow_queries = narrow() ? narrow_queries_.at_least(tokens_ * query_stride(cache)) : nullptr});
}

void Decoder::attend(const PackedLayer& layer, int64_t index, const KvCache& cache) {
  const PagedScores scores = {.scale = static_cast<float>(config_.score_scale()),
                              .softcap = static_cast<float>(config_.attention_softcap),
                              .window = config_.window_of(index)};
  const void* queries = narrow() ? static_cast<const void*>(narrow_queries_.data()) : qkv_.data();
  const OperandRows own = operand(attended_, narrow_attended_, queries_size());
  attention_.run(cache, index, heads_.heads, scores,
                 {.queries = queries, .query_stride = query_stride(cache), .out = const_cast<void*>(own.data())});
  const int64_t all = config_.heads * config_.head_dim;
  const OperandRows attended =
      share_.gathered(own, tokens_, all, [&] { return operand(all_attended_, all_narrow_attended_, all); });
  add(layer.attention_output_norm, [&](float* out, bool accumulate) {
    const int64_t hidden = config_.hidden_size;
    project(layer.matrices.attention_output, attended.data(), tokens_, out + share_.of(hidden).begin, hidden, accumulate);
  });
}

void Decoder::feed_forward(const PackedLayer& layer, int64_t index, RouteBlocks* routes) {
  const bool asked = routes != nullptr && config_.is_mixture(index);
  int32_t* const chosen = asked ? chosen_.at_least(tokens_ * config_.experts.per_token) : nullptr;
  const void* const x = read(layer.feed_forward_norm, layer.feed_forward_norm_bias);
  add(layer.feed_forward_output_norm, [&](float* out, bool accumulate) {
    feed_forward_of(config_, index)
        .step(config_, layer.matrices.feed_forward,
              {.x = x, .tokens = tokens_, .out = out, .accumulate = accumulate, .share = share_, .chosen = chosen}, scratch_);
  });
  if (!asked) return;
  const RouteForm& form = routes->form();
  const int64_t begin = config_.experts.mixtures_before(index) * form.layer_bytes();
  for (int64_t t = 0; t < tokens_; ++t) {
    const TokenPlace& place = places_[static_cast<size_t>(t)];
    write_route(form, chosen + t * form.per_token, routes->at(place.block, place.position) + begin);
  }
}

// Once the last layer's keys and values are in the cache, only the last token of who wants logits goes on.
void Decoder::keep_last_tokens(std::span<const DecodeSequence> sequences) {
  const int64_t all = tokens_, stride = narrow() ? heads_.heads * (config_.head_dim + config_.head_dim % 2) : heads_size();
  int64_t end = 0;
  tokens_ = 0;
  for (size_t i = 0; i < sequences.size(); ++i) {
    end += sequences_[i].new_tokens;
    if (!sequences[i].wants_logits) continue;
    move_row(hidden_.data(), config_.hidden_size, end - 1, tokens_);
    places_[static_cast<size_t>(tokens_)] = places_[static_cast<size_t>(end - 1)];
    if (narrow()) {
      move_row(narrow_queries_.data(), stride, end - 1, tokens_);
    } else {
      move_row(qkv_.data(), stride, end - 1, tokens_);
    }
    const PagedSequence of = sequences_[i];
    sequences_[static_cast<size_t>(tokens_++)] = {.cached = of.cached + of.new_tokens - 1, .new_tokens = 1, .blocks = of.blocks};
  }
  if (tokens_ == all) return;
  sequences_.resize(static_cast<size_t>(tokens_));
  attention_.begin(sequences_);
}

std::span<const float> Decoder::logits(const PackedWeights& weights) {
  const int64_t size = config_.vocab_size, count = tokens_ * size, columns = share_.of(size).size();
  const OperandRows x = operand(normed_, narrow_normed_, config_.hidden_size);
  normalize(norm(weights.final_norm(), weights.final_norm_bias()), hidden_.data(), tokens_, config_.hidden_size, x);
  GrownBuffer<float>& buffer = share_.has_all_columns() ? logits_ : own_logits_;
  float* logits = buffer.at_least(tokens_ * columns);
  multiply(weights.head(),
           {.x = x.data(), .x_stride = config_.hidden_size, .rows = tokens_, .out = logits, .out_stride = columns});
  if (!share_.has_all_columns()) {
    float* const all = share_.place == 0 ? logits_.at_least(count) : nullptr;
    share_.gather_at_first(logits, tokens_, size, all);
    if (all == nullptr) return {};
    logits = all;
  }
  if (config_.logit_softcap > 0) soft_cap(logits, count, config_.logit_softcap);
  return {logits, static_cast<size_t>(count)};
}

RowNorm Decoder::norm(const at::Tensor& weight, const at::Tensor& bias) const {
  return {.kind = config_.norm, .weight = floats(weight), .bias = floats_or_null(bias), .epsilon = config_.norm_eps};
}

// Rows of `size` for the next product to read.
OperandRows Decoder::operand(GrownBuffer<float>& wide_rows, GrownBuffer<Bfloat16>& narrow_rows, int64_t size) {
  if (narrow()) return {.narrow = narrow_rows.at_least(tokens_ * size)};
  return {.wide = wide_rows.at_least(tokens_ * size)};
}

// What attention or the feed-forward network reads of the residual stream.
const void* Decoder::read(const at::Tensor& norm_weight, const at::Tensor& norm_bias) {
  const int64_t size = config_.hidden_size;
  const bool normed = config_.norm_place != NormPlace::kAfter;
  if (!normed && !narrow()) return hidden_.data();
  const OperandRows x = operand(normed_, narrow_normed_, size);
  if (normed) {
    normalize(norm(norm_weight, norm_bias), hidden_.data(), tokens_, size, x);
  } else {
    models::narrow(hidden_.data(), tokens_ * size, x.narrow);
  }
  return x.data();
}

// Adds what attention or the feed-forward network makes of x to the residual stream: compute(out, accumulate) puts it there.
template <class Compute>
void Decoder::add(const at::Tensor& norm_weight, const Compute& compute) {
  const int64_t size = config_.hidden_size;
  const bool at_once = config_.norm_place == NormPlace::kBefore;
  float* const hidden = hidden_.data();
  float* const added = at_once ? hidden : added_.at_least(tokens_ * size);
  compute(added, at_once);
  share_.gather(added, tokens_, size);
  if (at_once) return;
  normalize(norm(norm_weight, {}), added, tokens_, size, {.wide = added});
  for (int64_t i = 0; i < tokens_ * size; ++i) hidden[i] += added[i];
}

}  // namespace sluice::models
