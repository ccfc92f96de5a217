#include "models/layers/feed_forward/shared_out_experts.h"

#include <algorithm>
#include <vector>

#include "models/layers/feed_forward/expert_exchange.h"
#include "models/layers/feed_forward/expert_rows.h"
#include "models/layers/gradient.h"
#include "models/layers/operand.h"
#include "models/layers/tensor_shape.h"

namespace sluice::models {
namespace {

using Piece = ExpertExchange::Piece;

// What is at hand of a round: rows that go out and that come, what is made of those, and what has come back of all own rows.
enum ForwardMemory : size_t { kSentRows, kRowsCome, kRowsMade, kRowsBack, kForwardMemory };
// Likewise with gradients of results, and weights; and the gradients of rows and of weights.
enum BackwardMemory : size_t {
  kSentIn,
  kSentGradients,
  kSentWeights,
  kInCome,
  kGradientsCome,
  kWeightsCome,
  kOfInMade,
  kOfWeightsMade,
  kOfInBack,
  kOfWeightsBack,
  kBackwardMemory
};

int64_t entries_of(const PassShape& shape) { return shape.tokens * shape.config.experts.per_token; }

ExpertShape shared_out_expert(const PassShape& shape) { return {shape, shape.config.experts.size, true, ExpertExchange::kRows}; }

TensorShapes shared_out_forward_shapes(const PassShape& shape) {
  const int64_t hidden = shape.config.hidden_size;
  TensorShapes shapes(kForwardMemory);
  shapes[kSentRows] = operand_shape(shape.precision, ExpertExchange::most_sent(shape), hidden);
  shapes[kRowsCome] = operand_shape(shape.precision, ExpertExchange::kRows, hidden);
  shapes[kRowsMade] = {ExpertExchange::kRows, hidden};
  shapes[kRowsBack] = {entries_of(shape), hidden};
  return shapes;
}

TensorShapes shared_out_backward_shapes(const PassShape& shape) {
  const int64_t hidden = shape.config.hidden_size, sent = ExpertExchange::most_sent(shape);
  TensorShapes shapes(kBackwardMemory);
  shapes[kSentIn] = shapes[kSentGradients] = operand_shape(shape.precision, sent, hidden);
  shapes[kInCome] = shapes[kGradientsCome] = operand_shape(shape.precision, ExpertExchange::kRows, hidden);
  shapes[kSentWeights] = {sent, 1};
  shapes[kWeightsCome] = shapes[kOfWeightsMade] = {ExpertExchange::kRows, 1};
  shapes[kOfInMade] = {ExpertExchange::kRows, hidden};
  shapes[kOfInBack] = {entries_of(shape), hidden};
  shapes[kOfWeightsBack] = {entries_of(shape), 1};
  return shapes;
}

void gather_rows(const ExpertRows& rows, const at::Tensor& from, const at::Tensor& to) {
  gather(rows, precision_of(from), from.const_data_ptr(), from.size(1), to.mutable_data_ptr());
}

at::Tensor rows_of_piece(const at::Tensor& of_round, const Piece& piece) { return of_round.narrow(0, piece.offset, piece.count); }

}  // namespace

int64_t shared_out_forward_bytes(const PassShape& shape) {
  return bytes_of(shared_out_forward_shapes(shape)) + expert_output_bytes(shared_out_expert(shape));
}

int64_t shared_out_backward_bytes(const PassShape& shape) {
  return bytes_of(shared_out_backward_shapes(shape)) + expert_output_backward_bytes(shared_out_expert(shape));
}

void shared_out_forward(const LayerPass& pass, std::span<const LinearWeights> weights, const RoutedRows& routed,
                        const at::Tensor& counts, const at::Tensor& in, const at::Tensor& out) {
  const PassShape shape = pass.shape();
  ExpertExchange::exchange_counts(pass.layout.segment, routed, counts);
  const ExpertExchange exchange(pass.layout.segment, routed, counts);
  const std::vector<at::Tensor> memory = allocated(shared_out_forward_shapes(shape));
  const std::span<const at::Tensor> all(memory), sent = all.subspan(kSentRows, 1), come = all.subspan(kRowsCome, 1),
                                                 made = all.subspan(kRowsMade, 1), back = all.subspan(kRowsBack, 1);
  {
    const ExpertWork work = ExpertWork::of_output(shared_out_expert(shape));
    const auto fill = [&](const ExpertRows& rows, std::span<const at::Tensor> to) { gather_rows(rows, in, to[0]); };
    for (size_t round = 0; round < exchange.rounds(); ++round) {
      exchange.send(round, fill, sent, come);
      for (const Piece& piece : exchange.pieces(round)) {
        expert_output(pass, expert_of(weights, static_cast<size_t>(piece.expert)), rows_of_piece(come[0], piece), work,
                      rows_of_piece(made[0], piece));
      }
      exchange.send_back(round, made, back);
    }
  }
  const int64_t hidden = pass.config.hidden_size;
  const float* const results = back[0].const_data_ptr<float>();
  for (int64_t e = 0; e < pass.config.experts.count; ++e)
    add_weighted(routed.of(e), results + routed.begin_of(e) * hidden, hidden, out.mutable_data_ptr<float>());
}

void shared_out_backward(const LayerPass& pass, std::span<const LinearWeights> weights, const RoutedRows& routed,
                         const at::Tensor& counts, const at::Tensor& in, const at::Tensor& grad, float* of_weights,
                         const at::Tensor& of_in) {
  const PassShape shape = pass.shape();
  const ExpertExchange exchange(pass.layout.segment, routed, counts);
  const std::vector<at::Tensor> memory = allocated(shared_out_backward_shapes(shape));
  const std::span<const at::Tensor> all(memory), sent = all.subspan(kSentIn, 3), come = all.subspan(kInCome, 3),
                                                 made = all.subspan(kOfInMade, 2), back = all.subspan(kOfInBack, 2);
  for (int64_t e = exchange.own().begin; e < exchange.own().end; ++e) {
    const ExpertWeights of = expert_of(weights, static_cast<size_t>(e));
    for (const LinearWeights* linear : {&of.gate, &of.up, &of.down}) gradient_of(linear->weight);
  }
  {
    const ExpertWork work = ExpertWork::of_output_backward(shared_out_expert(shape));
    const auto fill = [&](const ExpertRows& rows, std::span<const at::Tensor> to) {
      gather_rows(rows, in, to[0]);
      gather_rows(rows, grad, to[1]);
      float* const counted = to[2].mutable_data_ptr<float>();
      for (int64_t row = 0; row < rows.count; ++row) counted[row] = rows.weight(row);
    };
    for (size_t round = 0; round < exchange.rounds(); ++round) {
      exchange.send(round, fill, sent, come);
      for (const Piece& piece : exchange.pieces(round)) {
        const auto of_piece = [&](const at::Tensor& of_round) { return rows_of_piece(of_round, piece); };
        expert_output_backward(pass, expert_of(weights, static_cast<size_t>(piece.expert)),
                               {of_piece(come[0]), of_piece(come[1]), of_piece(come[2])}, work,
                               {of_piece(made[0]), of_piece(made[1])});
      }
      exchange.send_back(round, made, back);
    }
  }
  const int64_t hidden = pass.config.hidden_size, entries = entries_of(shape);
  const float* const of_rows = back[0].const_data_ptr<float>();
  for (int64_t e = 0; e < pass.config.experts.count; ++e)
    add_rows(routed.of(e), of_rows + routed.begin_of(e) * hidden, hidden, of_in.mutable_data_ptr<float>());
  const float* const of_counted = back[1].const_data_ptr<float>();
  for (int64_t entry = 0; entry < entries; ++entry) of_weights[routed.places[entry]] = of_counted[entry];
}

}  // namespace sluice::models
