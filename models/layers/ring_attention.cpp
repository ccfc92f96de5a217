#include "models/layers/ring_attention.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/logaddexp.h>

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "models/layers/operand.h"
#include "models/layers/ring_errands.h"
#include "models/layers/tensor_shape.h"

namespace sluice::models {
namespace {

using Tensors = SegmentExchange::Tensors;

// To and from the ranks of other blocks with the same heads.
void swap(const Segment& segment, int to_block, Tensors&& to, int from_block, const Tensors& from) {
  std::vector<Tensors> sent(static_cast<size_t>(segment.ranks)), taken(static_cast<size_t>(segment.ranks));
  const auto place_in = [&](int block) {
    return static_cast<size_t>(block * segment.head_ranks() + segment.place % segment.head_ranks());
  };
  if (!to.empty()) sent[place_in(to_block)] = std::move(to);
  if (!from.empty()) taken[place_in(from_block)] = from;
  segment.exchange->exchange(sent, taken);
}

Tensors empty_rows(const Tensors& like, int64_t rows) {
  Tensors all;
  for (const at::Tensor& tensor : like) all.push_back(at::empty({rows, tensor.size(1)}, tensor.options()));
  return all;
}

// Rows of what this rank has of its block.
class Block {
 public:
  explicit Block(const RaggedLayout& layout) : first_(layout.block().begin) {}

  at::Tensor rows(const at::Tensor& tensor, TokenRange tokens) const {
    return tensor.narrow(0, tokens.begin - first_, tokens.size());
  }
  Tensors rows(const Tensors& tensors, TokenRange tokens) const {
    Tensors all;
    for (const at::Tensor& tensor : tensors) all.push_back(rows(tensor, tokens));
    return all;
  }

