#include "engine/ranks/mailed_reductions.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/numbers/bytes.h"
#include "engine/ranks/contribution_bytes.h"

namespace sluice::engine {
namespace {

// All go on one channel, so that a text is there before the numbers that come after it.
enum class Kind : uint8_t { kNumbers, kResult, kText, kCall };

void write_key(ByteWriter& bytes, const Reductions::Key& key) {
  bytes.number(key.iteration);
  bytes.number(int64_t{key.node});
  bytes.number(key.point);
}

Reductions::Key read_key(ByteReader& bytes) {
  Reductions::Key key;
  key.iteration = bytes.whole_number();
  key.node = static_cast<int>(bytes.whole_number());
  key.point = bytes.whole_number();
  return key;
}

template <class Sum>
std::string message_of(Kind kind, const Reductions::Key& key, const Sum& sum) {
  ByteWriter bytes;
  bytes.number(static_cast<uint8_t>(kind));
  write_key(bytes, key);
  bytes.number(sum.texts);
  write_contribution(bytes, sum.numbers);
  return bytes.take();
}

std::string text_of(const Reductions::Key& key) {
  return "point " + std::to_string(key.point) + " of node " + std::to_string(key.node) + " in iteration " +
         std::to_string(key.iteration);
}

}  // namespace

MailedReductions::MailedReductions(Mail& mail, Gradients gradients, int owners, int scheduling)
    : mail_(mail),
      world_{.rank = mail.world().rank, .size = scheduling > 0 ? scheduling : mail.world().size},
      owners_(owners > 0 ? owners : world_.size),
      tree_(owners_),
      gradients_(std::move(gradients)) {
  mail_.receive(Mail::Channel::kNumbers, [this](int from, const std::string& message) { receive(from, message); });
}

void MailedReductions::combine(const Key& key, Contribution mine, Done done) {
  SLUICE_CHECK(world().rank < owners_, "rank " + std::to_string(world().rank) + " has no slots, and adds numbers");
  Outgoing outgoing;
  {
    std::unique_lock lock(mutex_);
    if (is_over(key)) {
      lock.unlock();
      return done({});
    }
    Entry& entry = entries_[key];
    SLUICE_CHECK(!entry.own, "rank " + std::to_string(world().rank) + " has contributed twice to " + text_of(key));
    entry.own = Sum{std::move(mine), texts_.contains(key) ? texts_.extract(key).mapped() : 0};
    entry.done = std::move(done);
    advance(key, entry, outgoing);
  }
  send_all(std::move(outgoing));
}

void MailedReductions::send_all(Outgoing outgoing) {
  for (auto& [to, message] : outgoing.messages) mail_.send(to, Mail::Channel::kNumbers, std::move(message));
  if (outgoing.done) outgoing.done(std::move(outgoing.of_all));
}

void MailedReductions::send_to_others(const std::string& message) {
  for (int rank = 0; rank < owners_; ++rank) {
    if (rank != world().rank) mail_.send(rank, Mail::Channel::kNumbers, message);
  }
}

void MailedReductions::receive(int from, const std::string& message) {
  ByteReader bytes(message);
  const auto kind = static_cast<Kind>(bytes.number<uint8_t>());
  if (kind == Kind::kCall) return be_called();
  const Key key = read_key(bytes);
  if (kind == Kind::kText) return take_text(from, key, std::string(bytes.rest()));
  Sum sum;
  sum.texts = bytes.number<uint64_t>();
  sum.numbers = read_contribution(bytes);
  bytes.expect_end();
  if (kind == Kind::kResult) return take_result(key, std::move(sum));
  add(from, key, std::move(sum));
}

void MailedReductions::add(int from, const Key& key, Sum part) {
  Outgoing outgoing;
  {
    const std::lock_guard lock(mutex_);
    if (is_over(key)) return;
    Entry& entry = entries_[key];
    const bool is_new = entry.parts.emplace(from, std::move(part)).second;
    SLUICE_CHECK(is_new, "rank " + std::to_string(from) + " has contributed twice to " + text_of(key));
    advance(key, entry, outgoing);
  }
  send_all(std::move(outgoing));
}

void MailedReductions::take_result(const Key& key, Sum of_all) {
  Outgoing outgoing;
  {
    const std::lock_guard lock(mutex_);
    if (is_over(key)) return;
    entries_[key].of_all = std::move(of_all);
    finish_if_all_is_there(key, outgoing);
  }
  send_all(std::move(outgoing));
}

// As far as it gets with what has come. Where parts do not fit, what waits is left to abandon().
void MailedReductions::advance(const Key& key, Entry& entry, Outgoing& outgoing) {
  if (!entry.own) return;
  const int self = world().rank, highest = tree_.highest(self);
  try {
    while (entry.level < highest && collect(entry)) ++entry.level;
    if (entry.level < highest) return;
    if (!std::exchange(entry.is_sent, true)) {
      const std::string message = message_of(Kind::kNumbers, key, *entry.own);
      const int above = tree_.above(self);
      for (const int other : tree_.group(self, highest)) {
        if (above < 0 ? other != self : other == above) outgoing.messages.emplace_back(other, message);
      }
    }
    if (highest == tree_.top() && collect(entry)) {
      entry.of_all = std::move(entry.own);
      finish_if_all_is_there(key, outgoing);
    }
  } catch (...) {
    leave_to_abandon(key);
    throw;
  }
}

// Adds what all of the group at the entry's level have, where all has come.
bool MailedReductions::collect(Entry& entry) const {
  const std::vector<int> group = tree_.group(world().rank, entry.level);
  const auto is_there = [&](int rank) { return rank == world().rank || entry.parts.contains(rank); };
  if (!std::ranges::all_of(group, is_there)) return false;
  Sum all;
  for (const int rank : group) {
    Sum part = rank == world().rank ? std::move(*entry.own) : std::move(entry.parts.extract(rank).mapped());
    all.texts += part.texts;
    if (rank == group.front())
      all.numbers = std::move(part.numbers);
    else
      add_contribution(all.numbers, part.numbers);
  }
  entry.own = std::move(all);
  return true;
}

// Rank 0 waits for the texts too, which may come later.
void MailedReductions::finish_if_all_is_there(const Key& key, Outgoing& outgoing) {
  const auto found = entries_.find(key);
  if (found == entries_.end() || !found->second.of_all) return;
  const uint64_t texts = found->second.of_all->texts;
  if (world().rank == 0 && texts > 0 && given_[key].size() < texts) return;
  Entry complete = std::move(entries_.extract(found).mapped());
  const std::vector<int> below = tree_.below(world().rank);
  if (!below.empty()) {
    const std::string message = message_of(Kind::kResult, key, *complete.of_all);
    for (const int rank : below) outgoing.messages.emplace_back(rank, message);
  }
  outgoing.done = std::move(complete.done);
  outgoing.of_all = std::move(complete.of_all->numbers);
}

// The run fails by what is thrown, and then abandons.
void MailedReductions::leave_to_abandon(const Key& key) { stuck_.push_back(std::move(entries_.extract(key).mapped().done)); }

void MailedReductions::give(const Key& key, std::string text) {
  {
    const std::lock_guard lock(mutex_);
    if (is_over(key)) return;
    ++texts_[key];
  }
  ByteWriter bytes;
  bytes.number(static_cast<uint8_t>(Kind::kText));
  write_key(bytes, key);
  bytes.raw(text);
  mail_.send(0, Mail::Channel::kNumbers, bytes.take());
}

void MailedReductions::take_text(int from, const Key& key, std::string text) {
  Outgoing outgoing;
  {
    const std::lock_guard lock(mutex_);
    if (is_over(key)) return;
    given_[key][from] = std::move(text);
    finish_if_all_is_there(key, outgoing);
  }
  send_all(std::move(outgoing));
}

std::vector<std::string> MailedReductions::take_given(const Key& key) {
  std::map<int, std::string> given;
  {
    const std::lock_guard lock(mutex_);
    if (auto found = given_.extract(key)) given = std::move(found.mapped());
  }
  std::vector<std::string> texts;
  for (auto& [rank, text] : given) texts.push_back(std::move(text));
  return texts;
}

GradientGroup* MailedReductions::gradients(const std::string& model) {
  GradientGroup* const group = gradients_ ? gradients_(model) : nullptr;
  const std::lock_guard lock(mutex_);
  if (group != nullptr) groups_.insert(group);
  return group;
}

void MailedReductions::call() {
  ByteWriter bytes;
  bytes.number(static_cast<uint8_t>(Kind::kCall));
  send_to_others(bytes.take());
  be_called();
}

void MailedReductions::be_called() {
  std::function<void()> called;
  {
    const std::lock_guard lock(mutex_);
    called_ = true;
    called = on_call_;
  }
  if (called) called();
}

void MailedReductions::on_call(std::function<void()> called) {
  bool at_once = false;
  {
    const std::lock_guard lock(mutex_);
    on_call_ = called;
    at_once = called_;
  }
  if (at_once) called();
}

void MailedReductions::abandon_behind(int64_t iteration) {
  std::vector<Done> waiting;
  {
    const std::lock_guard lock(mutex_);
    last_ = iteration;
    for (auto& [key, entry] : entries_) {
      if (is_over(key) && entry.done) waiting.push_back(std::move(entry.done));
    }
    std::erase_if(entries_, [this](const auto& entry) { return is_over(entry.first); });
    std::erase_if(texts_, [this](const auto& texts) { return is_over(texts.first); });
    std::erase_if(given_, [this](const auto& given) { return is_over(given.first); });
  }
  for (const Done& done : waiting) done({});
}

void MailedReductions::abandon() {
  std::vector<Done> waiting;
  std::set<GradientGroup*> groups;
  {
    const std::lock_guard lock(mutex_);
    abandoned_ = true;
    groups = groups_;
    waiting.swap(stuck_);
    for (auto& [key, entry] : entries_) {
      if (entry.done) waiting.push_back(std::move(entry.done));
    }
    entries_.clear();
  }
  for (const Done& done : waiting) done({});
  for (GradientGroup* group : groups) group->abandon();
}

size_t MailedReductions::open() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

}  // namespace sluice::engine
