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
#include <vector>

#include "engine/contract/world.h"
#include "engine/ranks/mail.h"

namespace sluice::engine {

/// Adds numbers of all ranks by messages: each rank sends what it has to all others, and adds what all have by itself, in the
/// order of the ranks. So it takes one hop, and the result has the same names in the same order everywhere.
///
/// The mail must outlive this, and must be closed before this goes. Threads: `done` is called by whoever brings the last part, the
/// caller of combine() or the thread of the mail. Failure: where a rank contributes twice to a key, or parts do not fit, this
/// throws InternalError, to the caller or to the mail; a `done` that cannot be called then waits for abandon().
class MailedReductions final : public Reductions {
 public:
  using Gradients = std::function<GradientGroup*(const std::string& model)>;

  explicit MailedReductions(Mail& mail, Gradients gradients = {});

  World world() const override { return mail_.world(); }
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
  struct Entry {
    std::vector<std::optional<Contribution>> parts;  // by rank
    int came = 0;
    Done done;  // empty: this rank has not come yet
  };

  void send(const Key& key, const Contribution& mine);
  void send_to_others(const std::string& message);
  void receive(int from, const std::string& message);
  void add(int rank, const Key& key, Contribution part, Done done);
  void finish(Entry complete);
  void leave_to_abandon(Done done);
  void be_called();
  bool is_over(const Key& key) const { return abandoned_ || key.is_behind(last_); }

  Mail& mail_;
  const Gradients gradients_;
  mutable std::mutex mutex_;  // guards what follows
  std::map<Key, Entry> entries_;
  std::set<GradientGroup*> groups_;                  // that were asked for
  std::map<Key, std::map<int, std::string>> given_;  // of rank 0: by rank
  std::vector<Done> stuck_;                          // of keys whose parts do not fit
  std::function<void()> on_call_;
  bool called_ = false;
  bool abandoned_ = false;
  int64_t last_ = std::numeric_limits<int64_t>::max();  // iterations behind this one are abandoned
};

}  // namespace sluice::engine
