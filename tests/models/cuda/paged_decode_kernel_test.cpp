#include "models/cuda/paged_decode_kernel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/numbers/random.h"
#include "models/cuda/grouped_decode_kernel.h"
#include "tests/models/cuda/host_block.h"

// The code of the kernel, run on the host with the same blocks, threads, warps and lanes, against attention written down plainly.
namespace sluice::models::paged_decode::paged_decode_kernel_test {

namespace {

constexpr double kOfScores = 2e-6;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

/// Sequences of random lengths over blocks in random places. What no sequence may see is NaN.
template <class T>
class Case {
 public:
  Case(RandomStream& random, int32_t head_dim, int32_t group, int32_t block_size) : random_(random) {
    of_.head_dim = head_dim;
    of_.kv_heads = between(1, 2);
    of_.heads = of_.kv_heads * group;
    of_.block_size = block_size;
    of_.bfloat16 = std::is_same_v<T, gpu::Bfloat16>;
    of_.sequences = between(0, 1) + (chance() ? 1 : 0);
    of_.window = chance() ? between(1, 20) : 0;
    of_.softcap = chance() ? static_cast<float>(between(1, 3)) : 0;
    of_.block_inverse = inverse_of(of_.block_size);
    of_.splits = between(1, 3);
    of_.scale = static_cast<float>((chance() ? kSteep : 1) / std::sqrt(head_dim));
    of_.table_width = kLongest / of_.block_size + 2;
    for (int32_t s = 0; s < of_.sequences; ++s) lengths_.push_back(chance() ? between(0, 2) : between(0, kLongest));
    lay_out();
  }

  const PagedDecodeArguments& arguments() const { return of_; }
  const std::vector<T>& out() const { return out_; }

  /// Of one head of one sequence, [D].
  std::vector<double> reference(int32_t sequence, int32_t head) const {
    const int32_t length = lengths_[static_cast<size_t>(sequence)], kv_head = head * of_.kv_heads / of_.heads;
    const size_t dim = static_cast<size_t>(of_.head_dim);
    std::vector<double> sum(dim, 0);
    double weights = 0;
    for (int32_t t = 0; t < length; ++t) {
      if (of_.window > 0 && length - t > of_.window) continue;
      double score = 0;
      const size_t row = row_of(sequence, t, kv_head), query = static_cast<size_t>(sequence * of_.heads + head) * dim;
      for (size_t d = 0; d < dim; ++d) score += wide(query_[query + d]) * wide(keys_[row + d]);
      score *= of_.scale;
      if (of_.softcap > 0) score = of_.softcap * std::tanh(score / of_.softcap);
      const double weight = std::exp(score);
      weights += weight;
      for (size_t d = 0; d < dim; ++d) sum[d] += weight * wide(values_[row + d]);
    }
    for (double& number : sum) number = weights > 0 ? number / weights : 0;
    return sum;
  }

 private:
  static constexpr int32_t kLongest = 120;
  static constexpr double kSteep = 40;  // shares of 0 and 1, and scores beyond what exp() takes

  int32_t between(int32_t least, int32_t most) {
    return least + static_cast<int32_t>(random_.below(static_cast<uint64_t>(most - least + 1)));
  }
  bool chance() { return random_.uniform() < 0.4; }
  size_t row_of(int32_t sequence, int32_t token, int32_t kv_head) const {
    const int32_t block = table_[static_cast<size_t>(sequence * of_.table_width + token / of_.block_size)];
    return static_cast<size_t>((block * of_.block_size + token % of_.block_size) * of_.kv_heads + kv_head) *
           static_cast<size_t>(of_.head_dim);
  }
  static double wide(T x) { return Element<T>::wide(x); }
  static T narrow(float x) { return Element<T>::narrow(x); }
  T normal() { return narrow(static_cast<float>(random_.normal())); }

  void lay_out() {
    // One block more than there are places in the table: it stays NaN, and stands after each sequence's last.
    const int32_t blocks = of_.sequences * of_.table_width + 1;
    std::vector<int32_t> places(static_cast<size_t>(blocks));
    std::iota(places.begin(), places.end(), 0);
    for (size_t i = places.size(); i > 1; --i) std::swap(places[i - 1], places[random_.below(i)]);
    table_.assign(places.begin(), places.end() - 1);
    const auto numbers = static_cast<size_t>(blocks * of_.block_size * of_.kv_heads * of_.head_dim);
    keys_.assign(numbers, narrow(kNan));
    values_.assign(numbers, narrow(kNan));
    for (int32_t s = 0; s < of_.sequences; ++s) fill(s, places.back());
    const auto heads = static_cast<size_t>(of_.sequences * of_.heads * of_.head_dim);
    for (size_t i = 0; i < heads; ++i) query_.push_back(normal());
    out_.assign(heads, narrow(kNan));
    of_.query = query_.data(), of_.keys = keys_.data(), of_.values = values_.data(), of_.out = out_.data();
    of_.table = table_.data(), of_.lengths = lengths_.data();
    partials_.assign(static_cast<size_t>(partial_numbers(of_)), kNan);
    of_.partials = partials_.data();
  }

