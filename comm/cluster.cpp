#include "comm/cluster.h"

#include <utility>

#include "base/error.h"
#include "comm/agreement.h"
#include "comm/left_behind.h"

namespace sluice::comm {
namespace {

// A store that does not answer is a rank that gives no sign.
JoinOptions joining(const ClusterOptions& options) {
  JoinOptions join = options.join;
  join.answer_seconds = options.dead_after_seconds;
  return join;
}

std::exception_ptr error_of(const RankLoss& loss, int self, const RankRange& expendable) {
  if (loss.rank == self && loss.how != RankLoss::How::kFailed) {
    const std::string said = "the others have given this rank up: " + text_of(loss), help = "look whether it was stopped";
    if (expendable.has(self)) return std::make_exception_ptr(LeftBehind(said, help));
    return std::make_exception_ptr(UserError(said, help));
  }
  return std::make_exception_ptr(UserError(text_of(loss), "look at what rank " + std::to_string(loss.rank) + " said last"));
}

bool is_store_lost(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const StoreLost&) {
    return true;
  } catch (...) {
    return false;
  }
}

}  // namespace

Cluster::Cluster(ClusterOptions options) : options_(std::move(options)), store_(joining(options_)) {
  compare_values(store_, options_.agreed, options_.join.join_seconds);
  mail_ = std::make_unique<StoreMail>(store_, [this](std::exception_ptr error) { mail_failed(std::move(error)); });
  reductions_ = std::make_unique<engine::MailedReductions>(
      *mail_, [this](const std::string& model) { return gradients(model); }, options_.owners, options_.scheduling);
  clock_ = std::make_unique<engine::RankClock>(*mail_);
  heartbeat_ = std::make_unique<Heartbeat>(
      store_, HeartbeatOptions{.beat_seconds = options_.beat_seconds,
                               .dead_after_seconds = options_.dead_after_seconds,
                               .first_beat_seconds = options_.join.join_seconds,
                               .sign = options_.sign,
                               .lost = [this](const RankLoss& loss) { fail(error_of(loss, world().rank, options_.expendable)); },
                               .expendable = options_.expendable,
                               .gone = [this](const RankLoss& loss) { lose(loss); },
                               .back = [this](int rank, int64_t incarnation) { take_back(rank, incarnation); },
                               .over = options_.over});
}

Cluster::~Cluster() { end(false, "it ended early"); }

// Parcels before the heartbeat: while a rank says goodbye to the others, they watch it, and it them.
void Cluster::end(bool well, const std::string& why) {
  close_links(well);
  if (well)
    heartbeat_->end_well();
  else
    heartbeat_->fail(why);
}

void Cluster::step_back(const std::string& why) {
  close_links(/*well=*/false);
  heartbeat_->step_back(why);
}

void Cluster::close_links(bool well) {
  mail_->close();
  if (!parcels_) return;
  if (!well) parcels_->abandon();
  parcels_->close();
}

void Cluster::fail(std::exception_ptr error) {
  if (!has_failed_.exchange(true) && options_.failed) options_.failed(std::move(error));
}

// The heartbeat notices too that rank 0 is gone, and says it better: which host, which process, what it did.
void Cluster::mail_failed(std::exception_ptr error) {
  if (!is_store_lost(error)) fail(std::move(error));
}

engine::GradientGroup* Cluster::gradients(const std::string& model) {
  if (!options_.make_gradients || world().size == 1) return nullptr;
  const std::lock_guard lock(gradients_mutex_);
  std::unique_ptr<engine::GradientGroup>& group = gradients_[model];
  if (!group) group = options_.make_gradients(store_, model);
  return group.get();
}

ParcelsWithoutLost* Cluster::parcels() {
  if (!options_.make_parcels || world().size == 1) return nullptr;
  if (parcels_) return parcels_.get();
  auto made = options_.make_parcels(store_);
  const std::lock_guard lock(losing_);
  parcels_ = std::move(made);
  for (const int rank : lost_) parcels_->lose(rank);
  mail_->begin();
  return parcels_.get();
}

// The run hears of it last: nothing of that rank comes any more.
void Cluster::lose(const RankLoss& loss) {
  {
    const std::lock_guard lock(losing_);
    lost_.insert(loss.rank);
    mail_->lose(loss.rank);
    if (parcels_) parcels_->lose(loss.rank);
  }
  if (options_.lost) options_.lost(loss.rank, text_of(loss));
}

// The run hears of it before that rank is connected, which may say something to the others when it is with all that train. While
// this rank meets the others itself, or samples too, there is nothing to connect.
void Cluster::take_back(int rank, int64_t incarnation) {
  {
    const std::lock_guard lock(losing_);
    lost_.erase(rank);
    mail_->take_back(rank, incarnation);
  }
  if (options_.back) options_.back(rank, incarnation);
  const std::lock_guard lock(losing_);
  if (parcels_ && world().rank < options_.expendable.first) parcels_->take_back(rank, incarnation);
}

}  // namespace sluice::comm