 private:
  int64_t first_;
};

// One step: who helps sends what it has of the queries or of the keys, `compute` gets it, and what it gives for the one who
// helped goes back, to `take`.
struct Sides {
  Tensors of_queries, of_keys;  // what is sent of a block, where the other side computes
  Tensors to_queries, to_keys;  // like what comes back for it
};

void do_step(const RaggedLayout& layout, const RingStep& step, const Sides& sides, bool keys_return,
             const std::function<Tensors(const Errand&, const Tensors&)>& compute,
             const std::function<void(const Errand&, const Tensors&)>& take) {
  if (!step.any) return;
  const Segment& segment = layout.segment;
  const Block block(layout);
  const auto [own, helped] = std::pair(step.own, step.helped);
  Tensors given, back;
  {
    Tensors sent, lacking;
    if (helped.any())
      sent = helped.at_queries ? block.rows(sides.of_keys, helped.keys) : block.rows(sides.of_queries, helped.queries);
    if (own.any())
      lacking = own.at_queries ? empty_rows(sides.of_keys, own.keys.size()) : empty_rows(sides.of_queries, own.queries.size());
    swap(segment, helped.computed_by(), std::move(sent), own.helped_by(), lacking);
    if (own.any()) given = compute(own, lacking);
  }
  if (!step.any_returns && !keys_return) return;
  const bool comes_back = helped.any() && (keys_return || !helped.at_queries);
  if (comes_back)
    back =
        helped.at_queries ? empty_rows(sides.to_keys, helped.keys.size()) : empty_rows(sides.to_queries, helped.queries.size());
  swap(segment, own.helped_by(), std::move(given), helped.computed_by(), back);
  if (comes_back) take(helped, back);
}

// rows[n,N*D] times factors[n,N], which are of each head.
at::Tensor scaled(const at::Tensor& rows, const at::Tensor& factors) {
  return rows.view({factors.size(0), factors.size(1), -1}).mul(factors.unsqueeze(2)).view(rows.sizes());
}

// Of the same queries over other keys: output in float32.
void merge(const Attended& part, const Attended& total) {
  const at::Tensor sum = at::logaddexp(total.log_sum_exp, part.log_sum_exp);
  const auto share = [&](const at::Tensor& of) { return of.sub(sum).exp(); };
  const at::Tensor heads = total.output.view({sum.size(0), sum.size(1), -1});
  heads.mul_(share(total.log_sum_exp).unsqueeze(2));
  total.output.add_(scaled(part.output, share(part.log_sum_exp)));
  total.log_sum_exp.copy_(sum);
}

}  // namespace

Attended ring_attention(const AttentionOperands& in, const RaggedLayout& layout) {
  const Attended own = ragged_attention(in, layout, layout.block(), layout.block());
  if (layout.segment.ring == 1) return own;
  const Block block(layout);
  const Attended total{own.output.to(at::kFloat), own.log_sum_exp};
  const auto add = [&](const Errand& errand, const Tensors& part) {
    merge({part[0], part[1]}, {block.rows(total.output, errand.queries), block.rows(total.log_sum_exp, errand.queries)});
  };
  const auto compute = [&](const Errand& errand, const Tensors& other) {
    AttentionOperands of{.query = {}, .key = {}, .value = {}, .window = in.window, .rope = in.rope};
    if (errand.at_queries)
      of.query = block.rows(in.query, errand.queries), of.key = other[0], of.value = other[1];
    else
      of.query = other[0], of.key = block.rows(in.key, errand.keys), of.value = block.rows(in.value, errand.keys);
    const Attended part = ragged_attention(of, layout, errand.queries, errand.keys);
    if (!errand.at_queries) return Tensors{part.output, part.log_sum_exp};
    add(errand, {part.output, part.log_sum_exp});
    return Tensors{};
  };
  const Sides sides{
      .of_queries = {in.query}, .of_keys = {in.key, in.value}, .to_queries = {in.query, total.log_sum_exp}, .to_keys = {}};
  for (int step = 1; step <= layout.segment.ring / 2; ++step)
    do_step(layout, step_of(layout.segment, layout.offsets, in.window, step), sides, false, compute, add);
  return {to_operand(total.output, precision_of(in.query)), total.log_sum_exp};
}

void ring_attention_backward(const AttentionOperands& in, const Attended& result, const at::Tensor& grad_output,
                             const RaggedLayout& layout) {
  const TokenRange tokens = layout.block();
  if (layout.segment.ring == 1) return ragged_attention_backward(in, result, grad_output, layout, tokens, tokens, in);
  const Block block(layout);
  const auto empty_gradients = [&](const AttentionOperands& of) {
    return AttentionOperands{at::empty_like(of.query), at::empty_like(of.key), at::empty_like(of.value), of.window, of.rope};
  };
  Tensors totals;
  {
    const AttentionOperands own = empty_gradients(in);
    ragged_attention_backward(in, result, grad_output, layout, tokens, tokens, own);
    for (const at::Tensor& gradient : {own.query, own.key, own.value}) totals.push_back(gradient.to(at::kFloat));
  }
  const auto add_to_queries = [&](const Errand& errand, const at::Tensor& part) {
    block.rows(totals[0], errand.queries).add_(part);
  };
  const auto add_to_keys = [&](const Errand& errand, const at::Tensor& key, const at::Tensor& value) {
    block.rows(totals[1], errand.keys).add_(key);
    block.rows(totals[2], errand.keys).add_(value);
  };
  const auto compute = [&](const Errand& errand, const Tensors& other) {
    const auto of_queries = [&](const at::Tensor& own, size_t i) {
      return errand.at_queries ? block.rows(own, errand.queries) : other[i];
    };
    const auto of_keys = [&](const at::Tensor& own, size_t i) {
      return errand.at_queries ? other[i] : block.rows(own, errand.keys);
    };
    const AttentionOperands of{of_queries(in.query, 0), of_keys(in.key, 0), of_keys(in.value, 1), in.window, in.rope};
    const AttentionOperands gradients = empty_gradients(of);
    ragged_attention_backward(of, {of_queries(result.output, 2), of_queries(result.log_sum_exp, 3)}, of_queries(grad_output, 1),
                              layout, errand.queries, errand.keys, gradients);
    if (errand.at_queries) {
      add_to_queries(errand, gradients.query);
      return Tensors{gradients.key, gradients.value};
    }
    add_to_keys(errand, gradients.key, gradients.value);
    return Tensors{gradients.query};
  };
  const auto take = [&](const Errand& errand, const Tensors& back) {
    if (errand.at_queries) return add_to_keys(errand, back[0], back[1]);
    add_to_queries(errand, back[0]);
  };
  const Sides sides{.of_queries = {in.query, grad_output, result.output, result.log_sum_exp},
                    .of_keys = {in.key, in.value},
                    .to_queries = {in.query},
                    .to_keys = {in.key, in.value}};
  for (int step = 1; step <= layout.segment.ring / 2; ++step)
    do_step(layout, step_of(layout.segment, layout.offsets, in.window, step), sides, true, compute, take);
  in.query.copy_(totals[0]), in.key.copy_(totals[1]), in.value.copy_(totals[2]);
}

PartBytes ring_attention_bytes(const PassShape& shape) {
  if (shape.ring == 1) return {};
  const int64_t T = shape.tokens, Q = shape.config.heads * shape.config.head_dim,
                K = shape.config.kv_heads * shape.config.head_dim;
  const auto operand = [&](int64_t size) { return operand_shape(shape.precision, T, size).bytes(); };
  const auto wide = [&](int64_t size) { return TensorShape{T, size}.bytes(); };
  const auto widened = [&](int64_t size) { return if_there(shape.rounds(), wide(size)); };
  const int64_t queries = operand(Q), keys = 2 * operand(K), sums = wide(shape.config.heads);

  const int64_t part = queries + sums;
  const int64_t merging = wide(Q) + widened(Q) + 4 * sums;
  const int64_t forward = widened(Q) + std::max(queries, keys) + part + std::max(part, merging);

  const int64_t totals = operand(Q) + 2 * operand(K) + widened(Q) + 2 * widened(K);
  const int64_t at_queries = keys + queries + keys, at_keys = 3 * queries + sums + queries + keys;
  const int64_t backward = totals + std::max(at_queries, at_keys) + std::max({queries, keys, widened(std::max(Q, K))});
  return {.kept = 0, .forward = forward, .backward = backward};
}

}  // namespace sluice::models
