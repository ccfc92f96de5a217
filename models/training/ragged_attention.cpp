#include "models/training/ragged_attention.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "models/kernels/attention_kernels.h"
#include "models/kernels/parallel.h"

namespace sluice::models {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Few enough that long samples spread over the threads, enough that short ones do not pay for being handed out.
constexpr int64_t kTasksPerRange = 8;

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

// Calls `work(task, first_token, scratch)` for each key/value head of each sample.
template <class Work>
void for_each_task(const RaggedLayout& layout, int64_t window, const at::Tensor& query, const at::Tensor& key,
                   const at::Tensor& value, const Work& work) {
  const float *q = query.const_data_ptr<float>(), *k = key.const_data_ptr<float>(), *v = value.const_data_ptr<float>();
  const auto samples = static_cast<int64_t>(layout.offsets.size()) - 1;
  parallel_ranges(samples * layout.kv_heads, kTasksPerRange, [&](int64_t begin, int64_t end) {
    std::vector<float> scratch(static_cast<size_t>(attention_scratch_floats(layout.longest, layout.head_dim)));
    for (int64_t i = begin; i < end; ++i) {
      const int64_t sample = i / layout.kv_heads, first = layout.offsets[sample];
      if (layout.offsets[sample + 1] == first) continue;
      const AttentionTask task{.heads = layout.heads,
                               .kv_heads = layout.kv_heads,
                               .head_dim = layout.head_dim,
                               .length = layout.offsets[sample + 1] - first,
                               .kv_head = i % layout.kv_heads,
                               .scale = static_cast<float>(layout.score_scale),
                               .softcap = static_cast<float>(layout.softcap),
                               .window = window,
                               .rotary = &layout.rotary(sample),
                               .query = q + first * query.size(1),
                               .key = k + first * key.size(1),
                               .value = v + first * value.size(1)};
      work(task, first, scratch.data());
    }
  });
}

class RaggedAttention : public torch::autograd::Function<RaggedAttention> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& query_view, const at::Tensor& key_view,
                            const at::Tensor& value_view, const c10::intrusive_ptr<RaggedLayout>& layout, int64_t window) {
    const at::Tensor query = query_view.contiguous(), key = key_view.contiguous(), value = value_view.contiguous();
    const at::Tensor output = at::empty_like(query);
    const at::Tensor log_sum_exp = at::empty({query.size(0), layout->heads}, query.options());  // [T,Nq]
    float *out = output.mutable_data_ptr<float>(), *sums = log_sum_exp.mutable_data_ptr<float>();
    for_each_task(*layout, window, query, key, value, [&](const AttentionTask& task, int64_t first, float* scratch) {
      attention_forward(task, {out + first * query.size(1), sums + first * layout->heads}, scratch);
    });
    context->save_for_backward({query, key, value, output, log_sum_exp});
    context->saved_data["layout"] = c10::IValue::make_capsule(layout);
    context->saved_data["window"] = window;
    return output;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor &query = saved[0], &key = saved[1], &value = saved[2];
    const auto layout = c10::static_intrusive_pointer_cast<RaggedLayout>(context->saved_data["layout"].toCapsule());
    const int64_t window = context->saved_data["window"].toInt();
    const at::Tensor grad_output = gradients[0].contiguous();
    const at::Tensor grad_query = at::empty_like(query), grad_key = at::empty_like(key), grad_value = at::empty_like(value);
    const float *out = saved[3].const_data_ptr<float>(), *sums = saved[4].const_data_ptr<float>();
    const float* grad_out = grad_output.const_data_ptr<float>();
    float *gq = grad_query.mutable_data_ptr<float>(), *gk = grad_key.mutable_data_ptr<float>(),
          *gv = grad_value.mutable_data_ptr<float>();
    for_each_task(*layout, window, query, key, value, [&](const AttentionTask& task, int64_t first, float* scratch) {
      const int64_t query_row = first * query.size(1), key_row = first * key.size(1);
      attention_backward(task,
                         {.output = out + query_row,
                          .log_sum_exp = sums + first * layout->heads,
                          .grad_output = grad_out + query_row,
                          .grad_query = gq + query_row,
                          .grad_key = gk + key_row,
                          .grad_value = gv + key_row},
                         scratch);
    });
    return {grad_query, grad_key, grad_value, at::Tensor(), at::Tensor()};
  }
};

}  // namespace

RaggedLayout::RaggedLayout(const ModelConfig& config, std::span<const int64_t> sample_offsets)
    : offsets(sample_offsets.begin(), sample_offsets.end()),
      heads(config.heads),
      kv_heads(config.kv_heads),
      head_dim(config.head_dim),
      score_scale(config.score_scale()),
      softcap(config.attention_softcap),
      longest(longest_sample(sample_offsets)) {
  std::map<int64_t, int64_t> positions;  // of the table of each group of samples whose angles agree
  for (size_t s = 0; s + 1 < offsets.size(); ++s) {
    int64_t& most = positions[angle_group(config.rope, offsets[s + 1] - offsets[s])];
    most = std::max(most, offsets[s + 1] - offsets[s]);
  }
  std::map<int64_t, size_t> table_of_group;
  for (const auto& [group, most] : positions) {
    table_of_group[group] = tables_.size();
    tables_.emplace_back(config, most);
  }
  for (size_t s = 0; s + 1 < offsets.size(); ++s)
    table_of_.push_back(table_of_group.at(angle_group(config.rope, offsets[s + 1] - offsets[s])));
}

at::Tensor ragged_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                            const c10::intrusive_ptr<RaggedLayout>& layout, int64_t window) {
  SLUICE_CHECK(window >= 0, "a window has a token at least, or 0 for none");
  const int64_t tokens = layout->offsets.back();
  const auto fits = [&](const at::Tensor& x, int64_t heads) {
    return x.dim() == 2 && x.size(0) == tokens && x.size(1) == heads * layout->head_dim && x.scalar_type() == at::kFloat &&
           x.is_cpu();
  };
  SLUICE_CHECK(fits(query, layout->heads), "query must be [T,Nq*D], float32, on the CPU");
  SLUICE_CHECK(fits(key, layout->kv_heads) && fits(value, layout->kv_heads),
               "key and value must be [T,Nk*D], float32, on the CPU");
  return RaggedAttention::apply(query, key, value, layout, window);
}

}  // namespace sluice::models
