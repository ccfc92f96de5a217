// device_operations DEVICE [PLUGIN]: how long single operations take on a device, by events of its stream.
//
//   {"ask": "attention", "sequences": 64, "context": 4096, "heads": 32, "kv_heads": 8, "head_dim": 128, "dtype": "bfloat16", "times": 10}
//       {"seconds", "library"}: of one new token a sequence, by our kernel and by LibTorch's operators; lists. Without "seconds" where
//       the device has no kernel of ours
//   {"ask": "product", "rows": 16, "inputs": 4096, "outputs": 14336, "times": 20}
//       {"seconds", "library"}: of few bfloat16 rows with a matrix, one of several in turn, so that none is in a cache; as above
//   {"ask": "logprobs", "actions": 16384, "hidden": 4096, "vocabulary": 131072, "dtype": "bfloat16", "backward": true, "times": 5}
//       {"seconds"}
//   {"ask": "publish", "model": "FOLDER", "dtype": "bfloat16", "times": 5}
//       {"seconds", "parameters"}: live weights in float32, random, become the version that is sampled from

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/randperm.h>
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>

#include "base/error.h"
#include "bench/questions.h"
#include "models/cuda/own_kernels.h"
#include "models/cuda/paged_decode_attention.h"
#include "models/cuda/step_kernels.h"
#include "models/folder/folder.h"
#include "models/forward/action_logprobs.h"
#include "models/forward/transformer.h"
#include "models/portable/abilities.h"
#include "models/portable/paged_attention.h"
#include "models/portable/product.h"
#include "models/sample/packed_weights.h"

namespace sluice::bench {
namespace {

constexpr int64_t kBlock = 16;

class Bench {
 public:
  explicit Bench(at::Device device) : device_(device) {}

  Json answer(const Json& question) const {
    if (question.at("ask") == "attention") return attention(question);
    if (question.at("ask") == "product") return product(question);
    if (question.at("ask") == "logprobs") return logprobs(question);
    return publish(question);
  }

 private:
  at::TensorOptions there(at::ScalarType type = at::kFloat) const { return at::TensorOptions(type).device(device_); }
  // Drawn by the host: not every device draws.
  at::Tensor normal(at::IntArrayRef shape) const { return at::randn(shape).to(device_); }

  // Of each repetition, after one that is not counted: from when the stream begins with the work until it is done.
  template <class Work>
  std::vector<double> seconds(const Json& question, const Work& work) const {
    const c10::impl::VirtualGuardImpl of_device(device_.type());
    const auto now = [&](c10::Event& event) { event.record(of_device.getStream(device_)); };
    std::vector<double> all;
    work();
    for (int i = 0; i < question.at("times").get<int>(); ++i) {
      c10::Event begin(device_.type(), c10::EventFlag::BACKEND_DEFAULT), end(device_.type(), c10::EventFlag::BACKEND_DEFAULT);
      now(begin);
      work();
      now(end);
      wait_for(device_);
      all.push_back(begin.elapsedTime(end) * 1e-3);
    }
    return all;
  }

  Json attention(const Json& question) const {
    const at::NoGradGuard no_gradient;
    const int64_t sequences = question.at("sequences"), context = question.at("context"), head_dim = question.at("head_dim");
    const int64_t width = (context + kBlock - 1) / kBlock, blocks = sequences * width;
    const auto type = models::portable::dtype_of(precision_named(question.at("dtype")));
    // Values as they come: the time does not depend on them. The blocks of a sequence lie anywhere.
    const auto cache = [&] {
      return at::full({blocks, kBlock, question.at("kv_heads").get<int64_t>(), head_dim}, 0.5, there(type));
    };
    const at::Tensor keys = cache(), values = cache();
    const at::Tensor query = normal({sequences, question.at("heads").get<int64_t>(), head_dim}).to(type);
    const at::Tensor table = at::randperm(blocks, at::kLong).view({sequences, width}).to(device_);
    const at::Tensor positions = at::full({sequences}, context - 1, at::kLong).to(device_);
    const models::AttentionScores scores{.scale = 0.1};
    Json answer;
    if (models::portable::has_paged_decode_attention(device_, head_dim))
      answer["seconds"] =
          seconds(question, [&] { models::paged_decode_attention(query, keys, values, table, positions, scores); });
    answer["library"] = seconds(question, [&] {
      models::portable::paged_attention(query.unsqueeze(1), keys, values, table, positions.unsqueeze(1), scores);
    });
    return answer;
  }

