#include "nodes/models/sampling/common_copies.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/from_blob.h>

#include <utility>

#include "base/error.h"
#include "engine/plan/saturating.h"

namespace sluice::nodes {
namespace {

constexpr int64_t kBytesOfALine = 64;

// At least as many as a layer has, or what is outside of layers.
int64_t most_tensors(const models::ModelConfig& config) { return 64 + 8 * config.experts.count; }

int64_t on_line(int64_t bytes) { return (bytes + kBytesOfALine - 1) / kBytesOfALine * kBytesOfALine; }

}  // namespace

CommonCopies::CommonCopies(std::string model, engine::CommonMemory& memory) : model_(std::move(model)), memory_(&memory) {}

void CommonCopies::prepare(const models::ModelConfig& config, models::Precision precision, int64_t copies) {
  if (copies == 0) return;
  meeting_ = std::make_unique<CommonMeeting>(model_ + "/published", *memory_);
  bytes_ = models::PackedWeights::bytes_for(config, precision) + (config.layers + 1) * most_tensors(config) * kBytesOfALine;
  for (int64_t copy = 0; copy < copies; ++copy)
    copies_.push_back(memory_->get(model_ + "/published-" + std::to_string(copy), static_cast<size_t>(bytes_)));
}

void CommonCopies::give_up() {
  if (meeting_) meeting_->give_up();
}

int64_t CommonCopies::part_of(int64_t bytes) const { return engine::divided_up(bytes, memory_->ranks().count()); }

void CommonCopies::pack(const models::Weights& live, models::PackedWeights& to, int64_t copy) {
  const at::NoGradGuard no_gradient;
  meeting_->wait();
  if (to.empty())
    pack_first(live, to, copies_[static_cast<size_t>(copy)]);
  else
    pack_again(live, to);
  meeting_->wait();
}

// Part 0 is outside of the layers. Every rank packs all of it once, a part at a time, to see what it takes.
void CommonCopies::pack_first(const models::Weights& live, models::PackedWeights& to,
                              const std::shared_ptr<std::byte>& memory) const {
  int64_t next = 0;
  const auto placed = [&](const at::Tensor& tensor, bool with_values) {
    const auto size = static_cast<int64_t>(tensor.nbytes());
    SLUICE_CHECK(next + size <= bytes_, "packed weights of " + model_ + " are larger than they were to be");
    at::Tensor there = at::from_blob(
        memory.get() + next, tensor.sizes(), [memory](void*) {}, tensor.options());
    next += on_line(size);
    if (with_values) there.copy_(tensor);
    return there;
  };
  for (size_t layer = 0; layer < live.layers.size(); ++layer) {
    to.pack_layer(live, layer);
    const bool mine = is_mine(static_cast<int64_t>(layer) + 1);
    to.place_layer(layer, [&](const at::Tensor& tensor) { return placed(tensor, mine); });
  }
  to.pack_outside_layers(live);
  to.place_outside_layers([&](const at::Tensor& tensor) { return placed(tensor, is_mine(0)); });
}

void CommonCopies::pack_again(const models::Weights& live, models::PackedWeights& to) const {
  if (is_mine(0)) to.pack_outside_layers(live);
  for (size_t layer = 0; layer < live.layers.size(); ++layer)
    if (is_mine(static_cast<int64_t>(layer) + 1)) to.pack_layer(live, layer);
}

}  // namespace sluice::nodes
