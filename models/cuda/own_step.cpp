#include "models/cuda/own_step.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/error.h"
#include "models/cuda/gated.h"
#include "models/devices/streams.h"
#include "models/layers/attention_scores.h"
#include "models/layers/feed_forward/mlp.h"

namespace sluice::models {
namespace {

constexpr int64_t kLibraryBytes = 32LL << 20;  // what cuBLAS wants on the newest cards
constexpr size_t kVersions = 4;
constexpr int kTimesBefore = 1;  // that a step runs before it is recorded: what is loaded at the first is not recorded

void check(const char* failure, const char* what) {
  SLUICE_CHECK(failure == nullptr, std::string(what) + ": " + (failure ? failure : ""));
}

const float* floats(const at::Tensor& tensor) {
  if (!tensor.defined()) return nullptr;
  SLUICE_CHECK(tensor.scalar_type() == at::kFloat && tensor.is_contiguous(), "norms and biases are contiguous float32");
  return tensor.const_data_ptr<float>();
}

const void* narrow(const at::Tensor& matrix) {
  SLUICE_CHECK(matrix.scalar_type() == at::kBFloat16 && matrix.is_contiguous(), "matrices that sample are contiguous bfloat16");
  return matrix.const_data_ptr();
}

// Rows that a recording has at least, so that there are few of them.
int64_t padded_rows(int64_t rows) {
  const int64_t step = rows <= 2 ? 1 : rows <= 4 ? 2 : rows <= 32 ? 8 : rows <= 256 ? 16 : 64;
  return (rows + step - 1) / step * step;
}

int32_t small(int64_t number) { return static_cast<int32_t>(number); }

}  // namespace

bool OwnStep::takes(const ModelConfig& config, Precision precision) {
  const int64_t of_heads = config.heads * config.head_dim;
  return precision == Precision::kBfloat16 && config.norm != NormKind::kLayer && config.qk_norm != QkNorm::kProjection &&
         !config.learned_positions && !config.experts.any() && config.head_dim % kOfHeadDim == 0 &&
         config.head_dim <= kMostHeadDim && config.hidden_size % kOfRows == 0 && config.intermediate_size % kOfRows == 0 &&
         of_heads % kOfRows == 0 && config.hidden_size <= kMostOfRow;
}

OwnStep::OwnStep(const ModelConfig& config, const OwnKernels& kernels, const at::Tensor& keys, const at::Tensor& values)
    : config_(config), kernels_(kernels), keys_(keys), values_(values), device_(std::max<int32_t>(keys.device().index(), 0)) {
  library_memory_ = at::empty({kLibraryBytes}, keys_.options().dtype(at::kByte));
  check(kernels_.step->open_library(device_, library_memory_.mutable_data_ptr(), kLibraryBytes, &library_), "products");
}

OwnStep::~OwnStep() {
  forget_recordings();
  if (library_ != nullptr) kernels_.step->close_library(library_);
}

void OwnStep::forget_recordings() {
  for (Version& version : versions_) {
    for (const auto& [rows, recording] : version.recordings) kernels_.step->forget(recording);
    version.recordings.clear(), version.times.clear();
  }
}

at::Tensor OwnStep::step(const Weights& weights, const Rows& rows, const Others& others) {
  const auto count = static_cast<int64_t>(rows.tokens.size()), wanted = static_cast<int64_t>(rows.last.size());
  const bool all_single = static_cast<int64_t>(rows.single.size()) == count && wanted == count;
  const int64_t padded = all_single ? padded_rows(count) : count;
  make_room(padded, all_single ? padded : wanted, rows.width);
  make_angles(*std::ranges::max_element(rows.positions) + 1);
  Version& version = version_of(weights);
  const Plan plan = planned(rows, padded);
  if (!(plan.all_single && play(version, plan))) enqueue(version, plan, others, current_stream_on(keys_.device()));
  return wanted == 0 ? at::Tensor() : logits_.narrow(0, 0, wanted);
}

bool OwnStep::play(Version& version, const Plan& plan) {
  if (version.times[plan.rows]++ < kTimesBefore) return false;
  void*& recording = version.recordings[plan.rows];
  if (recording == nullptr) {
    void* stream = nullptr;
    check(kernels_.step->begin_recording(device_, &stream), "recording a step");
    enqueue(version, plan, {}, stream);
    check(kernels_.step->end_recording(device_, stream, &recording), "recording a step");
  }
  check(kernels_.step->play(device_, recording, current_stream_on(keys_.device())), "a recorded step");
  return true;
}

// Recordings have the addresses of all that is allocated here.
void OwnStep::make_room(int64_t rows, int64_t wanted, int64_t width) {
  const auto of_type = [&](at::ScalarType type) { return keys_.options().dtype(type); };
  const bool more_rows = rows > rows_, more_wanted = wanted > wanted_, wider = width > width_;
  if (!more_rows && !more_wanted && !wider) return;
  forget_recordings();
  if (more_rows) {
    rows_ = rows;
    const int64_t of_heads = config_.heads * config_.head_dim;
    x_ = at::empty({rows, config_.hidden_size}, of_type(at::kFloat));
    read_ = at::empty({rows, config_.hidden_size}, of_type(at::kBFloat16));
    projected_ = at::empty({rows, widest()}, of_type(at::kFloat));
    query_ = at::empty({rows, config_.heads, config_.head_dim}, of_type(at::kBFloat16));
    attended_ = at::empty({rows, of_heads}, of_type(at::kBFloat16));
    gated_ = at::empty({rows, config_.intermediate_size}, of_type(at::kBFloat16));
  }
  if (more_wanted) wanted_ = wanted, logits_ = at::empty({wanted, config_.vocab_size}, of_type(at::kFloat));
  if (wider) width_ = std::max(width, 2 * width_);
  numbers_ = at::empty({rows_ * (6 + width_)}, of_type(at::kInt));
}

int64_t OwnStep::widest() const {
  const int64_t heads = (config_.heads + 2 * config_.kv_heads) * config_.head_dim;
  return std::max({heads, config_.hidden_size, (config_.gated_mlp ? 2 : 1) * config_.intermediate_size});
}

void OwnStep::make_angles(int64_t positions) {
  if (!rotary_.empty() && positions <= rotary_.front().positions()) return;
  forget_recordings();
  grow_rotary_tables(config_, positions, rotary_);
  angles_.clear();
  for (const RotaryTable& table : rotary_) {
    const at::Tensor here = at::empty({table.positions(), table.dims()}, at::kFloat);
    std::copy_n(table.row(0), here.numel(), here.mutable_data_ptr<float>());
    angles_.push_back(here.to(keys_.device()));
  }
}

OwnStep::Version& OwnStep::version_of(const Weights& weights) {
  std::vector<const void*> places{weights.embedding.const_data_ptr(), weights.head.const_data_ptr(),
                                  weights.final_norm.const_data_ptr()};
  const auto place = [&](const at::Tensor& tensor) { places.push_back(tensor.defined() ? tensor.const_data_ptr() : nullptr); };
  for (const LayerWeights& layer : weights.layers) {
    for (const at::Tensor* tensor : {&layer.attention_norm, &layer.query_norm, &layer.key_norm, &layer.attention_output_norm,
                                     &layer.feed_forward_norm, &layer.feed_forward_output_norm})
      place(*tensor);
    for (const LinearWeights* linear : layer.linears()) place(linear->weight), place(linear->bias);
  }
  const auto known = std::ranges::find(versions_, places, &Version::places);
  if (known != versions_.end()) {
    std::rotate(versions_.begin(), known, known + 1);
    return versions_.front();
  }
  if (versions_.size() == kVersions) {
    for (const auto& [rows, recording] : versions_.back().recordings) kernels_.step->forget(recording);
    versions_.pop_back();
  }
  const auto stacked = [](std::initializer_list<const LinearWeights*> linears) {
    std::vector<Linear> stack;
    for (const LinearWeights* linear : linears) {
      const void* const matrix = narrow(linear->weight);
      const int64_t outputs = linear->weight.size(0), row = linear->weight.size(1) * 2;
      const bool is_beside =
          !stack.empty() && static_cast<const char*>(stack.back().weight) + stack.back().outputs * row == matrix;
      is_beside ? static_cast<void>(stack.back().outputs += outputs) : stack.push_back({matrix, outputs});
    }
    return stack;
  };
  Version version{.places = std::move(places),
                  .layers = {},
                  .embedding = narrow(weights.embedding),
                  .head = narrow(weights.head),
                  .final_norm = floats(weights.final_norm),
                  .times = {},
                  .recordings = {}};
  for (const LayerWeights& of : weights.layers) {
    const auto network = [&](Mlp::Linear linear) -> const LinearWeights& { return of.feed_forward[linear]; };
    const LinearWeights &gate = network(Mlp::kGate), &up = network(Mlp::kUp), &down = network(Mlp::kDown);
    version.layers.push_back({.projections = stacked({&of.query, &of.key, &of.value}),
                              .output = stacked({&of.attention_output}),
                              .down = stacked({&down}),
                              .gate = config_.gated_mlp ? narrow(gate.weight) : nullptr,
                              .up = narrow(up.weight),
                              .query_bias = floats(of.query.bias),
                              .key_bias = floats(of.key.bias),
                              .value_bias = floats(of.value.bias),
                              .output_bias = floats(of.attention_output.bias),
                              .gate_bias = floats(gate.bias),
                              .up_bias = floats(up.bias),
                              .down_bias = floats(down.bias),
                              .attention_norm = floats(of.attention_norm),
                              .query_norm = floats(of.query_norm),
                              .key_norm = floats(of.key_norm),
                              .attention_output_norm = floats(of.attention_output_norm),
                              .feed_forward_norm = floats(of.feed_forward_norm),
                              .feed_forward_output_norm = floats(of.feed_forward_output_norm)});
  }
  versions_.insert(versions_.begin(), std::move(version));
  return versions_.front();
}

// Rows that are there to fill up read no token's keys, write none, and give logits that nobody looks at.
OwnStep::Plan OwnStep::planned(const Rows& rows, int64_t padded) {
  const auto count = static_cast<int64_t>(rows.tokens.size()), wanted = static_cast<int64_t>(rows.last.size());
  const auto single = static_cast<int64_t>(rows.single.size());
  const bool all_single = single == count && wanted == count;
  const at::TensorOptions on_host = at::TensorOptions(at::kInt).pinned_memory(!keys_.device().is_cpu());
  const int64_t of_single = all_single ? padded : single;
  const at::Tensor here = at::empty({5 * padded + of_single * (1 + width_)}, on_host);
  int32_t* const begin = here.mutable_data_ptr<int32_t>();
  int32_t* next = begin;
  const auto put = [&](int64_t size, int32_t filler, const auto& number, int64_t numbers) {
    const int64_t offset = next - begin;
    for (int64_t i = 0; i < size; ++i) *next++ = i < numbers ? small(number(static_cast<size_t>(i))) : filler;
    return numbers_.const_data_ptr<int32_t>() + offset;
  };
  Plan plan{.rows = padded, .wanted = all_single ? padded : wanted, .single = of_single, .all_single = all_single};
  plan.tokens = put(
      padded, 0, [&](size_t i) { return rows.tokens[i]; }, count);
  plan.positions = put(
      padded, 0, [&](size_t i) { return rows.positions[i]; }, count);
  plan.slots = put(
      padded, -1, [&](size_t i) { return rows.slots[i]; }, count);
  plan.last = put(
      padded, 0, [&](size_t i) { return rows.last[i]; }, wanted);
  plan.single_rows = put(
      padded, 0, [&](size_t i) { return all_single && i >= rows.single.size() ? static_cast<int64_t>(i) : rows.single[i]; },
      all_single ? padded : single);
  plan.lengths = put(
      of_single, 0, [&](size_t i) { return rows.positions[static_cast<size_t>(rows.single[i])] + 1; }, single);
  plan.table = numbers_.const_data_ptr<int32_t>() + (next - begin);
  for (int64_t s = 0; s < of_single; ++s)
    for (int64_t w = 0; w < width_; ++w)
      *next++ = s < single && w < rows.width ? small(rows.table[static_cast<size_t>(s * rows.width + w)]) : 0;
  numbers_.narrow(0, 0, here.numel()).copy_(here, /*non_blocking=*/true);
  return plan;
}

void OwnStep::multiply(const std::vector<Linear>& linears, const at::Tensor& x, int64_t inputs, const at::Tensor& y, int64_t rows,
                       void* stream) {
  int64_t apart = 0, done = 0;
  for (const Linear& linear : linears) apart += linear.outputs;
  for (const Linear& linear : linears) {
    check(kernels_.step->product({.x = x.const_data_ptr(),
                                  .w = linear.weight,
                                  .y = y.mutable_data_ptr<float>() + done,
                                  .rows = small(rows),
                                  .inputs = small(inputs),
                                  .outputs = small(linear.outputs),
                                  .apart = small(apart),
                                  .library = library_,
                                  .device = device_,
                                  .stream = stream}),
          "a product");
    done += linear.outputs;
  }
}

void OwnStep::residual(ResidualArguments arguments, int64_t rows, void* stream) {
  arguments.x = x_.mutable_data_ptr<float>();
  arguments.read = read_.mutable_data_ptr();
  arguments.from_one = config_.norm == NormKind::kRmsFromOne;
  arguments.eps = static_cast<float>(config_.norm_eps);
  arguments.rows = small(rows), arguments.size = small(config_.hidden_size);
  arguments.device = device_, arguments.stream = stream;
  check(kernels_.step->residual(arguments), "the residual stream");
}

void OwnStep::attend(int64_t layer, const Plan& plan, void* stream) {
  const AttentionScores scores = scores_of(config_, layer);
  const at::Tensor keys = keys_.select(0, layer), values = values_.select(0, layer);
  PagedDecodeArguments in{.query = query_.const_data_ptr(),
                          .keys = keys.const_data_ptr(),
                          .values = values.const_data_ptr(),
                          .table = plan.table,
                          .lengths = plan.lengths,
                          .rows = plan.single_rows,
                          .out = attended_.mutable_data_ptr(),
                          .bfloat16 = true,
                          .sequences = small(plan.single),
                          .heads = small(config_.heads),
                          .kv_heads = small(config_.kv_heads),
                          .head_dim = small(config_.head_dim),
                          .block_size = small(keys_.size(2)),
                          .table_width = small(width_),
                          .block_inverse = inverse_of(small(keys_.size(2))),
                          .window = small(scores.window),
                          .scale = static_cast<float>(scores.scale),
                          .softcap = static_cast<float>(scores.softcap),
                          .device = device_,
                          .stream = stream};
  const int64_t numbers = kernels_.plan_paged_decode(in, width_ * keys_.size(2));
  if (numbers > (partials_.defined() ? partials_.numel() : 0)) {
    forget_recordings();
    partials_ = at::empty({numbers}, keys_.options().dtype(at::kFloat));
  }
  if (numbers > 0) in.partials = partials_.mutable_data_ptr<float>();
  check(kernels_.paged_decode_attention(in), "attention");
}

void OwnStep::enqueue(const Version& version, const Plan& plan, const Others& others, void* stream) {
  const StepKernels& kernels = *kernels_.step;
  const bool after_alone = config_.norm_place == NormPlace::kAfter;
  const auto read_by = [&](const float* norm) { return after_alone ? nullptr : norm; };
  residual({.embedding = version.embedding,
            .tokens = plan.tokens,
            .embedding_scale = static_cast<float>(config_.embedding_scale),
            .before = read_by(version.layers.front().attention_norm)},
           plan.rows, stream);
  for (size_t i = 0; i < version.layers.size(); ++i) {
    const Layer& layer = version.layers[i];
    const auto number = static_cast<int64_t>(i);
    const bool is_last = i + 1 == version.layers.size();
    const int64_t rope = config_.rope_index(number);
    const at::Tensor angles = rope == kNoRope ? at::Tensor() : angles_[static_cast<size_t>(rope)];
    multiply(layer.projections, read_, config_.hidden_size, projected_, plan.rows, stream);
    check(kernels.heads({.projected = projected_.const_data_ptr<float>(),
                         .query_bias = layer.query_bias,
                         .key_bias = layer.key_bias,
                         .value_bias = layer.value_bias,
                         .query_norm = layer.query_norm,
                         .key_norm = layer.key_norm,
                         .angles = angles.defined() ? angles.const_data_ptr<float>() : nullptr,
                         .positions = plan.positions,
                         .slots = plan.slots,
                         .query = query_.mutable_data_ptr(),
                         .keys = keys_.select(0, number).mutable_data_ptr(),
                         .values = values_.select(0, number).mutable_data_ptr(),
                         .from_one = config_.norm == NormKind::kRmsFromOne,
                         .neighbours = config_.rotary_neighbours,
                         .eps = static_cast<float>(config_.norm_eps),
                         .rows = small(plan.rows),
                         .heads = small(config_.heads),
                         .kv_heads = small(config_.kv_heads),
                         .head_dim = small(config_.head_dim),
                         .rotary_dims = angles.defined() ? small(angles.size(1)) : 0,
                         .device = device_,
                         .stream = stream}),
          "heads");
    if (plan.single > 0) attend(number, plan, stream);
    if (others)
      others(number, query_.narrow(0, 0, plan.rows), attended_.narrow(0, 0, plan.rows).view({plan.rows, config_.heads, -1}));
    multiply(layer.output, attended_, config_.heads * config_.head_dim, projected_, plan.rows, stream);
    residual({.added = projected_.const_data_ptr<float>(),
              .bias = layer.output_bias,
              .after = layer.attention_output_norm,
              .before = read_by(layer.feed_forward_norm)},
             plan.rows, stream);
    check(kernels.gated_product({.x = read_.const_data_ptr(),
                                 .gate = layer.gate,
                                 .up = layer.up,
                                 .inputs = small(config_.hidden_size),
                                 .projected = projected_.mutable_data_ptr<float>(),
                                 .of = {.projected = projected_.const_data_ptr<float>(),
                                        .gate_bias = layer.gate_bias,
                                        .up_bias = layer.up_bias,
                                        .out = gated_.mutable_data_ptr(),
                                        .gated = config_.gated_mlp,
                                        .gate = gate_kind_of(config_.activation),
                                        .rows = small(plan.rows),
                                        .size = small(config_.intermediate_size),
                                        .device = device_,
                                        .stream = stream},
                                 .library = library_}),
          "a gate");
    multiply(layer.down, gated_, config_.intermediate_size, projected_, plan.rows, stream);
    const float* const next =
        is_last ? (plan.all_single ? version.final_norm : nullptr) : read_by(version.layers[i + 1].attention_norm);
    residual({.added = projected_.const_data_ptr<float>(),
              .bias = layer.down_bias,
              .after = layer.feed_forward_output_norm,
              .before = next},
             plan.rows, stream);
  }
  if (plan.wanted == 0) return;
  if (!plan.all_single) residual({.before = version.final_norm, .chosen = plan.last}, plan.wanted, stream);
  multiply({{version.head, config_.vocab_size}}, read_, config_.hidden_size, logits_, plan.wanted, stream);
}

}  // namespace sluice::models
