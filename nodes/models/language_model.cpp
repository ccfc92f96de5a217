#include "nodes/models/language_model.h"

#include <exception>
#include <functional>
#include <future>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "engine/schedule/state/failure.h"
#include "models/kernels/parallel.h"
#include "nodes/models/pass_assistant.h"
#include "nodes/models/passes/threads.h"
#include "nodes/models/sampling/sampling_assistant.h"

namespace sluice::nodes {
namespace {

int64_t weight_bytes(const models::Transformer& transformer) {
  int64_t bytes = 0;
  for (const auto& [name, tensor] : transformer.weights().named()) bytes += static_cast<int64_t>(tensor.nbytes());
  return bytes;
}

// A model without a language model head is not sampled from.
int64_t readable_versions(const models::Transformer& transformer, engine::ModelVersions versions) {
  return transformer.weights().head.defined() ? versions.readable : 0;
}

std::optional<CommonCopies> copies_in(const InCommon* common, const std::string& model) {
  if (common == nullptr || !common->has_copies) return std::nullopt;
  return CommonCopies(model, common->memory);
}

std::string saves_of(const std::string& model) { return model + "/saved"; }
std::string versions_of(const std::string& model) { return model + "/versions"; }

void keep(const std::exception_ptr& error, engine::FailureSlot& failure) {
  try {
    std::rethrow_exception(error);
  } catch (...) {
    failure.capture();
  }
}

int64_t bytes_of_others(const InCommon* common) { return common == nullptr ? 0 : common->bytes_of_others; }

}  // namespace

LanguageModel::LanguageModel(const std::string& name, const std::filesystem::path& folder, const models::Transformer& transformer,
                             engine::ModelVersions versions, LiveBytes live_bytes, const InCommon* common,
                             const models::ColumnShare& share)
    : text_(name, folder),
      forward_(name, transformer),
      sampled_(forward_.transformer().config(), forward_.transformer().compute().precision, forward_.transformer().device(),
               readable_versions(forward_.transformer(), versions), copies_in(common, name), share),
      live_bytes_(live_bytes) {
  sampled_.take(0, forward_.transformer().weights());
}

LanguageModel::LanguageModel(const std::string& name, const std::filesystem::path& folder, models::PackedModel&& packed,
                             at::Device device)
    : text_(name, folder),
      forward_(name, models::Transformer(packed.config, device.is_cpu() ? packed.weights.for_passes() : models::Weights(),
                                         {.precision = packed.weights.precision()})),
      sampled_(packed.config, packed.weights.precision(), device, 1),
      live_bytes_{packed.weights.shared_bytes()} {
  sampled_.begin_with(std::move(packed.weights));
}

LanguageModel::LanguageModel(const std::string& name, const std::filesystem::path& folder, const models::ModelConfig& config,
                             models::Precision precision)
    : text_(name, folder),
      forward_(name, models::Transformer(config, models::Weights(), {.precision = precision})),
      sampled_(config, precision, at::kCPU, 0) {}

engine::PassGroup& LanguageModel::sampling_group() const { return groups_->of(name() + "/sampled", sampled_.share().places()); }

void LanguageModel::share_passes(engine::PassGroups& groups) {
  groups_ = &groups;
  engine::PassGroup& passes = groups.of(name());
  if (passes.place() != 0) return;
  const at::Tensor& live = forward_.transformer().weights().final_norm;  // undefined: it is only sampled from
  const bool on_host = !live.defined() || live.is_cpu();
  forward_.set_lead(std::make_unique<PassLead>(passes, trained_part() != nullptr ? &groups.of(saves_of(name())) : nullptr,
                                               on_host ? nullptr : &groups.backward_on(live.device().str())));
  if (!sampled_.share().is_whole()) sampled_.set_lead(std::make_unique<SamplingLead>(sampling_group(), sampled_));
  if (ReceivedWeights* const received = received_part()) {
    versions_lead_ = std::make_unique<VersionsLead>(groups.of(versions_of(name())));
    received->set_lead(versions_lead_.get());
  }
}

void LanguageModel::forward_passes(const engine::ModelUsage& usage) {
  groups_ = usage.passes;
  const bool asks = usage.forwarding == engine::Forwarding::kAsks;
  std::vector<engine::PassGroup*> groups;
  for (const int peer : usage.peers) {
    const int own = usage.own_rank;
    groups.push_back(&groups_->between(name(), asks ? own : peer, asks ? peer : own));
  }
  if (asks)
    forward_.set_asked(std::make_unique<AskedPasses>(std::move(groups)));
  else
    asking_ = std::move(groups);
}

void LanguageModel::assist(FileSystem& files) {
  SLUICE_CHECK(groups_ != nullptr, "nobody shares passes of model " + name());
  if (asking_.empty())
    assist_lead(files);
  else
    answer_others();
}

// Each on a thread of its own. One that fails has the others end, which may wait for ranks that wait for it.
void LanguageModel::answer_others() {
  engine::FirstFailure failure;
  {
    std::vector<std::jthread> threads;
    for (engine::PassGroup* const group : asking_) {
      threads.emplace_back([&, group, loop_threads = models::loop_threads()] {
        use_threads(loop_threads);
        try {
          answer_passes(*group, forward_.transformer(), groups_->answering());
        } catch (...) {
          failure.capture();
          groups_->abandon();
        }
      });
    }
  }
  failure.rethrow();
}

// What is saved is written while passes go on, and so are steps of generations made. A thread that fails has the others end,
// which may wait for ranks that wait for it.
void LanguageModel::assist_lead(FileSystem& files) {
  TrainedModel* const trained = trained_part();
  const auto failure = std::make_shared<engine::FailureSlot>();
  const auto all_end = [this, failure](const std::exception_ptr& why) {
    keep(why, *failure);
    groups_->abandon();
    sampled_.give_up();
  };
  const auto or_all_end = [&](const std::function<void()>& what) {
    try {
      what();
    } catch (...) {
      all_end(std::current_exception());
    }
  };
  {
    std::vector<std::jthread> threads;
    const auto beside = [&](std::function<void()> what) {
      threads.emplace_back([&or_all_end, what = std::move(what)] { or_all_end(what); });
    };
    if (trained != nullptr)
      beside([&, trained] { assist_saves(groups_->of(saves_of(name())), *trained, text_.folder(), files); });
    if (!sampled_.share().is_whole()) {
      beside([&, loop_threads = models::loop_threads()] {
        use_threads(loop_threads);
        SamplingAssistant(sampling_group(), sampled_).assist();
      });
    }
    if (ReceivedWeights* const received = received_part()) {
      // A version that cannot be had may be told of when nobody assists any more.
      const auto told = [all_end](const engine::ReceivedVersion& of) {
        if (of.failure) all_end(of.failure);
      };
      beside([this, received, told] { follow_versions(groups_->of(versions_of(name())), *received, told); });
    }
    or_all_end([&] { PassAssistant(groups_->of(name()), forward_, trained).assist_passes(); });
  }
  failure->rethrow();
}

void LanguageModel::dismiss() {
  if (AskedPasses* const asked = forward_.asked()) asked->dismiss();
  if (PassLead* const lead = forward_.lead()) lead->dismiss();
  if (SamplingLead* const lead = sampled_.lead()) lead->dismiss();
  if (versions_lead_) versions_lead_->dismiss();
}

engine::ModelBytes LanguageModel::bytes() const {
  return {.weights = live_bytes_.own + sampled_.bytes(), .of_others = live_bytes_.of_others + sampled_.bytes_of_others()};
}

FrozenLanguageModel::FrozenLanguageModel(const std::string& name, const std::filesystem::path& folder,
                                         const models::Transformer& transformer, engine::ModelVersions versions, Weights weights,
                                         const InCommon* common, const models::ColumnShare& share)
    : LanguageModel(name, folder, transformer, versions,
                    weights == Weights::kOwn
                        ? LiveBytes{weight_bytes(transformer) - bytes_of_others(common), bytes_of_others(common)}
                        : LiveBytes(),
                    common, share) {}

FrozenLanguageModel::FrozenLanguageModel(const std::string& name, const std::filesystem::path& folder,
                                         models::PackedModel&& packed, at::Device device)
    : LanguageModel(name, folder, std::move(packed), device) {}

FrozenLanguageModel::FrozenLanguageModel(const std::string& name, const std::filesystem::path& folder,
                                         const models::ModelConfig& config, models::Precision precision)
    : LanguageModel(name, folder, config, precision) {}

void FrozenLanguageModel::refuse() const { throw InternalError("a frozen model has nothing to save: " + name()); }

ReceivedLanguageModel::ReceivedLanguageModel(const std::filesystem::path& folder, const models::Transformer& transformer,
                                             WireLayout layout, LandedModel landed, const engine::ModelUsage& usage,
                                             const InCommon* common, const models::ColumnShare& share)
    : LanguageModel(usage.name, folder, transformer, usage.versions,
                    {weight_bytes(transformer) - landed.bytes_of_others, landed.bytes_of_others}, common, share),
      received_(usage.name, std::move(layout), std::move(landed), publication_ranks(usage), *usage.publications, sampled_) {}

void ReceivedLanguageModel::receive_version(int64_t version, engine::VersionReceived done) {
  if (versions_lead_) versions_lead_->receive(version);
  received_.receive(version, std::move(done));
}

void ReceivedLanguageModel::restore(const std::filesystem::path&, engine::VersionRange versions) {
  std::promise<void> come;
  received_.restart(versions.oldest);
  for (int64_t version = versions.oldest; version <= versions.newest; ++version) {
    received_.receive(version, [&come, is_last = version == versions.newest](const engine::ReceivedVersion& of) {
      if (of.failure)
        come.set_exception(of.failure);
      else if (is_last)
        come.set_value();
    });
  }
  come.get_future().get();
}

void ReceivedLanguageModel::refuse() const { throw InternalError("other ranks save what is trained of model " + name()); }

TrainedLanguageModel::TrainedLanguageModel(const std::string& name, const std::filesystem::path& folder,
                                           const models::Transformer& transformer, const Training& training,
                                           engine::ModelVersions versions, std::unique_ptr<WeightPublisher> publisher,
                                           const InCommon* common, const models::ColumnShare& share)
    : LanguageModel(name, folder, transformer, versions,
                    {weight_bytes(transformer) - bytes_of_others(common), bytes_of_others(common)}, common, share),
      publisher_(publisher ? std::move(publisher)
                           : std::make_unique<LocalPublisher>(forward().transformer().weights(), sampled_)),
      trained_(forward(), training, versions, *publisher_) {
  sampled_.be_trained_by(trained_.optimizer(), forward().transformer().weights());
}

engine::ModelBytes TrainedLanguageModel::bytes() const {
  engine::ModelBytes bytes = trained_.bytes();
  const engine::ModelBytes of_weights = LanguageModel::bytes();
  bytes.weights = of_weights.weights;
  bytes.of_others += of_weights.of_others;
  return bytes;
}

}  // namespace sluice::nodes
