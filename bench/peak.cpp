// peak THREADS: what this machine computes and reads at best. The benches ask in every round, beside what they compare with it.
//
//   {"ask": "product", "dtype": "float32", "size": 2048}   FLOP/s of a product of two square matrices: {"library", "ours"}
//   {"ask": "memory", "megabytes": 256}                    {"bytes_per_second"} that are read; more than the caches hold
//
// Each answer is the best of several repetitions. "library" is LibTorch's at::mm, "ours" is multiply() of a packed matrix.

#include <ATen/TensorOperators.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "bench/questions.h"
#include "models/kernels/packed_matrix.h"
#include "models/kernels/parallel.h"

namespace sluice::bench {
namespace {

using models::PackedMatrix, models::Precision;

constexpr int kRepetitions = 5;

template <class Work>
double best_seconds(const Work& work) {
  double best = seconds_of(work);
  for (int i = 0; i < kRepetitions; ++i) best = std::min(best, seconds_of(work));
  return best;
}

double library_seconds(const at::Tensor& x, const at::Tensor& weight) {
  return best_seconds([&] { at::mm(x, weight); });
}

// A rate counts only if the work was done. The entries are sums of `inputs` products of normal numbers: rounding is far below 1 %
// of their spread.
void require_product(const at::Tensor& out, const at::Tensor& x, const at::Tensor& weight) {
  const double spread = std::sqrt(static_cast<double>(x.size(1)));
  const double error = (out - at::mm(x, weight.t())).abs().max().item<double>();
  if (!(error < 0.01 * spread))
    throw InternalError("our product is wrong by " + std::to_string(error) + ": its rate means nothing");
}

double our_seconds(const at::Tensor& x, const at::Tensor& weight, Precision precision) {
  const int64_t rows = x.size(0), inputs = weight.size(1), outputs = weight.size(0);
  PackedMatrix packed(precision, outputs, inputs);
  const at::Tensor floats = weight.to(at::kFloat);
  packed.put(0, outputs, floats.const_data_ptr<float>(), inputs);
  const at::Tensor out = at::zeros({rows, outputs}, at::kFloat);
  const double seconds = best_seconds([&] {
    multiply(packed,
             {.x = x.const_data_ptr(), .x_stride = inputs, .rows = rows, .out = out.data_ptr<float>(), .out_stride = outputs});
  });
  require_product(out, x.to(at::kFloat), floats);
  return seconds;
}

Json product(Precision precision, int64_t size) {
  const auto type = precision == Precision::kFloat32 ? at::kFloat : at::kBFloat16;
  const at::Tensor x = at::randn({size, size}).to(type), weight = at::randn({size, size}).to(type);
  const double flop = 2.0 * static_cast<double>(size * size * size);
  return {{"library", flop / library_seconds(x, weight)}, {"ours", flop / our_seconds(x, weight, precision)}};
}

// Many sums, so that no addition waits for the one before.
uint64_t sum_of(const uint64_t* words, int64_t begin, int64_t end) {
  std::array<uint64_t, 32> sums{};
  for (int64_t i = begin; i + 32 <= end; i += 32)
    for (size_t lane = 0; lane < 32; ++lane) sums[lane] += words[i + static_cast<int64_t>(lane)];
  return std::accumulate(sums.begin(), sums.end(), uint64_t{0});
}

Json memory(int64_t megabytes) {
  constexpr int64_t kWordsAtOnce = 1 << 15;
  const at::Tensor block = at::zeros({megabytes * 1'000'000 / 8}, at::kLong);
  const auto* words = reinterpret_cast<const uint64_t*>(block.const_data_ptr<int64_t>());
  std::atomic<uint64_t> sum = 0;
  const double seconds = best_seconds([&] {
    models::parallel_ranges(block.numel(), kWordsAtOnce, [&](int64_t begin, int64_t end) { sum += sum_of(words, begin, end); });
  });
  if (sum != 0) throw InternalError("zeros have a sum");  // so that the sums are computed
  return {{"bytes_per_second", static_cast<double>(block.nbytes()) / seconds}};
}

Json answer(const Json& question) {
  if (question.at("ask") == "memory") return memory(question.at("megabytes"));
  return product(precision_named(question.at("dtype")), question.at("size"));
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s THREADS\n", argv[0]);
    return 64;
  }
  return sluice::bench::answer_questions([&] {
    sluice::bench::use_threads_named(argv[1]);
    return sluice::bench::answer;
  });
}
