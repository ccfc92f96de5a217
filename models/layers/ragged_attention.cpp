#include "models/layers/ragged_attention.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include <algorithm>
#include <map>
#include <memory>

#include "base/error.h"
#include "models/kernels/attention_kernels.h"
#include "models/kernels/parallel.h"
#include "models/kernels/training_kernels.h"
#include "models/layers/operand.h"

namespace sluice::models {
namespace {

constexpr int64_t kRotatedTokens = 64;  // that a thread is worth waking for

int64_t longest_sample(std::span<const int64_t> offsets) {
  SLUICE_CHECK(!offsets.empty() && offsets.front() == 0, "sample offsets begin with 0");
  int64_t longest = 0;
  for (size_t i = 1; i < offsets.size(); ++i) {
    SLUICE_CHECK(offsets[i] >= offsets[i - 1], "sample offsets must not decrease");
    longest = std::max(longest, offsets[i] - offsets[i - 1]);
  }
  return longest;
}

// Samples of the same group have the same angles at the same position; see RotaryTable.
int64_t angle_group(const RopeConfig& rope, int64_t length) {
  const bool stretched = length > rope.original_positions;
  if (rope.scaling == RopeScaling::kDynamic && stretched) return length;
  return rope.scaling == RopeScaling::kLongrope && stretched ? 1 : 0;
}

// Of a sample: tokens of the pass.
struct Stretch {
  int64_t sample;
  TokenRange queries, keys;
};

TokenRange common(TokenRange a, TokenRange b) {
  const int64_t begin = std::max(a.begin, b.begin);
  return {begin, std::max(begin, std::min(a.end, b.end))};
}

// Each query is in one of them.
std::vector<Stretch> stretches_of(const RaggedLayout& layout, TokenRange queries, TokenRange keys) {
  std::vector<Stretch> all;
  int64_t covered = 0;
  for (size_t s = 0; s + 1 < layout.offsets.size(); ++s) {
    const TokenRange sample{layout.offsets[s], layout.offsets[s + 1]};
    const Stretch stretch{static_cast<int64_t>(s), common(sample, queries), common(sample, keys)};
    if (stretch.queries.size() == 0) continue;
    SLUICE_CHECK(stretch.keys.size() > 0, "queries without keys of their sample");
    covered += stretch.queries.size();
    all.push_back(stretch);
  }
  SLUICE_CHECK(covered == queries.size() && keys.begin <= queries.begin, "queries that are not in the pass, or before keys");
  return all;
}

// What the rows of operands are of.
struct Rows {
  TokenRange queries, keys;
};

// Calls `work(task, stretch, scratch)` for each key/value head of each stretch.
template <class Work>
void for_each_task(const RaggedLayout& layout, const AttentionOperands& in, const Rows& rows, const Work& work) {
  const std::vector<Stretch> stretches = stretches_of(layout, rows.queries, rows.keys);
  const Precision precision = precision_of(in.query);
  const int64_t query_row = layout.heads * layout.head_dim * bytes_of(precision);
  const int64_t key_row = layout.kv_heads * layout.head_dim * bytes_of(precision);
  const auto row = [](const at::Tensor& x, int64_t bytes) { return static_cast<const char*>(x.const_data_ptr()) + bytes; };
  const auto words = static_cast<size_t>(attention_scratch_words(precision, layout.longest, layout.head_dim));
  parallel_ranges(std::ssize(stretches) * layout.kv_heads, 1, [&](int64_t begin, int64_t end) {
    const auto scratch = std::make_unique_for_overwrite<int32_t[]>(words);
    for (int64_t i = begin; i < end; ++i) {
      const Stretch& of = stretches[static_cast<size_t>(i / layout.kv_heads)];
      const int64_t first_query = of.queries.begin - rows.queries.begin, first_key = of.keys.begin - rows.keys.begin;
      const AttentionTask task{.precision = precision,
                               .heads = layout.heads,
                               .kv_heads = layout.kv_heads,
                               .head_dim = layout.head_dim,
                               .queries = of.queries.size(),
                               .keys = of.keys.size(),
                               .before = of.queries.begin - of.keys.begin,
                               .kv_head = i % layout.kv_heads,
                               .scale = static_cast<float>(layout.score_scale),
                               .softcap = static_cast<float>(layout.softcap),
                               .window = in.window,
                               .query = row(in.query, first_query * query_row),
                               .key = row(in.key, first_key * key_row),
                               .value = row(in.value, first_key * key_row)};
      work(task, of, scratch.get());
    }
  });
}

void check_operands(const AttentionOperands& in, const RaggedLayout& layout, const Rows& rows) {
  SLUICE_CHECK(in.window >= 0, "a window has a token at least, or 0 for none");
  const auto fits = [&](const at::Tensor& x, TokenRange tokens, int64_t heads) {
    return x.dim() == 2 && x.size(0) == tokens.size() && x.size(1) == heads * layout.head_dim && x.is_contiguous() &&
           x.scalar_type() == in.query.scalar_type();
  };
  SLUICE_CHECK(fits(in.query, rows.queries, layout.heads), "query must be [B,Nq*D]");
  SLUICE_CHECK(fits(in.key, rows.keys, layout.kv_heads) && fits(in.value, rows.keys, layout.kv_heads),
               "key and value must be [B,Nk*D]");
}

}  // namespace

int64_t rotary_bytes(const ModelConfig& config, int64_t tokens, int64_t longest_sample) {
  if (config.learned_positions) return 0;
  int64_t angles = 0;
  for (int64_t which = 0; which < config.ropes(); ++which)
    angles += (config.rope_at(which).depends_on_length() ? tokens : longest_sample) * config.rotary_dims(which);
  return angles * static_cast<int64_t>(sizeof(float));
}

RaggedLayout::RaggedLayout(const ModelConfig& config, std::span<const int64_t> sample_offsets)
    : RaggedLayout(config, sample_offsets, Segment{.tokens = sample_offsets.empty() ? 0 : sample_offsets.back()}) {}

RaggedLayout::RaggedLayout(const ModelConfig& config, std::span<const int64_t> sample_offsets, const Segment& part)
    : offsets(sample_offsets.begin(), sample_offsets.end()),
      segment(part),
      row_offsets(offsets_in(part, sample_offsets)),
      heads(config.heads / part.head_ranks()),
      kv_heads(config.kv_heads / part.head_ranks()),
      head_dim(config.head_dim),
      score_scale(config.score_scale()),
      softcap(config.attention_softcap),
      longest(longest_sample(sample_offsets)) {
  SLUICE_CHECK(segment.tokens == tokens() && config.kv_heads % segment.head_ranks() == 0, "a pass that these ranks cannot share");
  for (size_t s = 0; s + 1 < offsets.size(); ++s) {
    const int64_t first = segment.begin() + row_offsets[s] - offsets[s];
    for (int64_t row = row_offsets[s]; row < row_offsets[s + 1]; ++row) positions.push_back(first + row - row_offsets[s]);
  }
  for (int64_t which = 0; which < config.ropes(); ++which) ropes_.push_back(ropes_of(config, which));
}

RaggedLayout::Ropes RaggedLayout::ropes_of(const ModelConfig& config, int64_t which) const {
  const RopeConfig& rope = config.rope_at(which);
  const auto group_of = [&](size_t sample) { return angle_group(rope, offsets[sample + 1] - offsets[sample]); };
  Ropes of;
  std::map<int64_t, int64_t> longest_of_group;  // of each group of samples whose angles agree
  for (size_t s = 0; s + 1 < offsets.size(); ++s) {
    int64_t& most = longest_of_group[group_of(s)];
    most = std::max(most, offsets[s + 1] - offsets[s]);
  }
  std::map<int64_t, size_t> table_of_group;
  for (const auto& [group, most] : longest_of_group) {
    table_of_group[group] = of.tables.size();
    of.tables.emplace_back(config, most, which);
  }
  for (size_t s = 0; s + 1 < offsets.size(); ++s) {
    of.table_of.push_back(table_of_group.at(group_of(s)));
    const RotaryTable& table = of.tables[of.table_of.back()];
    for (int64_t row = row_offsets[s]; row < row_offsets[s + 1]; ++row)
      of.of_rows.push_back(table.at(positions[static_cast<size_t>(row)]));
  }
  return of;
}

at::Tensor rotated(const at::Tensor& x, const RaggedLayout& layout, Precision precision, int64_t rope) {
  SLUICE_CHECK(x.dim() == 2 && x.size(0) == layout.rows() && x.size(1) % layout.head_dim == 0 && x.stride(1) == 1,
               "what is rotated is [n,N*D]");
  const at::Tensor out = empty_operand(precision, x.sizes());
  const float* from = x.const_data_ptr<float>();
  const int64_t size = x.size(1), stride = x.stride(0);
  with_number(precision, [&](auto number) {
    auto* to = numbers<decltype(number)>(out);
    parallel_ranges(layout.rows(), kRotatedTokens, [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t)
        rotate_heads(from + t * stride, size / layout.head_dim, layout.head_dim, layout.rotary_of_row(t, rope), to + t * size);
    });
  });
  return out;
}

