#include "models/cuda/paged_decode_attention.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <torch/library.h>

#include <string>

#include "base/error.h"
#include "models/cuda/own_kernels.h"
#include "models/devices/streams.h"

namespace sluice::models {
namespace {

using at::Tensor;

Tensor on_gpu(const Tensor& query, const Tensor& keys, const Tensor& values, const Tensor& table, const Tensor& positions,
              double scale, double softcap, int64_t window) {
  SLUICE_CHECK(keys.is_contiguous() && values.is_contiguous() && keys.scalar_type() == query.scalar_type(),
               "keys and values must be contiguous and of the dtype of the queries");
  const Tensor in = query.contiguous(), out = at::empty_like(in);
  const Tensor blocks = table.to(at::kInt).contiguous(), lengths = positions.add(1).to(at::kInt).contiguous();
  const auto number = [](int64_t value) { return static_cast<int32_t>(value); };
  PagedDecodeArguments arguments{.query = in.const_data_ptr(),
                                 .keys = keys.const_data_ptr(),
                                 .values = values.const_data_ptr(),
                                 .table = blocks.const_data_ptr<int32_t>(),
                                 .lengths = lengths.const_data_ptr<int32_t>(),
                                 .out = out.mutable_data_ptr(),
                                 .bfloat16 = query.scalar_type() == at::kBFloat16,
                                 .sequences = number(in.size(0)),
                                 .heads = number(in.size(1)),
                                 .kv_heads = number(keys.size(2)),
                                 .head_dim = number(in.size(2)),
                                 .block_size = number(keys.size(1)),
                                 .table_width = number(blocks.size(1)),
                                 .block_inverse = inverse_of(number(keys.size(1))),
                                 .window = number(window),
                                 .scale = static_cast<float>(scale),
                                 .softcap = static_cast<float>(softcap),
                                 .device = query.device().index(),
                                 .stream = current_stream_on(query.device())};
  const int64_t numbers = own_kernels()->plan_paged_decode(arguments, blocks.size(1) * keys.size(1));
  const Tensor partials = at::empty({numbers}, in.options().dtype(at::kFloat));
  arguments.partials = partials.mutable_data_ptr<float>();
  const char* const failure = own_kernels()->paged_decode_attention(arguments);
  SLUICE_CHECK(failure == nullptr, std::string("paged_decode_attention: ") + (failure ? failure : ""));
  return out;
}

constexpr const char* kName = "sluice::paged_decode_attention";
constexpr const char* kSchema =
    "paged_decode_attention(Tensor query, Tensor keys, Tensor values, Tensor table, Tensor positions, float scale, float "
    "softcap, "
    "int window) -> Tensor";

// LibTorch holds what it is told as long as the process lives: a library that is destroyed takes it back, while others end
// beside it.
torch::Library& told(torch::Library::Kind kind, std::optional<c10::DispatchKey> key) {
  return *new torch::Library(kind, "sluice", key, __FILE__, __LINE__);
}

c10::OperatorHandle declared() {
  told(torch::Library::FRAGMENT, std::nullopt).def(kSchema);
  return c10::Dispatcher::singleton().findSchemaOrThrow(kName, "");
}

}  // namespace

Tensor paged_decode_attention(const Tensor& query, const Tensor& keys, const Tensor& values, const Tensor& table,
                              const Tensor& positions, const AttentionScores& scores) {
  static const auto op = paged_decode_attention_operator().typed<decltype(on_gpu)>();
  return op.call(query, keys, values, table, positions, scores.scale, scores.softcap, scores.window);
}

const c10::OperatorHandle& paged_decode_attention_operator() {
  static const c10::OperatorHandle once = declared();
  return once;
}

void offer_paged_decode_attention() {
  [[maybe_unused]] static const torch::Library& once =
      told(torch::Library::IMPL, c10::DispatchKey::CUDA).impl(kName, TORCH_FN(on_gpu));
}

}  // namespace sluice::models
