#include "tests/models/cuda/host_kernels.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <vector>

#include "models/cuda/step_kernels.h"

namespace sluice::models::host {
namespace {

float wide(const void* matrix, int64_t place) {
  return std::bit_cast<float>(uint32_t{static_cast<const uint16_t*>(matrix)[place]} << 16);
}
void put(void* matrix, int64_t place, double x) {
  const auto bits = std::bit_cast<uint32_t>(static_cast<float>(x));
  static_cast<uint16_t*>(matrix)[place] = static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}
double or_zero(const float* numbers, int64_t place) { return numbers == nullptr ? 0 : numbers[place]; }

std::vector<double> normalised(std::vector<double> x, const float* weights, bool from_one, float eps) {
  if (weights == nullptr) return x;
  double squares = 0;
  for (const double number : x) squares += number * number;
  const double factor = 1 / std::sqrt(squares / static_cast<double>(x.size()) + eps);
  for (size_t i = 0; i < x.size(); ++i) x[i] *= factor * (weights[i] + (from_one ? 1 : 0));
  return x;
}

void multiply(const StepProductArguments& in) {
  for (int64_t row = 0; row < in.rows; ++row) {
    for (int64_t n = 0; n < in.outputs; ++n) {
      float sum = 0;
      for (int64_t k = 0; k < in.inputs; ++k) sum += wide(in.x, row * in.inputs + k) * wide(in.w, n * in.inputs + k);
      in.y[row * in.apart + n] = sum;
    }
  }
}

void flow(const ResidualArguments& in) {
  for (int64_t row = 0; row < in.rows; ++row) {
    float* const x = in.x + (in.chosen != nullptr ? in.chosen[row] : row) * in.size;
    std::vector<double> more(static_cast<size_t>(in.size)), stream(more);
    for (int64_t i = 0; i < in.size; ++i) {
      if (in.added != nullptr) more[static_cast<size_t>(i)] = in.added[row * in.size + i] + or_zero(in.bias, i);
      if (in.embedding != nullptr)
        x[i] = wide(in.embedding, in.tokens[row] * static_cast<int64_t>(in.size) + i) * in.embedding_scale;
    }
    if (in.added != nullptr) more = normalised(more, in.after, in.from_one, in.eps);
    for (size_t i = 0; i < more.size(); ++i) stream[i] = x[i] = static_cast<float>(x[i] + more[i]);
    stream = normalised(stream, in.before, in.from_one, in.eps);
    for (int64_t i = 0; i < in.size; ++i) put(in.read, row * in.size + i, stream[static_cast<size_t>(i)]);
  }
}

void split_heads(const HeadsArguments& in) {
  const int64_t all = in.heads + 2 * in.kv_heads, dim = in.head_dim, half = in.rotary_dims / 2;
  for (int64_t row = 0; row < in.rows; ++row) {
    const float* const angles = in.angles + int64_t{in.positions[row]} * in.rotary_dims;
    for (int64_t h = 0; h < all; ++h) {
      const bool is_query = h < in.heads, is_value = h >= in.heads + in.kv_heads;
      const int64_t number = is_query ? h : (h - in.heads) % in.kv_heads;
      std::vector<double> head;
      for (int64_t d = 0; d < dim; ++d)
        head.push_back(in.projected[(row * all + h) * dim + d] + or_zero(is_query   ? in.query_bias
                                                                         : is_value ? in.value_bias
                                                                                    : in.key_bias,
                                                                         number * dim + d));
      if (!is_value) head = normalised(head, is_query ? in.query_norm : in.key_norm, in.from_one, in.eps);
      for (int64_t d = 0; d < half && !is_value; ++d) {
        const auto i = static_cast<size_t>(in.neighbours ? 2 * d : d), j = i + static_cast<size_t>(in.neighbours ? 1 : half);
        const double a = head[i], b = head[j];
        head[i] = a * angles[d] - b * angles[d + half], head[j] = b * angles[d] + a * angles[d + half];
      }
      if (!is_query && in.slots[row] < 0) continue;
      void* const to = is_query ? in.query : is_value ? in.values : in.keys;
      const int64_t place = is_query ? row * in.heads + h : in.slots[row] * int64_t{in.kv_heads} + number;
      for (int64_t d = 0; d < dim; ++d) put(to, place * dim + d, head[static_cast<size_t>(d)]);
    }
  }
}

double activated(GateKind gate, double x) {
  if (gate == GateKind::kSilu) return x / (1 + std::exp(-x));
  if (gate == GateKind::kGelu) return x / 2 * (1 + std::erf(x / std::sqrt(2)));
  return x / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

void open_gates(const GateArguments& in) {
  for (int64_t row = 0; row < in.rows; ++row) {
    const float* const from = in.projected + row * in.size * (in.gated ? 2 : 1);
    for (int64_t i = 0; i < in.size; ++i) {
      const double up = from[(in.gated ? in.size : 0) + i] + or_zero(in.up_bias, i);
      put(in.out, row * in.size + i,
          in.gated ? activated(in.gate, from[i] + or_zero(in.gate_bias, i)) * up : activated(in.gate, up));
    }
  }
}

void multiply_and_gate(const GatedProductArguments& in) {
  const GateArguments& of = in.of;
  StepProductArguments product{
      .x = in.x, .w = in.up, .y = in.projected, .rows = of.rows, .inputs = in.inputs, .outputs = of.size, .apart = of.size};
  if (of.gated) {
    product.apart = 2 * of.size, product.y += of.size;
    multiply(product);
    product.w = in.gate, product.y -= of.size;
  }
  multiply(product);
  open_gates(of);
}

void attend(const PagedDecodeArguments& in) {
  const int64_t dim = in.head_dim;
  for (int64_t s = 0; s < in.sequences; ++s) {
    const int64_t row = in.rows != nullptr ? in.rows[s] : s, length = in.lengths[s];
    for (int64_t h = 0; h < in.heads; ++h) {
      std::vector<double> sum(static_cast<size_t>(dim));
      double weights = 0;
      for (int64_t t = in.window > 0 ? std::max<int64_t>(0, length - in.window) : 0; t < length; ++t) {
        const int64_t slot = in.table[s * in.table_width + t / in.block_size] * int64_t{in.block_size} + t % in.block_size;
        const int64_t key = (slot * in.kv_heads + h / (in.heads / in.kv_heads)) * dim;
        double score = 0;
        for (int64_t d = 0; d < dim; ++d) score += wide(in.query, (row * in.heads + h) * dim + d) * wide(in.keys, key + d);
        score *= in.scale;
        const double weight = std::exp(in.softcap > 0 ? in.softcap * std::tanh(score / in.softcap) : score);
        weights += weight;
        for (int64_t d = 0; d < dim; ++d) sum[static_cast<size_t>(d)] += weight * wide(in.values, key + d);
      }
      for (int64_t d = 0; d < dim; ++d)
        put(in.out, (row * in.heads + h) * dim + d, weights > 0 ? sum[static_cast<size_t>(d)] / weights : 0);
    }
  }
}

using Recording = std::vector<std::function<void()>>;

template <class Arguments>
const char* done(const Arguments& in, void* stream, void (*work)(const Arguments&)) {
  if (stream == nullptr)
    work(in);
  else
    static_cast<Recording*>(stream)->emplace_back([in, work] { work(in); });
  return nullptr;
}
template <class Arguments>
const char* done(const Arguments& in, void (*work)(const Arguments&)) {
  return done(in, in.stream, work);
}

constexpr StepKernels kStep{
    .open_library = [](int32_t, void*, int64_t, void** library) -> const char* { return *library = nullptr, nullptr; },
    .close_library = [](void*) {},
    .product = [](const StepProductArguments& in) { return done(in, &multiply); },
    .residual = [](const ResidualArguments& in) { return done(in, &flow); },
    .heads = [](const HeadsArguments& in) { return done(in, &split_heads); },
    .gated_product = [](const GatedProductArguments& in) { return done(in, in.of.stream, &multiply_and_gate); },
    .begin_recording = [](int32_t, void** stream) -> const char* { return *stream = new Recording, nullptr; },
    .end_recording = [](int32_t, void* stream, void** recording) -> const char* { return *recording = stream, nullptr; },
    .play = [](int32_t, void* recording, void*) -> const char* {
      for (const auto& work : *static_cast<Recording*>(recording)) work();
      return nullptr;
    },
    .forget = [](void* recording) { delete static_cast<Recording*>(recording); }};

constexpr OwnKernels kKernels{.version = kOwnKernelsVersion,
                              .plan_paged_decode = [](PagedDecodeArguments&, int64_t) { return int64_t{0}; },
                              .paged_decode_attention = [](const PagedDecodeArguments& in) { return done(in, &attend); },
                              .step = &kStep};

}  // namespace

const OwnKernels& kernels() { return kKernels; }

}  // namespace sluice::models::host
