#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/numbers/rank_range.h"
#include "comm/heartbeat.h"
#include "comm/parcels_without_lost.h"
#include "comm/store.h"
#include "comm/store_mail.h"
#include "engine/contract/world/gradient_group.h"
#include "engine/contract/world/world.h"
#include "engine/ranks/mail.h"
#include "engine/ranks/mailed_reductions.h"
#include "engine/ranks/rank_clock.h"

namespace sluice::comm {

struct ClusterOptions {
  JoinOptions join;
  int owners = 0;      // the first so many ranks add up numbers; 0: all
  int scheduling = 0;  // the first so many are in the world that reductions tell of; 0: all
  double beat_seconds = 1;
  double dead_after_seconds = 10;             // a rank without a sign, or a store without an answer
  std::map<std::string, std::string> agreed;  // what all ranks must have alike: name -> value; see agreement.h
  std::function<engine::RankSign()> sign;     // what this rank shows of itself, once a second; quick

  /// Called at most once, on a thread of the cluster: a rank is lost or has failed (UserError, one sentence), or messages are not
  /// what they should be (InternalError). It must not throw, nor end the cluster; who waits for other ranks is to give up.
  std::function<void(std::exception_ptr)> failed;

  /// Makes what adds the gradients of a model, at the first question; all ranks ask for the same models. Empty: nobody does.
  std::function<std::unique_ptr<engine::GradientGroup>(const Store& store, const std::string& model)> make_gradients;

  /// Makes what columns go to other ranks by, at the first question, which all ranks ask. Empty: nothing does.
  std::function<std::unique_ptr<ParcelsWithoutLost>(const Store& store)> make_parcels;

  /// These may be lost, and the others go on without them. `lost` is called for each once, likewise: `why` is one sentence.
  /// Nothing is sent to it, or heard of it, from then on.
  RankRange expendable = {};
  std::function<void(int rank, const std::string& why)> lost = {};

  /// Another process is that rank now: called before it hears or sends anything. Likewise.
  std::function<void(int rank, int64_t incarnation)> back = {};

  /// Called once, likewise: rank 0 has said goodbye, and this rank has not.
  std::function<void()> over = {};
};

/// The processes of one run as a whole: who they are, what they tell each other, and whether all of them are there.
///
/// Joins in the constructor. Waits for: all ranks, and that they have the same `agreed`; or that the process is found lost whose
/// place this one takes. Ends when: they do, or the time to join is over. Owns the store, the mail, the reductions, the
/// heartbeat, the gradient groups and the parcels, which live as long as this.
///
/// Threads: reductions() and mail() are thread-safe; one thread makes and ends this, and asks for parcels(). Failure: the
/// constructor throws UserError, the same on all ranks that are there; later `failed` is called.
class Cluster {
 public:
  explicit Cluster(ClusterOptions options);

  /// end(false), where it has not ended.
  ~Cluster();

  const engine::World& world() const { return store_.world(); }
  const Store& store() const { return store_; }
  engine::Reductions& reductions() { return *reductions_; }
  engine::Mail& mail() { return *mail_; }

  /// Null: this rank is alone, or nothing makes them. Waits for what make_parcels waits for; throws what it throws.
  ParcelsWithoutLost* parcels();

  /// Its connection is broken, which may be lost: all ranks learn of it. From any thread.
  void give_up(int rank, int64_t incarnation) { heartbeat_->give_up(rank, incarnation); }

  /// This rank fails, and will end; the others learn why before it has. From any thread.
  void warn(const std::string& why) { heartbeat_->warn(why); }

  /// Above 0: this process has taken the place of one that is lost.
  int64_t incarnation() const { return store_.incarnation(); }

  /// How far the clock of this rank is behind that of rank 0: nothing before it is known. From any thread.
  std::optional<engine::ClockOffset> clock_offset() { return clock_->offset(); }

  /// All ranks, with their last signs. From any thread.
  std::vector<engine::RankSeen> seen() const { return heartbeat_->seen(); }

  /// The last thing that a rank does with the others. Well: it says goodbye, and rank 0 waits until all have. Not well: it says
  /// why, and the others fail by that; rank 0 waits some seconds, so that they can see it.
  ///
  /// Neither mail nor parcels call anybody after it. A rank has ended well when nothing is left between it and another, or when
  /// it expects early ends (engine::Parcels): so nobody fails by its goodbye, however long the others still run.
  void end(bool well, const std::string& why = {});

  /// Likewise, where the others have nothing from this rank, which may be lost: they go on.
  void step_back(const std::string& why);

 private:
  void fail(std::exception_ptr error);
  void lose(const RankLoss& loss);
  void take_back(int rank, int64_t incarnation);
  void close_links(bool well);
  void mail_failed(std::exception_ptr error);
  engine::GradientGroup* gradients(const std::string& model);

  const ClusterOptions options_;
  std::atomic<bool> has_failed_ = false;
  Store store_;
  std::mutex gradients_mutex_;  // guards gradients_
  std::map<std::string, std::unique_ptr<engine::GradientGroup>> gradients_;
  std::unique_ptr<Heartbeat> heartbeat_;
  std::unique_ptr<StoreMail> mail_;
  std::unique_ptr<engine::MailedReductions> reductions_;
  std::unique_ptr<engine::RankClock> clock_;
  std::mutex losing_;                            // guards what follows, where ranks may be lost
  std::unique_ptr<ParcelsWithoutLost> parcels_;  // made by one thread
  std::set<int> lost_;
};

}  // namespace sluice::comm
