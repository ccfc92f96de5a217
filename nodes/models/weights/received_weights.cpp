#include "nodes/models/weights/received_weights.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "base/error.h"
#include "nodes/models/passes/threads.h"

namespace sluice::nodes {
namespace {

// The values of `live` in the tensors of `views`, which then stand for it.
models::Weights moved(const models::Weights& live, const std::vector<std::pair<std::string, at::Tensor>>& views) {
  const at::NoGradGuard no_gradient;
  const auto named = live.named();
  for (const auto& [name, view] : views) {
    const auto found = std::ranges::find(named, name, &std::pair<std::string, at::Tensor>::first);
    SLUICE_CHECK(found != named.end(), name);
    at::Tensor(view).copy_(found->second);
  }
  return live.with(views);
}

}  // namespace

LandedModel landed_model(const std::string& model, const WireLayout& layout, const models::Weights& live,
                         const PublicationRanks& ranks, engine::Publications& publications) {
  const auto publication = publications.publication(publication_layout(model, layout, ranks, 0), {.landed = {}, .opened = {}});
  LandedModel landed{.landing = publication->new_landing(), .weights = {}};
  landed.weights = moved(live, layout.views(landed.landing->bytes().data()));  // all who have it write the same values
  const auto bytes = static_cast<int64_t>(landed.landing->bytes().size());
  landed.bytes_of_others = bytes - bytes / landed.landing->sharers();
  return landed;
}

ReceivedWeights::ReceivedWeights(std::string model, WireLayout layout, LandedModel landed, const PublicationRanks& ranks,
                                 engine::Publications& publications, SampledWeights& sampled)
    : model_(std::move(model)),
      layout_(std::move(layout)),
      ranks_(ranks),
      publications_(publications),
      sampled_(sampled),
      landed_model_(std::move(landed)),
      let_taken_(sampled.readable() - 1) {
  begin(1);
  packer_ = std::thread([this] { pack_what_lands(); });
}

// What comes from the publication uses all of this, but the packer.
ReceivedWeights::~ReceivedWeights() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  sampled_.give_up();
  packer_.join();
  publication_.reset();
}

void ReceivedWeights::begin(int64_t first_version) {
  publication_ = publications_.publication(publication_layout(model_, layout_, ranks_, first_version),
                                           {.landed = [this](int64_t version, uint32_t) { landed(version); },
                                            .opened = [this](const engine::PublishedVersion& of) { opened(of); }});
}

void ReceivedWeights::restart(int64_t first_version) {
  publication_.reset();
  sampled_.forget();
  {
    const std::lock_guard lock(mutex_);
    let_taken_ = first_version + sampled_.readable() - 1;
  }
  begin(first_version);
}

void ReceivedWeights::receive(int64_t version, engine::VersionReceived done) {
  const std::lock_guard lock(mutex_);
  to_tell_[version] = std::move(done);
  awaited_.push_back(version);
  grant_next();
}

void ReceivedWeights::grant_next() {
  if (landing_is_taken_ || awaited_.empty()) return;
  landing_is_taken_ = true;
  publication_->receive(awaited_.front(), landed_model_.landing);
  awaited_.pop_front();
}

void ReceivedWeights::let_take(int64_t version) {
  {
    const std::lock_guard lock(mutex_);
    let_taken_ = std::max(let_taken_, version);
  }
  changed_.notify_all();
}

void ReceivedWeights::landed(int64_t version) {
  {
    const std::lock_guard lock(mutex_);
    landed_.push_back(version);
  }
  changed_.notify_all();
}

void ReceivedWeights::opened(const engine::PublishedVersion& version) {
  {
    const std::lock_guard lock(mutex_);
    landing_is_taken_ = false;
    grant_next();
  }
  tell(version.version, {.published = version});
}

void ReceivedWeights::tell(int64_t version, const engine::ReceivedVersion& received) {
  engine::VersionReceived done;
  {
    const std::lock_guard lock(mutex_);
    if (auto told = to_tell_.extract(version)) done = std::move(told.mapped());
  }
  if (done) done(received);
}

bool ReceivedWeights::is_ending() {
  const std::lock_guard lock(mutex_);
  return ending_;
}

// False: who waits for the version knows why it cannot be had; at the end nobody does.
bool ReceivedWeights::take(int64_t version) {
  try {
    sampled_.take(version, landed_model_.weights);
    if (lead_ != nullptr) lead_->let_take(version);
    publication_->acknowledge(version);
    return true;
  } catch (...) {
    if (!is_ending()) tell(version, {.failure = std::current_exception()});
    return false;
  }
}

// What was never used is free.
bool ReceivedWeights::may_take(int64_t version) const { return sampled_.share().place == 0 || version <= let_taken_; }

// Waits for: a version to land, and its memory to be free. Ends when: the destructor is called, or a version cannot be packed.
void ReceivedWeights::pack_what_lands() {
  use_threads(1);
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return ending_ || (!landed_.empty() && may_take(landed_.front())); });
    if (ending_) return;
    const int64_t version = landed_.front();
    landed_.pop_front();
    lock.unlock();
    if (!take(version)) return;
    lock.lock();
  }
}

}  // namespace sluice::nodes
