#include "nodes/models/sampling/sampling_assistant.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/from_blob.h>

#include "base/error.h"

namespace sluice::nodes {
namespace {

constexpr int kLeadsSampling = 0;  // the place of the rank that does

}  // namespace

SamplingAssistant::SamplingAssistant(engine::PassGroup& group, const SampledWeights& sampled)
    : group_(group), sampled_(sampled), exchange_(group) {}

void SamplingAssistant::assist() {
  const at::NoGradGuard no_gradient;
  while (obey(SamplingCommand::from_text(group_.receive(kLeadsSampling, 0).text))) {
  }
}

bool SamplingAssistant::obey(const SamplingCommand& command) {
  using Kind = SamplingCommand::Kind;
  switch (command.kind) {
    case Kind::kOpen:
      open(command);
      return true;
    case Kind::kCopyBlock:
      copy_block(command);
      return true;
    case Kind::kStep:
      step(command);
      return true;
    case Kind::kEnd:
      return false;
  }
  throw InternalError("a command that nobody gives who samples");
}

void SamplingAssistant::open(const SamplingCommand& command) {
  models::ColumnShare share = sampled_.share();
  share.exchange = &exchange_;
  Part& part = parts_.try_emplace(command.generation, Part{{}, models::Decoder(sampled_.config(), share)}).first->second;
  if (!share.has_columns()) return;
  part.cache.emplace(models::heads_of(sampled_.config(), share.ranks), command.block_size, command.blocks, command.precision);
}

void SamplingAssistant::copy_block(const SamplingCommand& command) {
  std::optional<models::KvCache>& cache = parts_.at(command.generation).cache;
  if (cache) cache->copy_block(command.from, command.to);
}

void SamplingAssistant::step(const SamplingCommand& command) {
  numbers_.resize(static_cast<size_t>(command.numbers));
  const at::Tensor all = at::from_blob(numbers_.data(), {command.numbers}, at::TensorOptions(at::kLong));
  const auto come = group_.receive(kLeadsSampling, static_cast<int64_t>(all.nbytes())).columns;
  SLUICE_CHECK(come.size() == 1, "a step without its sequences");
  copy_column(come.front(), all);
  Part& part = parts_.at(command.generation);
  const models::PackedWeights& weights = sampled_.wait_for(command.version);
  const std::vector<models::DecodeSequence> sequences = sequences_of(numbers_, blocks_);
  if (part.cache)
    part.decoder.step(weights, *part.cache, sequences);
  else
    part.decoder.assist(weights, sequences);
}

}  // namespace sluice::nodes
