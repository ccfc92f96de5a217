// What samples with the same prefix do for each other: the part of Scheduler that finds, waits for and shares their blocks.

#include <algorithm>

#include "models/sample/scheduler.h"

namespace sluice::models {

void Scheduler::start(Sample& sample) {
  sample.blocks.reserve(static_cast<size_t>(worst_blocks(sample.request)));
  sample.result.tokens.reserve(static_cast<size_t>(sample.request.max_new_tokens));
  sample.result.logprobs.reserve(static_cast<size_t>(sample.request.max_new_tokens));
  sample.drafts.reserve(static_cast<size_t>(limits_.drafts.tokens));
  match(sample);
  find_leader(sample);
}

// A sample that waits for its leader takes what that has read when it has, or looks for another when that is gone.
void Scheduler::catch_up(Sample& sample) {
  if (sample.leader == 0) return;
  const Sample* leader = running_of_age(sample.leader);
  if (leader != nullptr && leader->cached < std::min(sample.common, leader->prompt())) return;
  sample.leader = 0;
  sample.forks = false;
  const int64_t had = sample.cached;
  match(sample);
  work_.reused_tokens += sample.cached - had;
  find_leader(sample);
}

// Takes what the index has after the blocks that the sample holds, which are whole ones of its prompt. One token at least is
// left to be read: nothing could be sampled otherwise.
void Scheduler::match(Sample& sample) {
  const std::span<const int64_t> prompt = sample.request.prompt.ids();
  const int64_t size = limits_.kv_block_size;
  bool shared = false;
  int64_t end = sample.cached;
  while (end < sample.prompt()) {
    const int64_t count = std::min(size, sample.prompt() - end);
    const auto piece = index_.find(sample.piece, prompt.subspan(static_cast<size_t>(end), static_cast<size_t>(count)));
    if (!piece) break;
    pool_.share(piece->block);
    shared = pool_.references(piece->block) > 1;
    sample.blocks.push_back(piece->block);
    sample.piece = piece->number;
    end += count;
  }
  sample.cached = std::min(end, sample.size() - 1);
  sample.indexed = static_cast<int64_t>(sample.blocks.size());
  sample.borrows = shared && sample.cached < sample.indexed * size;
}

// The older sample that is reading most of what this one has to read. Of the same prompt that is all of it; of another's, whole
// blocks.
void Scheduler::find_leader(Sample& sample) {
  if (static_cast<int64_t>(sample.blocks.size()) * limits_.kv_block_size >= sample.prompt()) return;
  int64_t most = sample.cached;
  for (const Owned& other : running_) {
    if (other->age >= sample.age) return;
    if (other->cached >= other->prompt()) continue;
    int64_t common = common_prefix(*other, sample);
    if (common < sample.prompt() || common < other->prompt()) common -= common % limits_.kv_block_size;
    if (common <= most) continue;
    sample.leader = other->age;
    sample.common = most = common;
    sample.forks = common == other->size() && common == sample.size();
  }
}

int64_t Scheduler::common_prefix(const Sample& a, const Sample& b) const {
  if (a.request.prompt.same_object(b.request.prompt)) return a.prompt();
  const std::span<const int64_t> x = a.request.prompt.ids(), y = b.request.prompt.ids();
  return std::ranges::mismatch(x, y).in1 - x.begin();
}

// Where another sample has indexed the same piece first, its block stays the one that is found.
void Scheduler::index_prompt(Sample& sample) {
  const std::span<const int64_t> prompt = sample.request.prompt.ids();
  const int64_t size = limits_.kv_block_size, read = std::min(sample.cached, sample.prompt());
  for (; sample.indexed * size < sample.prompt(); ++sample.indexed) {
    const int64_t begin = sample.indexed * size, count = std::min(size, sample.prompt() - begin);
    if (begin + count > read) return;
    const auto tokens = prompt.subspan(static_cast<size_t>(begin), static_cast<size_t>(count));
    auto piece = index_.find(sample.piece, tokens);
    if (!piece) {
      const int32_t block = sample.blocks[static_cast<size_t>(sample.indexed)];
      piece = index_.insert(sample.piece, tokens, block);
      pool_.keep(block);
    }
    sample.piece = piece->number;
  }
}

// The follower goes on where the leader is: after the last token of the prompt of both.
void Scheduler::fork(const Sample& leader, Sample& follower) {
  pool_.release(follower.blocks);
  for (const int32_t block : leader.blocks) {
    pool_.share(block);
    follower.blocks.push_back(block);
  }
  work_.reused_tokens += leader.cached - follower.cached;
  follower.cached = leader.cached;
  follower.indexed = static_cast<int64_t>(follower.blocks.size());
  follower.borrows = follower.cached % limits_.kv_block_size != 0;
  follower.leader = 0;
  follower.forks = false;
  follower.row = leader.row;
}

const Sample* Scheduler::running_of_age(uint64_t age) const {
  const auto found = std::ranges::lower_bound(running_, age, {}, [](const Owned& sample) { return sample->age; });
  return found != running_.end() && (*found)->age == age ? found->get() : nullptr;
}

}  // namespace sluice::models