  Json product(const Json& question) const {
    const at::NoGradGuard no_gradient;
    constexpr int64_t kNumbers = int64_t{1} << 28;  // of all matrices at least
    const int64_t rows = question.at("rows"), inputs = question.at("inputs"), outputs = question.at("outputs");
    const int64_t count = std::max<int64_t>(1, kNumbers / (inputs * outputs));
    const at::Tensor x = normal({rows, inputs}).to(at::kBFloat16);
    const at::Tensor matrices = normal({inputs * outputs}).to(at::kBFloat16).repeat({count}).view({count, outputs, inputs});
    int64_t next = 0;
    const auto matrix = [&] { return matrices[next++ % count]; };
    Json answer;
    if (const models::OwnKernels* const own = models::portable::own_kernels_of(device_)) {
      const at::Tensor y = at::empty({rows, outputs}, there());
      const auto number = [](int64_t value) { return static_cast<int32_t>(value); };
      answer["seconds"] = seconds(question, [&] {
        const char* const failure = own->step->product({.x = x.const_data_ptr(),
                                                        .w = matrix().const_data_ptr(),
                                                        .y = y.mutable_data_ptr<float>(),
                                                        .rows = number(rows),
                                                        .inputs = number(inputs),
                                                        .outputs = number(outputs),
                                                        .apart = number(outputs),
                                                        .device = device_.index()});
        SLUICE_CHECK(failure == nullptr, failure);
      });
    }
    answer["library"] = seconds(question, [&] { models::portable::wide_product(x, matrix().t()); });
    return answer;
  }

  Json logprobs(const Json& question) const {
    const int64_t actions = question.at("actions"), hidden_size = question.at("hidden"), vocabulary = question.at("vocabulary");
    const bool backward = question.at("backward");
    const at::AutoGradMode mode(backward);
    const at::Tensor hidden = normal({actions, hidden_size}).set_requires_grad(backward);
    const at::Tensor head = normal({vocabulary, hidden_size}).mul_(0.02).set_requires_grad(backward);
    const at::Tensor targets = at::randint(vocabulary, {actions}, at::kLong).to(device_);
    const models::LogprobOptions options{.precision = precision_named(question.at("dtype"))};
    return {{"seconds", seconds(question, [&] {
               const at::Tensor logprobs = models::action_logprobs(hidden, head, targets, options);
               if (backward) logprobs.sum().backward();
             })}};
  }

  Json publish(const Json& question) const {
    const std::string folder = question.at("model");
    const auto model = models::load_transformer(folder, {.random_init = true, .device = device_});
    int64_t parameters = 0;
    for (const auto& [name, weight] : model.weights().named()) parameters += weight.numel();
    models::PackedWeights published(precision_named(question.at("dtype")));
    return {{"seconds", seconds(question, [&] { published.pack(model.weights()); })}, {"parameters", parameters}};
  }

  at::Device device_;
};

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) {
  using namespace sluice::bench;
  if (argc < 2 || argc > 3) {
    std::fprintf(stderr, "usage: %s DEVICE [PLUGIN]\n", argv[0]);
    return 64;
  }
  return answer_questions([&]() -> Answer {
    const auto bench = std::make_shared<Bench>(use_device({argv + 1, argv + argc}));
    return [bench](const sluice::Json& question) { return bench->answer(question); };
  });
}