  // The tokens that the last one sees.
  void fill(int32_t sequence, int32_t nothing) {
    const int32_t length = lengths_[static_cast<size_t>(sequence)];
    for (int32_t t = of_.window > 0 ? std::max(0, length - of_.window) : 0; t < length; ++t) {
      const size_t row = row_of(sequence, t, 0), numbers = static_cast<size_t>(of_.kv_heads * of_.head_dim);
      for (size_t i = row; i < row + numbers; ++i) keys_[i] = normal(), values_[i] = normal();
    }
    for (int32_t w = (length + of_.block_size - 1) / of_.block_size; w < of_.table_width; ++w)
      table_[static_cast<size_t>(sequence * of_.table_width + w)] = nothing;
  }

  RandomStream& random_;
  PagedDecodeArguments of_;
  std::vector<T> query_, keys_, values_, out_;
  std::vector<float> partials_;
  std::vector<int32_t> table_, lengths_;
};

using Thread = tests::HostBlock::Thread;

template <class Code>
void for_each_block(const Grid& grid, tests::HostBlock& block, const Code& code) {
  for (int32_t y = 0; y < grid.y; ++y)
    for (int32_t x = 0; x < grid.x; ++x) code(x, y, block);
}

template <int kDim>
void run_grouped(const PagedDecodeArguments& in, tests::HostBlock& host) {
  for_each_block(grid_of(in, grouped_decode::kHeads), host, [&](int32_t x, int32_t y, tests::HostBlock& block) {
    grouped_decode::Shared<kDim> shared;
    std::fill_n(reinterpret_cast<float*>(&shared), sizeof shared / sizeof(float), kNan);
    block.run(x, y, [&](const Thread& thread) { grouped_decode::attend<kDim>(in, shared, thread); });
  });
}

template <class T>
void run_in_words(const PagedDecodeArguments& in, tests::HostBlock& host) {
  with_shape<T>(in, [&](auto shape) {
    using S = decltype(shape);
    for_each_block(grid_of(in, heads_at_once(in)), host, [&](int32_t x, int32_t y, tests::HostBlock& block) {
      Shared<S> shared;
      std::fill_n(reinterpret_cast<float*>(&shared), sizeof shared / sizeof(float), kNan);
      block.run(x, y, [&](const Thread& thread) { attend<S>(in, shared, thread); });
    });
  });
}

template <class T>
void run_on_host(const PagedDecodeArguments& in, tests::HostBlock& host) {
  if (grouped_decode::takes(in))
    in.head_dim == 64 ? run_grouped<64>(in, host) : run_grouped<128>(in, host);
  else
    run_in_words<T>(in, host);
  if (in.splits == 1) return;
  for_each_block(grid_of_combine(in), host, [&](int32_t x, int32_t y, tests::HostBlock& block) {
    SharedParts shared;
    std::fill_n(shared.shares, kMostSplits, kNan);
    block.run(x, y, [&](const Thread& thread) { combine<T>(in, shared, thread); });
  });
}

// `tolerance` is of the type's rounding; that of scores comes on top.
template <class T>
void expect_reference(int32_t cases, double tolerance, std::span<const int32_t> head_dims, int32_t in_block) {
  tests::HostBlock block(kThreads, 1);
  RandomStream random(7, 0);
  for (int32_t i = 0; i < cases; ++i) {
    const auto tokens = in_block * (1 + static_cast<int32_t>(random.below(in_block == 1 ? 10 : 2)));
    Case<T> at_hand(random, head_dims[random.below(head_dims.size())], 1 + i % 11, tokens);
    const PagedDecodeArguments& in = at_hand.arguments();
    run_on_host<T>(in, block);
    for (int32_t row = 0; row < in.sequences * in.heads; ++row) {
      const std::vector<double> expected = at_hand.reference(row / in.heads, row % in.heads);
      for (int32_t d = 0; d < in.head_dim; ++d) {
        const double ours = Element<T>::wide(at_hand.out()[static_cast<size_t>(row * in.head_dim + d)]);
        const double theirs = expected[static_cast<size_t>(d)];
        ASSERT_NEAR(ours, theirs, tolerance * (1 + std::abs(theirs)) + kOfScores * in.scale * std::sqrt(in.head_dim))
            << "case " << i << ", head " << row % in.heads << " of sequence " << row / in.heads << ", dimension " << d;
      }
    }
  }
}

constexpr int32_t kHeadDims[] = {64, 96, 128, 256, 8, 80}, kOfGroups[] = {64, 128};

TEST(PagedDecodeKernel, IsTheReferenceInFloat32) { expect_reference<float>(600, 2e-6, kHeadDims, 1); }

TEST(PagedDecodeKernel, IsTheReferenceInBfloat16) { expect_reference<gpu::Bfloat16>(150, 4e-3, kHeadDims, 1); }

// Shares are rounded, too.
TEST(GroupedDecodeKernel, IsTheReference) { expect_reference<gpu::Bfloat16>(1000, 1.2e-2, kOfGroups, 16); }

}  // namespace
}  // namespace sluice::models::paged_decode::paged_decode_kernel_test