Attended ragged_attention(const AttentionOperands& in, const RaggedLayout& layout, TokenRange queries, TokenRange keys) {
  const Rows rows{queries, keys};
  check_operands(in, layout, rows);
  const Attended result{at::empty_like(in.query), at::empty({queries.size(), layout.heads})};
  auto* out = static_cast<char*>(result.output.mutable_data_ptr());
  float* sums = result.log_sum_exp.mutable_data_ptr<float>();
  const int64_t row = in.query.size(1) * in.query.element_size();
  for_each_task(layout, in, rows, [&](const AttentionTask& task, const Stretch& of, int32_t* scratch) {
    const int64_t first = of.queries.begin - queries.begin;
    attention_forward(task, {out + first * row, sums + first * layout.heads}, scratch);
  });
  return result;
}

void ragged_attention_backward(const AttentionOperands& in, const Attended& result, const at::Tensor& grad_output,
                               const RaggedLayout& layout, TokenRange queries, TokenRange keys,
                               const AttentionOperands& gradients) {
  const Rows rows{queries, keys};
  check_operands(in, layout, rows);
  check_operands(gradients, layout, rows);
  SLUICE_CHECK(grad_output.sizes() == in.query.sizes() && grad_output.is_contiguous() &&
                   grad_output.scalar_type() == in.query.scalar_type(),
               "the gradient of the output must be [B,Nq*D], of the precision of the queries");
  const auto* out = static_cast<const char*>(result.output.const_data_ptr());
  const auto* grad_out = static_cast<const char*>(grad_output.const_data_ptr());
  const float* sums = result.log_sum_exp.const_data_ptr<float>();
  const int64_t query_row = in.query.size(1) * in.query.element_size(), key_row = in.key.size(1) * in.key.element_size();
  const auto at_row = [](const at::Tensor& x, int64_t bytes) { return static_cast<char*>(x.mutable_data_ptr()) + bytes; };
  for_each_task(layout, in, rows, [&](const AttentionTask& task, const Stretch& of, int32_t* scratch) {
    const int64_t first = of.queries.begin - queries.begin, first_key = of.keys.begin - keys.begin;
    attention_backward(task,
                       {.output = out + first * query_row,
                        .log_sum_exp = sums + first * layout.heads,
                        .grad_output = grad_out + first * query_row,
                        .rotary = in.rope == kNoRope ? nullptr : &layout.rotary(of.sample, in.rope),
                        .position = of.keys.begin - layout.offsets[static_cast<size_t>(of.sample)],
                        .grad_query = at_row(gradients.query, first * query_row),
                        .grad_key = at_row(gradients.key, first_key * key_row),
                        .grad_value = at_row(gradients.value, first_key * key_row)},
                       scratch);
  });
}

}  // namespace sluice::models
