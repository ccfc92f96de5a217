#include "models/sample/scheduler.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "base/error.h"

namespace sluice::models {

Scheduler::Scheduler(const GenerationLimits& limits)
    : limits_(limits), pool_(limits.kv_blocks), index_(limits.kv_blocks, limits.kv_block_size) {
  running_.reserve(static_cast<size_t>(limits.max_running_samples));
  copies_.reserve(static_cast<size_t>(limits.max_running_samples));
}

// The last sampled token is never read, so it needs no room.
int64_t Scheduler::worst_blocks(const SampleRequest& request) const {
  return blocks_for(request.prompt.size() + request.max_new_tokens - 1);
}

Sample& Scheduler::submit(SampleRequest request) {
  auto sample = std::make_unique<Sample>(Sample{.request = std::move(request), .age = ++last_age_});
  sample->result.id = sample->request.id;
  sample->to_read = sample->prompt();
  waiting_.push_back(std::move(sample));
  return *waiting_.back();
}

void Scheduler::plan() {
  work_ = {};
  copies_.clear();
  for (const Owned& sample : running_) catch_up(*sample);
  admit();
  share_out();
  draft();
  take_blocks();
  number_rows();
  work_.preemptions = std::exchange(preempted_, 0);
}

void Scheduler::admit() {
  while (!waiting_.empty()) {
    Sample& sample = *waiting_.front();
    if (full() && !displace_paused(sample)) return;
    start(sample);
    while (!has_room(sample) && displace_paused(sample)) {
    }
    if (!has_room(sample)) return reset(sample);  // in order: nobody overtakes a long sample
    work_.reused_tokens += sample.cached;
    const auto place = std::ranges::upper_bound(running_, sample.age, {}, [](const Owned& other) { return other->age; });
    running_.insert(place, std::move(waiting_.front()));
    waiting_.pop_front();
  }
}

// The blocks that it may still take until it has to ask again: until its end, or until what it has to read is read. Those that it
// will get from its leader are not among them, but for one that is copied because its last token has to be read again.
int64_t Scheduler::missing_blocks(const Sample& sample) const {
  const bool worst = limits_.admission == KvAdmission::kWorstCase;
  const auto held = static_cast<int64_t>(sample.blocks.size());
  const int64_t shared = (sample.forks ? sample.common : std::min(sample.common, sample.size() - 1)) / limits_.kv_block_size;
  const int64_t expected = sample.leader == 0 ? 0 : std::max<int64_t>(0, shared - held);
  return (worst ? worst_blocks(sample.request) : blocks_for(sample.size())) - held - expected + (sample.borrows ? 1 : 0);
}

// On demand, one block for each that runs: else a sample would start only to be preempted, or to have another preempted, in the
// next step.
bool Scheduler::has_room(const Sample& sample) const {
  int64_t missing = missing_blocks(sample);
  for (const Owned& other : running_) missing += missing_blocks(*other);
  if (limits_.admission == KvAdmission::kOnDemand) missing += static_cast<int64_t>(running_.size());
  return missing <= pool_.free();
}

// A paused sample keeps its place and its blocks unless an older one needs them.
bool Scheduler::displace_paused(const Sample& older) {
  const auto youngest = std::find_if(running_.rbegin(), running_.rend(), [](const Owned& sample) { return sample->paused; });
  if (youngest == running_.rend() || (*youngest)->age < older.age) return false;
  give_up(std::prev(youngest.base()));
  return true;
}

// A run of tokens that is read at once lies in the prompt or after it.
void Scheduler::share_out() {
  int64_t left = limits_.max_step_tokens;
  for (const Owned& sample : running_) {
    sample->scheduled = sample->decoding() && !sample->paused ? 1 : 0;
    left -= sample->scheduled;
  }
  for (const Owned& sample : running_) {
    if (sample->decoding() || sample->paused || sample->leader != 0) continue;
    const int64_t end = sample->cached < sample->prompt() ? sample->prompt() : sample->size();
    sample->scheduled = std::min(end - sample->cached, left);
    left -= sample->scheduled;
  }
}

// At most so many that the last of them is not the sample's last token, which need not be guessed: it is sampled after them.
void Scheduler::draft() {
  int64_t decoding = 0, computed = 0;
  for (const Owned& sample : running_) {
    sample->drafts.clear();
    computed += sample->scheduled;
    decoding += sample->scheduled == 1 && sample->decoding() ? 1 : 0;
  }
  if (!may_draft(decoding, computed)) return;
  int64_t left = limits_.max_step_tokens - computed;
  const int64_t longest = limits_.drafts.by_model ? agreement_.next(limits_.drafts.tokens, decoding) : limits_.drafts.tokens;
  for (const Owned& sample : running_) {
    if (sample->scheduled != 1 || !sample->decoding()) continue;
    const int64_t share = left / decoding--;  // of those that come; what one leaves the others have
    const int64_t end = sample->request.max_new_tokens - static_cast<int64_t>(sample->result.tokens.size()) - 1;
    ++work_.guessed_steps;
    if (const int64_t most = std::min({longest, share, end}); most > 0) draft(*sample, most);
    left -= std::ssize(sample->drafts);
    work_.drafted_tokens += std::ssize(sample->drafts);
  }
}

void Scheduler::draft(Sample& sample, int64_t most) {
  if (limits_.drafts.by_model) {
    sample.drafts.assign(static_cast<size_t>(most), 0);
  } else if (const int64_t wanted = sample.draft_length.next(most); wanted > 0) {
    draft_by_ngram(sample.request.prompt.ids(), sample.result.tokens, wanted, sample.drafts);
  }
}

bool Scheduler::may_draft(int64_t decoding, int64_t computed) const {
  if (limits_.drafts.tokens == 0 || decoding == 0 || limits_.admission == KvAdmission::kOnDemand) return false;
  return limits_.drafts.samples == 0 || (decoding <= limits_.drafts.samples && computed == decoding);
}

void Scheduler::take_blocks() {
  for (size_t i = 0; i < running_.size(); ++i) {
    Sample& sample = *running_[i];
    if (sample.scheduled == 0) continue;
    const int64_t count = blocks_for(sample.cached + sample.scheduled + std::ssize(sample.drafts));
    const auto missing = [&] { return count - static_cast<int64_t>(sample.blocks.size()) + (sample.borrows ? 1 : 0); };
    while (i + 1 < running_.size() && missing() > pool_.free()) give_up_youngest();
    if (missing() > pool_.free()) return give_up_youngest();  // itself
    if (sample.borrows) own_last_block(sample);
    const size_t held = sample.blocks.size();
    pool_.extend(sample.blocks, count);
    for (size_t block = held; block < sample.blocks.size(); ++block) index_.forget(sample.blocks[block]);
  }
}

void Scheduler::own_last_block(Sample& sample) {
  sample.borrows = false;
  const int32_t borrowed = sample.blocks.back();
  if (pool_.references(borrowed) == 1) return;
  const int32_t own = pool_.take();
  index_.forget(own);
  copies_.push_back({borrowed, own});
  pool_.release(borrowed);
  sample.blocks.back() = own;
}

void Scheduler::number_rows() {
  int64_t rows = 0;
  for (const Owned& sample : running_) {
    const bool whole = sample->scheduled > 0 && sample->cached + sample->scheduled == sample->size();
    sample->row = whole ? rows : -1;
    if (whole) rows += 1 + std::ssize(sample->drafts);
    if (!sample->decoding()) work_.prompt_tokens += sample->scheduled;
  }
}

std::span<const int64_t> Scheduler::next_tokens(const Sample& sample) {
  const int64_t prompt = sample.prompt(), from = sample.cached;
  const auto count = static_cast<size_t>(sample.scheduled);
  if (from < prompt) return sample.request.prompt.ids().subspan(static_cast<size_t>(from), count);
  return std::span<const int64_t>(sample.result.tokens).subspan(static_cast<size_t>(from - prompt), count);
}

void Scheduler::advance() {
  for (const Owned& sample : running_) {
    sample->cached += sample->scheduled;
    if (sample->scheduled > 0) index_prompt(*sample);
  }
  for (const Owned& sample : running_) {
    if (sample->leader == 0 || !sample->forks) continue;
    const Sample* leader = running_of_age(sample->leader);
    if (leader != nullptr && leader->row >= 0) fork(*leader, *sample);
  }
}

void Scheduler::keep_drafts(Sample& sample, int64_t right) {
  if (limits_.drafts.by_model)
    agreement_.learn(std::ssize(sample.drafts), right);
  else
    sample.draft_length.learn(std::ssize(sample.drafts), right);
  sample.cached += right;
  sample.drafted = std::min(sample.drafted, sample.cached);
  work_.kept_drafts += right;
  sample.drafts.clear();
}

Sample* Scheduler::find(uint64_t id) const {
  const auto has_id = [&](const Owned& sample) { return sample->request.id == id; };
  if (const auto found = std::ranges::find_if(running_, has_id); found != running_.end()) return found->get();
  if (const auto found = std::ranges::find_if(parked_, has_id); found != parked_.end()) return found->get();
  const auto found = std::ranges::find_if(waiting_, has_id);
  return found == waiting_.end() ? nullptr : found->get();
}

void Scheduler::resume(Sample& sample, std::span<const int64_t> tokens) {
  sample.paused = false;
  if (!tokens.empty()) {
    sample.result.tokens.insert(sample.result.tokens.end(), tokens.begin(), tokens.end());
    sample.to_read = sample.size();
  }
  if (!sample.held) unpark(sample);
}

void Scheduler::finish(Sample& sample) {
  sample.done = true;
  reset(sample);
  inherit();
}

void Scheduler::drop_done() {
  const auto done = [](const Owned& sample) { return sample->done; };
  std::erase_if(running_, done);
  std::erase_if(parked_, done);
}

Sample& Scheduler::known(uint64_t id) const {
  Sample* const sample = find(id);
  SLUICE_CHECK(sample != nullptr, "there is no sample " + std::to_string(id));
  return *sample;
}

void Scheduler::preempt(uint64_t id) {
  Sample& sample = known(id);
  SLUICE_CHECK(!sample.held, "sample " + std::to_string(id) + " was preempted twice");
  sample.held = true;
  const auto is_it = [&](const Owned& other) { return other.get() == &sample; };
  if (const auto found = std::ranges::find_if(running_, is_it); found != running_.end()) return give_up(found);
  const auto found = std::ranges::find_if(waiting_, is_it);
  if (found == waiting_.end()) return;
  parked_.push_back(std::move(*found));
  waiting_.erase(found);
}

void Scheduler::restart(uint64_t id) {
  Sample& sample = known(id);
  SLUICE_CHECK(sample.held, "sample " + std::to_string(id) + " was not preempted");
  sample.held = false;
  if (!sample.paused) unpark(sample);
}

void Scheduler::give_up_youngest() { give_up(std::prev(running_.end())); }

void Scheduler::give_up(std::vector<Owned>::iterator running) {
  Owned sample = std::move(*running);
  running_.erase(running);
  if (!sample->blocks.empty()) ++preempted_;
  reset(*sample);
  inherit();
  if (sample->paused || sample->held) {
    parked_.push_back(std::move(sample));
  } else {
    wait(std::move(sample));
  }
}

void Scheduler::wait(Owned sample) {
  const auto place = std::ranges::upper_bound(waiting_, sample->age, {}, [](const Owned& other) { return other->age; });
  waiting_.insert(place, std::move(sample));
}

void Scheduler::unpark(const Sample& sample) {
  const auto parked = std::ranges::find(parked_, sample.age, [](const Owned& other) { return other->age; });
  if (parked == parked_.end()) return;
  wait(std::move(*parked));
  parked_.erase(parked);
}

// As before it started, but for what it has sampled and was given.
void Scheduler::reset(Sample& sample) {
  pool_.release(sample.blocks);
  sample.cached = sample.scheduled = sample.indexed = sample.common = sample.drafted = 0;
  sample.to_read = sample.size();
  sample.row = -1;
  sample.borrows = sample.forks = false;
  sample.leader = 0;
  sample.piece = PrefixIndex::kRoot;
}

// A block whose owner went while several had borrowed it gets another owner.
void Scheduler::inherit() {
  for (const Owned& sample : running_) {
    if (!sample->borrows) continue;
    const auto shares = [&](const Owned& other) { return other->borrows && other->blocks.back() == sample->blocks.back(); };
    sample->borrows = std::ranges::count_if(running_, shares) < pool_.references(sample->blocks.back());
  }
}

void Scheduler::clear() {
  for (const Owned& sample : running_) pool_.release(sample->blocks);
  running_.clear();
  waiting_.clear();
  parked_.clear();
  forget_prefixes();
}

void Scheduler::forget_prefixes() {
  for (int32_t block = 0; block < pool_.blocks(); ++block) {
    if (!index_.holds(block)) continue;
    index_.forget(block);
    pool_.forget(block);
  }
}

}  // namespace sluice::models
