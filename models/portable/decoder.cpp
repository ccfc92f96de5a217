#include "models/portable/decoder.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <string>

#include "base/error.h"
#include "base/text/strings.h"
#include "models/cuda/paged_decode_attention.h"
#include "models/portable/abilities.h"
#include "models/portable/layer_maths.h"
#include "models/portable/product.h"

namespace sluice::models::portable {
namespace {

at::Tensor empty_cache(const ModelConfig& config, const DecoderOptions& options) {
  const auto type = at::TensorOptions(dtype_of(options.precision)).device(options.device);
  try {
    // Zeros: what lies after a sample's tokens in its last block gets no weight, but is multiplied with it.
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

int64_t blocks_of(const DecodeSequence& sequence, int64_t size) { return (end_of(sequence) - 1) / size + 1; }
int64_t slot_of(const DecodeSequence& sequence, int64_t position, int64_t size) {
  return sequence.blocks[static_cast<size_t>(position / size)] * size + position % size;
}

// The row of a table that is `width` blocks wide.
void append_blocks(std::span<const int32_t> blocks, int64_t width, std::vector<int64_t>& table) {
  for (size_t w = 0; w < static_cast<size_t>(width); ++w) table.push_back(w < blocks.size() ? blocks[w] : blocks.front());
}

}  // namespace

Decoder::Decoder(const ModelConfig& config, const DecoderOptions& options)
    : config_(config),
      options_(options),
      own_attention_(options.kernels != DecodeKernels::kLibrary && has_paged_decode_attention(options.device, config.head_dim)),
      keys_(empty_cache(config, options)),
      values_(empty_cache(config, options)) {
  SLUICE_CHECK(options.block_size > 0 && options.blocks > 0, "a KV cache has a block at least");
  if (options.keeps_texts)
    ids_ = at::zeros({options.blocks, options.block_size}, at::TensorOptions(at::kLong).device(options.device));
  const OwnKernels* const own = options.own_kernels != nullptr ? options.own_kernels : own_kernels_of(options.device);
  if (options.kernels == DecodeKernels::kOwn && own != nullptr && OwnStep::takes(config, options.precision))
    own_ = std::make_unique<OwnStep>(config_, *own, keys_, values_);
}

at::Tensor Decoder::step(const Weights& weights, std::span<const DecodeSequence> sequences, at::Tensor* routes) {
  const at::NoGradGuard no_gradient;
  if (sequences.empty()) return {};
  const Numbers numbers = numbers_of(sequences);
  if (ids_.defined())
    ids_.flatten().index_copy_(0, numbers_on(options_.device, numbers.rows.slots),
                               numbers_on(options_.device, numbers.rows.tokens));
  SLUICE_CHECK(!own_ || routes == nullptr, "own kernels compute no mixtures");
  return own_ ? step_by_own_kernels(weights, sequences, numbers) : step_in_operators(weights, sequences, numbers, routes);
}

at::Tensor Decoder::step_in_operators(const Weights& weights, std::span<const DecodeSequence> sequences, const Numbers& numbers,
                                      at::Tensor* routes) {
  const OwnStep::Rows& rows = numbers.rows;
  const std::vector<at::Tensor> angles = angles_of(rows.positions);
  const at::Tensor slots = numbers_on(options_.device, rows.slots), last = numbers_on(options_.device, rows.last);
  Attention attention = attention_of_several(sequences, numbers);
  if (!numbers.single.empty()) attention.batches.push_back(batch_of(sequences, numbers.single, numbers.first_row));
  const LayerMaths maths(config_, options_.precision);
  at::Tensor x = maths.embed(weights, numbers_on(options_.device, rows.tokens), numbers_on(options_.device, rows.positions));
  std::vector<at::Tensor> chosen(routes == nullptr ? 0 : static_cast<size_t>(config_.mixtures()));
  for (int64_t i = 0; i < config_.layers; ++i) {
    const LayerWeights& layer = weights.layers[static_cast<size_t>(i)];
    const LayerMaths::Heads heads = maths.heads(x, layer, angles_of_layer(config_, angles, i));
    keys_.select(0, i).flatten(0, 1).index_copy_(0, slots, heads.key);
    values_.select(0, i).flatten(0, 1).index_copy_(0, slots, heads.value);
    const at::Tensor attended = at::empty_like(heads.query);
    attend(attention, heads.query, i, attended);
    const bool asked = routes != nullptr && config_.is_mixture(i);
    x = maths.add_feed_forward(maths.add_attended(x, attended.flatten(1), layer), layer, i, nullptr,
                               {.chosen = asked ? &chosen[static_cast<size_t>(config_.experts.mixtures_before(i))] : nullptr});
  }
  if (routes != nullptr) *routes = routes_of_layers(route_form(config_), chosen);
  if (rows.last.empty()) return {};
  const at::Tensor hidden = maths.normalised(x.index_select(0, last), weights.final_norm, weights.final_norm_bias);
  return maths.logits(hidden, weights.head);
}

at::Tensor Decoder::step_by_own_kernels(const Weights& weights, std::span<const DecodeSequence> sequences,
                                        const Numbers& numbers) {
  const Attention attention = attention_of_several(sequences, numbers);
  OwnStep::Others others;
  if (!numbers.several.empty())
    others = [&](int64_t layer, const at::Tensor& query, const at::Tensor& out) { attend(attention, query, layer, out); };
  at::Tensor logits = own_->step(weights, numbers.rows, others);
  if (logits.defined() && config_.logit_softcap != 0) logits.div_(config_.logit_softcap).tanh_().mul_(config_.logit_softcap);
  return logits;
}

// After the last block of a sequence stands its first one again.
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

Decoder::Numbers Decoder::numbers_of(std::span<const DecodeSequence> sequences) const {
  Numbers numbers;
  OwnStep::Rows& rows = numbers.rows;
  for (size_t s = 0; s < sequences.size(); ++s) {
    const DecodeSequence& sequence = sequences[s];
    const int64_t size = options_.block_size;
    SLUICE_CHECK(!sequence.tokens.empty() && end_of(sequence) <= config_.steady_positions(),
                 "a sequence without new tokens or past the model's positions");
    SLUICE_CHECK(end_of(sequence) <= static_cast<int64_t>(sequence.blocks.size()) * size,
                 "a sequence without room in its blocks");
    numbers.first_row.push_back(static_cast<int64_t>(rows.tokens.size()));
    rows.tokens.insert(rows.tokens.end(), sequence.tokens.begin(), sequence.tokens.end());
    for (int64_t p = sequence.cached; p < end_of(sequence); ++p) {
      rows.positions.push_back(p);
      rows.slots.push_back(slot_of(sequence, p, size));
    }
    if (sequence.wants_logits) rows.last.push_back(static_cast<int64_t>(rows.tokens.size()) - 1);
    (new_tokens(sequence) == 1 ? numbers.single : numbers.several).push_back(s);
  }
  for (const size_t s : numbers.single) {
    rows.single.push_back(numbers.first_row[s]);
    rows.width = std::max(rows.width, blocks_of(sequences[s], options_.block_size));
  }
  for (const size_t s : numbers.single) append_blocks(sequences[s].blocks, rows.width, rows.table);
  return numbers;
}

bool Decoder::packs() const {
  const at::Tensor query = keys_.select(0, 0).select(0, 0);  // [block_size,Nk,D]: of the same device, type and head size
  return takes_flash(query, scores_of(config_, 0));
}

Decoder::Attention Decoder::attention_of_several(std::span<const DecodeSequence> sequences, const Numbers& numbers) const {
  Attention attention;
  if (numbers.several.empty()) return attention;
  if (packs()) {
    attention.packed = packed(sequences, numbers);
  } else {
    for (const size_t s : numbers.several) attention.batches.push_back(batch_of(sequences, std::span(&s, 1), numbers.first_row));
  }
  return attention;
}

PackedSequences Decoder::packed(std::span<const DecodeSequence> sequences, const Numbers& numbers) const {
  std::vector<int64_t> rows, slots;
  std::vector<int32_t> new_begins{0}, begins{0};
  int64_t longest_new = 0, longest = 0;
  for (const size_t s : numbers.several) {
    const DecodeSequence& sequence = sequences[s];
    for (int64_t i = 0; i < new_tokens(sequence); ++i) rows.push_back(numbers.first_row[s] + i);
    for (int64_t p = 0; p < end_of(sequence); ++p) slots.push_back(slot_of(sequence, p, options_.block_size));
    new_begins.push_back(static_cast<int32_t>(rows.size()));
    begins.push_back(static_cast<int32_t>(slots.size()));
    longest_new = std::max(longest_new, new_tokens(sequence));
    longest = std::max(longest, end_of(sequence));
  }
  return {numbers_on(options_.device, rows),
          numbers_on(options_.device, slots),
          {numbers_on(options_.device, new_begins), longest_new},
          {numbers_on(options_.device, begins), longest}};
}

Decoder::Batch Decoder::batch_of(std::span<const DecodeSequence> sequences, std::span<const size_t> chosen,
                                 std::span<const int64_t> first_row) const {
  const auto count = static_cast<int64_t>(chosen.size()), added = new_tokens(sequences[chosen.front()]);
  int64_t width = 0;
  for (const size_t s : chosen) width = std::max(width, blocks_of(sequences[s], options_.block_size));
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

std::vector<at::Tensor> Decoder::angles_of(std::span<const int64_t> positions) {
  if (config_.learned_positions) return {};
  grow_rotary_tables(config_, *std::ranges::max_element(positions) + 1, rotary_);
  std::vector<at::Tensor> all;
  for (const RotaryTable& table : rotary_) {
    const at::Tensor angles = empty_for(options_.device, {static_cast<int64_t>(positions.size()), table.dims()}, at::kFloat);
    float* row = angles.mutable_data_ptr<float>();
    for (const int64_t position : positions) row = std::copy_n(table.row(position), table.dims(), row);
    all.push_back(copied_to(options_.device, angles));
  }
  return all;
}

// query, out [T,Nq,D]
void Decoder::attend(const Attention& attention, const at::Tensor& query, int64_t layer, const at::Tensor& out) const {
  for (const Batch& batch : attention.batches)
    out.index_copy_(0, batch.rows, attended(batch, query.index_select(0, batch.rows), layer));
  if (!attention.packed) return;
  const PackedSequences& packed = *attention.packed;
  out.index_copy_(0, packed.rows,
                  ragged_paged_attention(query.index_select(0, packed.rows), keys_.select(0, layer), values_.select(0, layer),
                                         packed, scores_of(config_, layer)));
}

at::Tensor Decoder::attended(const Batch& batch, const at::Tensor& query, int64_t layer) const {
  const AttentionScores scores = scores_of(config_, layer);
  const at::Tensor keys = keys_.select(0, layer), values = values_.select(0, layer);
  if (own_attention_ && batch.positions.size(1) == 1)
    return paged_decode_attention(query, keys, values, batch.table, batch.positions.squeeze(1), scores);
  const at::Tensor queries = query.view({batch.table.size(0), batch.positions.size(1), query.size(1), query.size(2)});
  return paged_attention(queries, keys, values, batch.table, batch.positions, scores).reshape(query.sizes());
}

void Decoder::copy_block(int32_t from, int32_t to) {
  for (const at::Tensor& cache : {keys_, values_}) cache.select(1, to).copy_(cache.select(1, from));
  if (ids_.defined()) ids_[to].copy_(ids_[from]);
}

}  // namespace sluice::models::portable
