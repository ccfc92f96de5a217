#include "models/cuda/paged_decode_attention.h"

#include <ATen/ops/empty_like.h>

#include <string>

#include "base/error.h"
#include "models/cuda/own_kernels.h"

namespace sluice::models {

at::Tensor paged_decode_attention(const at::Tensor& query, const at::Tensor& keys, const at::Tensor& values,
                                  const at::Tensor& table, const at::Tensor& positions, const AttentionScores& scores) {
  const OwnKernels* const kernels = own_kernels();
  SLUICE_CHECK(kernels != nullptr && query.is_cuda(), "our kernels are not loaded, or this is no GPU");
  SLUICE_CHECK(keys.is_contiguous() && values.is_contiguous() && keys.scalar_type() == query.scalar_type(),
               "keys and values must be contiguous and of the dtype of the queries");
  const at::Tensor in = query.contiguous(), out = at::empty_like(in);
  const at::Tensor blocks = table.to(at::kInt).contiguous(), lengths = positions.add(1).to(at::kInt).contiguous();
  const auto number = [](int64_t value) { return static_cast<int32_t>(value); };
  const char* const failure = kernels->paged_decode_attention({.query = in.const_data_ptr(),
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
                                                               .window = number(scores.window),
                                                               .scale = static_cast<float>(scores.scale),
                                                               .softcap = static_cast<float>(scores.softcap),
                                                               .device = query.device().index()});
  SLUICE_CHECK(failure == nullptr, std::string("paged_decode_attention: ") + (failure ? failure : ""));
  return out;
}

void require_paged_decode_attention(int64_t head_dim, at::Device device) {
  const OwnKernels* const kernels = own_kernels();
  if (kernels == nullptr)
    throw UserError("our CUDA kernels are not loaded", "build on a machine with nvcc, and call use_cuda() first");
  if (!device.is_cuda()) throw UserError("our CUDA kernels do not run on " + device.str(), "a device \"cuda:N\"");
  if (head_dim > kernels->most_head_dim)
    throw UserError("our CUDA kernels take heads of " + std::to_string(kernels->most_head_dim) + " at most, not " +
                    std::to_string(head_dim));
}

}  // namespace sluice::models
