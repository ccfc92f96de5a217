#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "engine/plan/plan.h"
#include "engine/ranks/rank_links.h"

namespace sluice::engine {

/// By what ranks ask each other for groups, and give them: words as mail, columns as parcels. What comes is taken in only as long
/// as the driver is there, one thing after the other.
///
/// Owned by MutualHelp and by what is on its way, which may come when the driver has gone. Threads: all calls from any; nobody
/// waits inside a call, but that forget() waits for what is being taken in.
class GroupLinks : public std::enable_shared_from_this<GroupLinks> {
 public:
  /// `changed`: something was taken in. Called on the threads of mail and parcels.
  GroupLinks(const Plan& plan, RankLinks links, std::function<void()> changed);

  /// Once. `hear`: a message has come. It may have come before.
  void listen(Mail::Handler hear);

  void send(int to, std::string message) { links_.mail.send(to, Mail::Channel::kGroups, std::move(message)); }

  /// `there`, which may be empty, and `arrived`: the parcel is with its receiver, which grants it so many bytes.
  void send(int to, ParcelKey key, Parcel parcel, std::function<void()> there = {});
  void receive(int from, ParcelKey key, int64_t bytes, Parcels::Arrived arrived);

  /// What the parcel of a prompt is called, and that of the group that was made of it.
  ParcelKey prompt_key(int path, int64_t iteration, int64_t group) const {
    return key_of(": to be made", path, iteration, group);
  }
  ParcelKey made_key(int path, int64_t iteration, int64_t group) const { return key_of(": made", path, iteration, group); }

  /// Takes something in that has come, and says that it has. The driver stays as long as this takes.
  void take_in(const std::function<void()>& what);

  /// The run ends early on all ranks: what is under way may never come.
  void expect_early_ends() { links_.parcels.expect_early_ends(); }

  /// The driver goes: nothing is taken in any more.
  void forget();

 private:
  ParcelKey key_of(const char* what, int path, int64_t iteration, int64_t group) const;

  const RankLinks links_;
  const std::function<void()> changed_;
  std::vector<std::string> sources_;  // their names, by path
  std::mutex lifetime_;               // held while something is taken in; guards what follows
  bool over_ = false;                 // the driver has gone, or goes
};

}  // namespace sluice::engine
