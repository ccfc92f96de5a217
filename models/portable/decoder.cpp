#include "models/portable/decoder.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <string>

#include "base/error.h"
#include "base/strings.h"
#include "models/cuda/own_kernels.h"
#include "models/cuda/paged_decode_attention.h"
#include "models/portable/abilities.h"
#include "models/portable/layer_maths.h"
#include "models/portable/paged_attention.h"
#include "models/portable/product.h"

namespace sluice::models::portable {
namespace {

constexpr int64_t kFirstPositions = 1024;  // of the first rotary table

at::Tensor empty_cache(const ModelConfig& config, const DecoderOptions& options) {
  const auto type = at::TensorOptions(dtype_of(options.precision)).device(options.device);
  try {
    // Zeros: what lies behind a sample's tokens in its last block gets no weight, but is multiplied with it.
    return at::zeros({config.layers, options.blocks, options.block_size, config.kv_heads, config.head_dim}, type);
  } catch (const std::exception& error) {
    // Of the CPU's allocator, and of a size that no integer holds, the text alone tells. A device fails in other ways too.
    const bool is_memory = options.device.is_cpu() || dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr;
    if (!is_memory) throw;
    const double numbers = 2.0 * static_cast<double>(config.layers * config.kv_heads * config.head_dim) *
                           static_cast<double>(options.blocks) * static_cast<double>(options.block_size);
    throw UserError("there is no memory for a KV cache of " +
                        human_bytes(numbers * static_cast<double>(at::elementSize(dtype_of(options.precision)))) + " on " +
                        options.device.str(),
                    "fewer tokens_in_flight, or a smaller max_new_tokens");
  }
}

int64_t new_tokens(const DecodeSequence& sequence) { return static_cast<int64_t>(sequence.tokens.size()); }
int64_t end_of(const DecodeSequence& sequence) { return sequence.cached + new_tokens(sequence); }

// The row of a table that is `width` blocks wide.
void append_blocks(std::span<const int32_t> blocks, int64_t width, std::vector<int64_t>& table) {
  for (size_t w = 0; w < static_cast<size_t>(width); ++w) table.push_back(w < blocks.size() ? blocks[w] : blocks.front());
}

}  // namespace

Decoder::Decoder(const ModelConfig& config, const DecoderOptions& options)
    : config_(config), options_(options), keys_(empty_cache(config, options)), values_(empty_cache(config, options)) {
  SLUICE_CHECK(options.block_size > 0 && options.blocks > 0, "a KV cache has a block at least");
  if (options.keeps_texts)
    ids_ = at::zeros({options.blocks, options.block_size}, at::TensorOptions(at::kLong).device(options.device));
  if (options.attention == DecodeAttention::kOwnKernel && !has_paged_decode_attention(options.device, config.head_dim))
    throw UserError(options.device.str() + " has no kernel of ours for heads of " + std::to_string(config.head_dim),
                    "a GPU, a build on a machine with nvcc, and heads of " + std::to_string(kMostHeadDim) + " at most");
}

at::Tensor Decoder::step(const Weights& weights, std::span<const DecodeSequence> sequences) {
  const at::NoGradGuard no_gradient;
  if (sequences.empty()) return {};
  const Step step = prepared(sequences);
  if (ids_.defined()) ids_.flatten().index_copy_(0, step.slots, step.tokens);
  const LayerMaths maths(config_, options_.precision);
  at::Tensor x = maths.embed(weights, step.tokens, step.positions);  // [T,H]
  for (int64_t i = 0; i < config_.layers; ++i) {
    const LayerWeights& layer = weights.layers[static_cast<size_t>(i)];
    const LayerMaths::Heads heads = maths.heads(x, layer, step.turns);
    keys_.select(0, i).flatten(0, 1).index_copy_(0, step.slots, heads.key);
    values_.select(0, i).flatten(0, 1).index_copy_(0, step.slots, heads.value);
    x = maths.add_feed_forward(maths.add_attended(x, attended(step, heads.query, i).flatten(1), layer), layer);
  }
  if (step.last.numel() == 0) return {};
  const at::Tensor hidden = maths.normalised(x.index_select(0, step.last), weights.final_norm, weights.final_norm_bias);
  return maths.logits(hidden, weights.head);
}

// Behind the last block of a sequence stands its first one again.
Texts Decoder::texts(std::span<const DecodeSequence> sequences) const {
  SLUICE_CHECK(ids_.defined(), "a decoder that keeps no texts");
  std::vector<int64_t> lengths, table;
  int64_t longest = 0;
  for (const DecodeSequence& sequence : sequences)
    if (sequence.wants_logits) longest = std::max(longest, end_of(sequence));
  const int64_t width = (longest - 1) / options_.block_size + 1;
  for (const DecodeSequence& sequence : sequences) {
    if (!sequence.wants_logits) continue;
    lengths.push_back(end_of(sequence));
    append_blocks(sequence.blocks, width, table);
  }
  const auto count = static_cast<int64_t>(lengths.size());
  return {ids_.index_select(0, numbers_on(options_.device, table)).view({count, width * options_.block_size}),
          numbers_on(options_.device, lengths).view({count, 1})};
}

Decoder::Step Decoder::prepared(std::span<const DecodeSequence> sequences) {
  std::vector<int64_t> tokens, positions, slots, last, first_row;
  std::vector<size_t> single;
  std::vector<std::vector<size_t>> batches;
  for (size_t s = 0; s < sequences.size(); ++s) {
    const DecodeSequence& sequence = sequences[s];
    const int64_t size = options_.block_size;
    SLUICE_CHECK(!sequence.tokens.empty() && end_of(sequence) <= config_.steady_positions(),
                 "a sequence without new tokens or past the model's positions");
    SLUICE_CHECK(end_of(sequence) <= static_cast<int64_t>(sequence.blocks.size()) * size,
                 "a sequence without room in its blocks");
    first_row.push_back(static_cast<int64_t>(tokens.size()));
    tokens.insert(tokens.end(), sequence.tokens.begin(), sequence.tokens.end());
    for (int64_t p = sequence.cached; p < end_of(sequence); ++p) {
      positions.push_back(p);
      slots.push_back(sequence.blocks[static_cast<size_t>(p / size)] * size + p % size);
    }
    if (sequence.wants_logits) last.push_back(static_cast<int64_t>(tokens.size()) - 1);
    if (new_tokens(sequence) == 1) {
      single.push_back(s);
    } else {
      batches.push_back({s});
    }
  }
  if (!single.empty()) batches.push_back(single);
  Step step{numbers_on(options_.device, tokens), numbers_on(options_.device, positions),
            numbers_on(options_.device, slots),  turns_of(positions),
            numbers_on(options_.device, last),   {}};
  for (const auto& chosen : batches) step.batches.push_back(batch_of(sequences, chosen, first_row));
  return step;
}

Decoder::Batch Decoder::batch_of(std::span<const DecodeSequence> sequences, std::span<const size_t> chosen,
                                 std::span<const int64_t> first_row) const {
  const auto count = static_cast<int64_t>(chosen.size()), added = new_tokens(sequences[chosen.front()]);
  int64_t width = 0;
  for (const size_t s : chosen) width = std::max(width, (end_of(sequences[s]) - 1) / options_.block_size + 1);
  std::vector<int64_t> rows, table, positions;
  for (const size_t s : chosen) {
    for (int64_t i = 0; i < added; ++i) {
      rows.push_back(first_row[s] + i);
      positions.push_back(sequences[s].cached + i);
    }
    append_blocks(sequences[s].blocks, width, table);
  }
  return {numbers_on(options_.device, rows), numbers_on(options_.device, table).view({count, width}),
          numbers_on(options_.device, positions).view({count, added})};
}

at::Tensor Decoder::turns_of(std::span<const int64_t> positions) {
  if (config_.learned_positions) return {};
  const int64_t longest = *std::ranges::max_element(positions) + 1, have = rotary_ ? rotary_->positions() : 0;
  if (longest > have)
    rotary_.emplace(config_, std::min(config_.steady_positions(), std::max({longest, 2 * have, kFirstPositions})));
  const at::Tensor turns = empty_for(options_.device, {static_cast<int64_t>(positions.size()), rotary_->dims()}, at::kFloat);
  float* row = turns.mutable_data_ptr<float>();
  for (const int64_t position : positions) row = std::copy_n(rotary_->row(position), rotary_->dims(), row);
  return copied_to(options_.device, turns);
}

// query [T,Nq,D]; returns the same of what attention makes of it.
at::Tensor Decoder::attended(const Step& step, const at::Tensor& query, int64_t layer) const {
  const at::Tensor out = at::empty_like(query);
  for (const Batch& batch : step.batches)
    out.index_copy_(0, batch.rows, attended(batch, query.index_select(0, batch.rows), layer));
  return out;
}

at::Tensor Decoder::attended(const Batch& batch, const at::Tensor& query, int64_t layer) const {
  const AttentionScores scores = scores_of(config_, layer);
  const at::Tensor keys = keys_.select(0, layer), values = values_.select(0, layer);
  if (options_.attention == DecodeAttention::kOwnKernel && batch.positions.size(1) == 1)
    return paged_decode_attention(query, keys, values, batch.table, batch.positions.squeeze(1), scores);
  const at::Tensor queries = query.view({batch.table.size(0), batch.positions.size(1), query.size(1), query.size(2)});
  return paged_attention(queries, keys, values, batch.table, batch.positions, scores).reshape(query.sizes());
}

void Decoder::copy_block(int32_t from, int32_t to) {
  for (const at::Tensor& cache : {keys_, values_}) cache.select(1, to).copy_(cache.select(1, from));
  if (ids_.defined()) ids_[to].copy_(ids_[from]);
}

}  // namespace sluice::models::portable
