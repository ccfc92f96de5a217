#include "nodes/models/sampling/sampling_lead.h"

#include <ATen/ops/from_blob.h>

#include <utility>

#include "nodes/models/sampling/sampled_weights.h"

namespace sluice::nodes {

class SamplingLead::Steps final : public models::SharedSteps {
 public:
  Steps(SamplingLead& lead, int64_t generation) : lead_(lead), generation_(generation) {}

  models::ColumnShare share() const override {
    models::ColumnShare share = lead_.sampled_.share();
    share.exchange = &lead_.exchange_;
    return share;
  }

  void open(models::Precision precision, int64_t block_size, int64_t blocks) override {
    const std::lock_guard lock(lead_.mutex_);
    lead_.tell({.kind = SamplingCommand::Kind::kOpen,
                .generation = generation_,
                .precision = precision,
                .block_size = block_size,
                .blocks = blocks});
  }

  void copy_block(int32_t from, int32_t to) override {
    const std::lock_guard lock(lead_.mutex_);
    lead_.tell({.kind = SamplingCommand::Kind::kCopyBlock, .generation = generation_, .from = from, .to = to});
  }

  std::unique_lock<std::mutex> begin(const models::PackedWeights& weights,
                                     std::span<const models::DecodeSequence> sequences) override {
    std::unique_lock lock(lead_.mutex_);
    lead_.tell({.kind = SamplingCommand::Kind::kStep, .generation = generation_, .version = lead_.sampled_.version_of(weights)},
               numbers_of(sequences));
    return lock;
  }

 private:
  SamplingLead& lead_;
  const int64_t generation_;
};

SamplingLead::SamplingLead(engine::PassGroup& group, const SampledWeights& sampled)
    : group_(group), sampled_(sampled), exchange_(group) {}

std::shared_ptr<models::SharedSteps> SamplingLead::steps() {
  const std::lock_guard lock(mutex_);
  return std::make_shared<Steps>(*this, generations_++);
}

void SamplingLead::dismiss() {
  {
    const std::lock_guard lock(mutex_);
    tell({.kind = SamplingCommand::Kind::kEnd});
  }
  group_.flush();
}

void SamplingLead::tell(const SamplingCommand& command) {
  const std::string text = command.to_text();
  for (int place = 1; place < group_.size(); ++place) group_.send(place, text, {});
}

void SamplingLead::tell(const SamplingCommand& command, const std::vector<int64_t>& numbers) {
  SamplingCommand with_count = command;
  with_count.numbers = std::ssize(numbers);
  tell(with_count);
  const at::Tensor all = at::from_blob(const_cast<int64_t*>(numbers.data()), {std::ssize(numbers)}, at::TensorOptions(at::kLong));
  for (int place = 1; place < group_.size(); ++place) group_.send(place, {}, {column_of(all)});
}

}  // namespace sluice::nodes
