#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/contract/world/world.h"
#include "engine/ranks/mail.h"
#include "engine/ranks/rank_tree.h"

namespace sluice::engine {

/// Adds numbers of all ranks that have slots by messages, along a tree (engine/ranks/rank_tree.h): up to eight ranks send what
/// they have to all others, in one hop, and more of them collect first. All is added in the order of the ranks, so the result has
/// the same names in the same order everywhere.
///
/// The mail must outlive this, and must be closed before this goes. Threads: `done` is called by whoever brings the last part,
/// the caller of combine() or the thread of the mail. Failure: where a rank contributes twice to a key, or parts do not fit, this
/// throws InternalError, to the caller or to the mail; a `done` that cannot be called then waits for abandon().
class MailedReductions final : public Reductions {
 public:
  using Gradients = std::function<GradientGroup*(const std::string& model)>;

  /// `owners`: the first so many ranks have slots, and take part; 0: all. On others only world() may be asked, which has the
  /// first `scheduling` ranks; 0: all.
  explicit MailedReductions(Mail& mail, Gradients gradients = {}, int owners = 0, int scheduling = 0);

  World world() const override { return world_; }
  void combine(const Key& key, Contribution mine, Done done) override;
  void give(const Key& key, std::string text) override;
  std::vector<std::string> take_given(const Key& key) override;
  GradientGroup* gradients(const std::string& model) override;
  void call() override;
  void on_call(std::function<void()> called) override;
  void abandon() override;
  void abandon_behind(int64_t iteration) override;

  /// Keys that some ranks have contributed to, but not all.
  size_t open() const;

 private:
  /// What some ranks have, added.
  struct Sum {
    Contribution numbers;
    uint64_t texts = 0;  // that those ranks have given rank 0
  };
  /// What this rank knows of a key.
  struct Entry {
    std::map<int, Sum> parts;  // of other ranks of its groups, by rank: what each has collected
    std::optional<Sum> own;    // what this rank has collected so far; nothing: it has not come yet
    int level = 0;             // of the group that it collects from now
    bool is_sent = false;      // what it has collected, to the ranks of its highest group
    std::optional<Sum> of_all;
    Done done;
  };
  /// What is to be done once the lock is released.
  struct Outgoing {
    std::vector<std::pair<int, std::string>> messages;  // by receiver
    Done done;                                          // with this, if it is there
    Contribution of_all;
  };

  void send_all(Outgoing outgoing);
  void send_to_others(const std::string& message);
  void receive(int from, const std::string& message);
  void add(int from, const Key& key, Sum part);
  void take_text(int from, const Key& key, std::string text);
  void take_result(const Key& key, Sum of_all);
  void advance(const Key& key, Entry& entry, Outgoing& outgoing);
  bool collect(Entry& entry) const;
  void finish_if_all_is_there(const Key& key, Outgoing& outgoing);
  void leave_to_abandon(const Key& key);
  void be_called();
  // What an owner adds that is alone is complete, and a node may be about to read it: there is nothing to abandon.
  bool is_over(const Key& key) const { return owners_ > 1 && (abandoned_ || key.is_behind(last_)); }

  Mail& mail_;
  const World world_;
  const int owners_;
  const RankTree tree_;
  const Gradients gradients_;
  mutable std::mutex mutex_;  // guards what follows
  std::map<Key, Entry> entries_;
  std::set<GradientGroup*> groups_;                  // that were asked for
  std::map<Key, uint64_t> texts_;                    // that this rank has given
  std::map<Key, std::map<int, std::string>> given_;  // of rank 0: by rank
  std::vector<Done> stuck_;                          // of keys whose parts do not fit
  std::function<void()> on_call_;
  bool called_ = false;
  bool abandoned_ = false;
  int64_t last_ = std::numeric_limits<int64_t>::max();  // iterations after this one are abandoned
};

}  // namespace sluice::engine
