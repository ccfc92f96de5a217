#include "engine/ranks/mailed_reductions.h"

#include <utility>

#include "base/bytes.h"
#include "base/error.h"
#include "engine/ranks/contribution_bytes.h"

namespace sluice::engine {
namespace {

// All go on one channel, so that a text is there before the numbers that come after it.
enum class Kind : uint8_t { kNumbers, kText, kCall };

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

std::string text_of(const Reductions::Key& key) {
  return "point " + std::to_string(key.point) + " of node " + std::to_string(key.node) + " in iteration " +
         std::to_string(key.iteration);
}

Contribution sum_of(std::vector<std::optional<Contribution>>& parts) {
  Contribution all = std::move(*parts.front());
  for (size_t rank = 1; rank < parts.size(); ++rank) add_contribution(all, *parts[rank]);
  return all;
}

}  // namespace

MailedReductions::MailedReductions(Mail& mail, Gradients gradients) : mail_(mail), gradients_(std::move(gradients)) {
  mail_.receive(Mail::Channel::kNumbers, [this](int from, const std::string& message) { receive(from, message); });
}

void MailedReductions::combine(const Key& key, Contribution mine, Done done) {
  send(key, mine);
  add(world().rank, key, std::move(mine), std::move(done));
}

void MailedReductions::send(const Key& key, const Contribution& mine) {
  ByteWriter bytes;
  bytes.number(static_cast<uint8_t>(Kind::kNumbers));
  write_key(bytes, key);
  write_contribution(bytes, mine);
  send_to_others(bytes.take());
}

void MailedReductions::send_to_others(const std::string& message) {
  for (int rank = 0; rank < world().size; ++rank) {
    if (rank != world().rank) mail_.send(rank, Mail::Channel::kNumbers, message);
  }
}

void MailedReductions::receive(int from, const std::string& message) {
  ByteReader bytes(message);
  const auto kind = static_cast<Kind>(bytes.number<uint8_t>());
  if (kind == Kind::kCall) return be_called();
  const Key key = read_key(bytes);
  if (kind == Kind::kText) {
    const std::lock_guard lock(mutex_);
    if (!is_over(key)) given_[key][from] = bytes.rest();
    return;
  }
  Contribution part = read_contribution(bytes);
  bytes.expect_end();
  add(from, key, std::move(part), {});
}

GradientGroup* MailedReductions::gradients(const std::string& model) {
  GradientGroup* const group = gradients_ ? gradients_(model) : nullptr;
  const std::lock_guard lock(mutex_);
  if (group != nullptr) groups_.insert(group);
  return group;
}

void MailedReductions::give(const Key& key, std::string text) {
  ByteWriter bytes;
  bytes.number(static_cast<uint8_t>(Kind::kText));
  write_key(bytes, key);
  bytes.raw(text);
  mail_.send(0, Mail::Channel::kNumbers, bytes.take());
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

// `done` is of this rank's own part.
void MailedReductions::add(int rank, const Key& key, Contribution part, Done done) {
  Entry complete;
  {
    std::unique_lock lock(mutex_);
    if (is_over(key)) {
      lock.unlock();
      if (done) done({});
      return;
    }
    Entry& entry = entries_[key];
    entry.parts.resize(static_cast<size_t>(world().size));
    std::optional<Contribution>& place = entry.parts.at(static_cast<size_t>(rank));
    SLUICE_CHECK(!place, "rank " + std::to_string(rank) + " has contributed twice to " + text_of(key));
    place = std::move(part);
    if (done) entry.done = std::move(done);
    if (++entry.came < world().size) return;
    complete = std::move(entries_.extract(key).mapped());
  }
  finish(std::move(complete));
}

void MailedReductions::finish(Entry complete) {
  Contribution all;
  try {
    all = sum_of(complete.parts);
  } catch (...) {
    leave_to_abandon(std::move(complete.done));
    throw;
  }
  complete.done(std::move(all));
}

// The run fails by what is thrown, and then abandons.
void MailedReductions::leave_to_abandon(Done done) {
  {
    const std::lock_guard lock(mutex_);
    if (!abandoned_) {
      stuck_.push_back(std::move(done));
      return;
    }
  }
  done({});
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
