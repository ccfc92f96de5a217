#include "cli/run/ranks.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "base/error.h"
#include "cli/process/exit_codes.h"
#include "cli/run/open_files.h"
#include "cli/run/rank_agreement.h"
#include "comm/cluster.h"
#include "comm/gradients_over.h"
#include "comm/left_behind.h"
#include "comm/link_lost.h"
#include "comm/parcels/parcels_over.h"
#include "comm/weights/common_memory.h"
#include "comm/weights/publications_over.h"
#include "engine/plan/rank_groups.h"
#include "engine/ranks/returning_ranks.h"
#include "models/cuda/gpus_of_rank.h"

namespace sluice::cli {
namespace {

constexpr std::chrono::seconds kMargin{2};    // for a lost rank to be told
constexpr std::chrono::seconds kToUnwind{5};  // for a process that cannot go on
constexpr const char* kKeyVariable = "SLUICE_CLUSTER_KEY";

std::string shared_key() {
  const char* key = std::getenv(kKeyVariable);
  return key == nullptr ? "" : key;
}

std::string what_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& failure) {
    return failure.what();
  }
}

template <class Error>
bool is(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const Error&) {
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

comm::JoinOptions joining(const WorldEnvironment& environment, const engine::Plan& plan) {
  return {.rank = environment.rank,
          .size = environment.size,
          .host = environment.host,
          .port = environment.port,
          .served = environment.served,
          .join_seconds = plan.cluster.join_seconds,
          .key = shared_key(),
          .several_machines = environment.local_size < environment.size,
          .may_come_back = plan.expendable().has(environment.rank)};
}

}  // namespace

Ranks::Ranks() : environment_(world_environment()) {
  if (environment_) models::see_gpus_of_rank(*environment_);
}

// Its threads use the rest of this.
Ranks::~Ranks() {
  end(/*well=*/false, "it ended early");
  publications_.reset();
  cluster_.reset();
  passes_.reset();
}

// What `connect` makes. A rank that is lost meanwhile is named by the heartbeat.
template <class Connect>
auto Ranks::connected(const Connect& connect) {
  try {
    return connect([this](std::exception_ptr error) { hear_of(std::move(error)); }, lost_.get_token());
  } catch (const UserError&) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, time_to_notice_, [this] { return failure_ != nullptr; });
    if (!failure_) throw;
    std::rethrow_exception(failure_);
  }
}

void Ranks::join(const engine::Plan& plan) {
  if (!environment_) return;
  require_open_files(plan, size());
  time_to_notice_ = std::chrono::duration<double>(plan.cluster.dead_after_seconds) + kMargin;
  expendable_ = plan.expendable().count;
  shares_making_ = plan.shares_making();
  cluster_ = std::make_unique<comm::Cluster>(cluster_options(plan));
  begin_to_come_back();
  cluster_->mail().receive(engine::Mail::Channel::kControl, [this](int, const std::string& message) {
    const std::lock_guard lock(mutex_);
    heard_ = message;
    changed_.notify_all();
  });
  connect_trainers(plan);
  if (comm::ParcelsWithoutLost* const parcels = cluster_->parcels()) {
    connect_passes(plan, *parcels);
    connect_samplers(plan, *parcels);
  }
}

comm::ClusterOptions Ranks::cluster_options(const engine::Plan& plan) {
  const engine::World trainers = plan.holds_trained(rank()) ? engine::trainers_of(plan, rank()) : engine::World();
  comm::ClusterOptions options{.join = joining(*environment_, plan),
                               .owners = plan.owners(),
                               .scheduling = plan.scheduling_ranks(),
                               .dead_after_seconds = plan.cluster.dead_after_seconds,
                               .agreed = what_ranks_agree_on(plan, rank()),
                               .sign = [this] { return sign(); },
                               .failed = [this](std::exception_ptr error) { take_failure(std::move(error)); },
                               .make_gradients = {},
                               .make_parcels = {},
                               .expendable = plan.expendable(),
                               .lost = [this](int rank, const std::string& why) { lose(rank, why); },
                               .back = [this](int rank, int64_t incarnation) { take_back(rank, incarnation); },
                               .over = [this] { be_late(); }};
  options.make_gradients = [this, trainers, seconds = plan.cluster.join_seconds](const comm::Store& store,
                                                                                 const std::string& model) {
    return connected([&](auto failed, const std::stop_token& give_up) {
      return comm::gradients_over(store, trainers, model, seconds, failed, give_up);
    });
  };
  if (plan.shares_making() || plan.pass_ranks() > 1 || plan.forward_ranks() > 0) {
    options.make_parcels = [this, parcels = parcel_options(plan)](const comm::Store& store) {
      return make_parcels(parcels, store);
    };
  }
  return options;
}

comm::ParcelOptions Ranks::parcel_options(const engine::Plan& plan) {
  return {.owners = plan.owners(),
          .join_seconds = plan.cluster.join_seconds,
          .sends_again = plan.cluster.resend_damaged,
          .expendable = {.ranks = plan.expendable(),
                         .lost = [this](int rank, int64_t incarnation) { cluster_->give_up(rank, incarnation); }}};
}

// A rank that was stopped finds damaged what the others wrote over when they gave it up: that it was, the heartbeat tells.
std::unique_ptr<comm::ParcelsWithoutLost> Ranks::make_parcels(const comm::ParcelOptions& parcels, const comm::Store& store) {
  const bool may_be_given_up = parcels.expendable.ranks.has(rank());
  return connected([&](auto hear, const std::stop_token& give_up) {
    const auto failed = [this, hear, may_be_given_up](std::exception_ptr error) {
      may_be_given_up ? suspect(std::move(error)) : hear(std::move(error));
    };
    return comm::parcels_over(store, parcels, failed, give_up);
  });
}

// At once, since ranks may take long to load their models, and not equally long.
void Ranks::connect_trainers(const engine::Plan& plan) {
  if (plan.training_ranks() == 1 || !plan.holds_trained(rank())) return;
  for (const engine::PlanModel& model : plan.models) {
    if (model.usage.updated && model.facts.trainable) cluster_->reductions().gradients(model.name);
  }
  if (plan.shards_parameters()) have_in_common("trained", engine::sharing_with(plan, rank()), plan.cluster.join_seconds);
}

// Ranks of a group compute passes together; where a role computes forwards, those that train ask it.
void Ranks::connect_passes(const engine::Plan& plan, comm::ParcelsWithoutLost& parcels) {
  const std::vector<int> group = engine::group_of(plan, rank());
  const bool asks_or_answers = plan.forward_ranks() > 0 && (plan.trains(rank()) || plan.forwards(rank()));
  if (group.size() == 1 && !asks_or_answers) return;
  const bool samples_alone = !plan.holds_trained(rank());  // with those of its group, and computes no passes
  passes_ = std::make_unique<engine::ParcelPassGroups>(parcels, group, samples_alone ? 1 : plan.ring(),
                                                       samples_alone ? 1 : plan.expert_ranks());
}

// Ranks that sample and do not train get the weights from those that do.
void Ranks::connect_samplers(const engine::Plan& plan, comm::ParcelsWithoutLost& parcels) {
  const bool trains = plan.holds_trained(rank());
  if (!plan.has_roles() || (trains && plan.assists(rank())) || plan.forwards(rank())) return;
  if (!trains) {
    const engine::SharingRanks beside = engine::sampling_beside(plan, rank(), parcels.hosts());
    if (beside.count() > 1) have_in_common("sampled", beside, plan.cluster.join_seconds);
  }
  auto publications = std::make_unique<comm::PublicationsOver>(parcels, plan.expendable().any());
  const std::lock_guard lock(mutex_);
  publications_ = std::move(publications);
  for (const auto& [lost, how] : lost_ranks_) publications_->lose(lost);
}

void Ranks::have_in_common(const std::string& name, const engine::SharingRanks& ranks, double join_seconds) {
  common_memory_ = connected([&](auto /*failed*/, const std::stop_token& give_up) {
    return comm::common_memory_over(cluster_->store(), name, ranks, join_seconds, give_up);
  });
}

void Ranks::lose(int rank, const std::string& why) {
  const std::lock_guard lock(mutex_);
  if (ended_) return;
  lost_ranks_[rank] = {.why = why};
  if (publications_) publications_->lose(rank);
  const auto is_gone = [](const auto& lost) { return lost.second.incarnation == 0; };
  const bool none_is_left = std::ranges::count_if(lost_ranks_, is_gone) == expendable_;
  if (none_is_left && !run_.failed)  // else the run knows how to end
    return fail_soon(std::make_exception_ptr(UserError(why + ", and no other rank is left that samples")));
  if (run_.lost) run_.lost(rank, why);
}

void Ranks::take_back(int rank, int64_t incarnation) {
  std::optional<std::string> told;
  {
    const std::lock_guard lock(mutex_);
    if (ended_) return;
    lost_ranks_[rank].incarnation = incarnation;
    told = told_;
    if (run_.back) run_.back(rank, incarnation);
  }
  if (told) cluster_->mail().send(rank, engine::Mail::Channel::kControl, *told);
}

// Rank 0 may have ended meanwhile.
void Ranks::begin_to_come_back() {
  if (!came_back()) return;
  const std::lock_guard lock(mutex_);
  is_in_ = false;
  if (run_has_ended_) fail_too_late();
}

// Rank 0 has ended. A rank that is in ends by itself.
void Ranks::be_late() {
  const std::lock_guard lock(mutex_);
  run_has_ended_ = true;
  if (!is_in_) fail_too_late();
}

// With the lock.
void Ranks::fail_too_late() {
  fail_soon(std::make_exception_ptr(comm::CameTooLate("the run has ended, and this rank was not in it yet")));
}

bool Ranks::came_back() const { return cluster_ && cluster_->incarnation() > 0; }

int64_t Ranks::come_in() {
  engine::ask_to_come_in(cluster_->mail(), cluster_->incarnation(), [this](std::optional<int64_t> first_version) {
    const std::lock_guard lock(mutex_);
    answer_ = first_version;
    is_in_ = first_version.has_value();
    changed_.notify_all();
  });
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return answer_ || failure_; });
  if (failure_ && !is_in_) std::rethrow_exception(failure_);
  if (!*answer_) throw comm::CameTooLate("the run ends before this rank can make a group for it");
  return **answer_;
}

void Ranks::tell(const std::string& text) {
  {
    const std::lock_guard lock(mutex_);
    told_ = text;
  }
  for (int rank = 1; cluster_ && rank < size(); ++rank) cluster_->mail().send(rank, engine::Mail::Channel::kControl, text);
}

std::string Ranks::hear() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return heard_ || failure_; });
  if (failure_) std::rethrow_exception(failure_);
  return *heard_;
}

engine::Reductions* Ranks::reductions() { return cluster_ ? &cluster_->reductions() : nullptr; }

std::optional<engine::RankLinks> Ranks::links() {
  comm::ParcelsWithoutLost* const parcels = cluster_ && shares_making_ ? cluster_->parcels() : nullptr;
  if (parcels == nullptr) return {};
  return engine::RankLinks{cluster_->mail(), *parcels, publications_.get()};
}

void Ranks::watch(OfRun run) {
  const std::lock_guard lock(mutex_);
  run_ = std::move(run);
  leaving_.request_stop();
  if (run_.failed && failure_) run_.failed(failure_);
  for (const auto& [rank, lost] : lost_ranks_) {
    if (run_.lost) run_.lost(rank, lost.why);
    if (run_.back && lost.incarnation > 0) run_.back(rank, lost.incarnation);
  }
}

bool Ranks::others_failed() const {
  const std::lock_guard lock(mutex_);
  return failure_ != nullptr;
}

void Ranks::take_failure(std::exception_ptr error) {
  const std::lock_guard lock(mutex_);
  fail_soon(std::move(error));
}

// With the lock.
void Ranks::fail_soon(std::exception_ptr error) {
  if (failure_ || ended_) return;
  was_given_up_ = is<comm::LeftBehind>(error);
  failure_ = std::move(error);
  if (run_.failed)
    run_.failed(failure_);
  else
    leave_soon();
  changed_.notify_all();
  lost_.request_stop();
}

// Waits for: whatever the main thread is at to fail as well, or the run to begin, which then knows. Ends when: it has, or after
// some seconds: a connection to a rank that was stopped may wait much longer, and models may be long to load.
void Ranks::leave_soon() {
  leaving_ = std::jthread([this](const std::stop_token& over) {
    std::unique_lock waiting(mutex_);
    changed_.wait_for(waiting, over, kToUnwind, [] { return false; });
    if (over.stop_requested() || ended_) return;
    std::fprintf(stderr, "%s", what_of(failure_).c_str());
    std::fflush(stderr);
    std::_Exit(is<comm::CameTooLate>(failure_) ? kDone : was_given_up_ ? kGivenUp : kFailed);
  });
}

// What is wrong with what two ranks exchange. A connection that broke the heartbeat knows better; what came damaged nobody does,
// so the others hear of it before this rank has ended what it is at.
void Ranks::hear_of(std::exception_ptr error) {
  if (is<comm::LinkLost>(error)) return suspect(std::move(error));
  const std::lock_guard lock(mutex_);
  if (failure_ || ended_) return;
  cluster_->warn(what_of(error));
  fail_soon(std::move(error));
}

// Waits for: the heartbeat to say who is gone, since a connection only knows that somebody is. Ends when: it has, or it would
// have.
void Ranks::suspect(std::exception_ptr error) {
  const std::lock_guard lock(mutex_);
  if (suspicion_.joinable()) return;
  suspicion_ = std::jthread([this, error = std::move(error)](const std::stop_token& over) {
    {
      std::unique_lock waiting(mutex_);
      changed_.wait_for(waiting, over, time_to_notice_, [this] { return failure_ != nullptr; });
      if (failure_ || over.stop_requested()) return;
    }
    take_failure(error);
  });
}

engine::RankSign Ranks::sign() {
  const std::lock_guard lock(mutex_);
  return run_.sign ? run_.sign() : engine::RankSign{.doing = "before its run"};
}

std::optional<engine::ClockOffset> Ranks::clock_offset() const {
  return cluster_ ? cluster_->clock_offset() : engine::ClockOffset{};
}

// Takes no lock of this: a run asks while it is asked for its sign.
std::vector<engine::RankSeen> Ranks::seen() const { return cluster_ ? cluster_->seen() : std::vector<engine::RankSeen>(); }

void Ranks::end(bool well, const std::string& why) {
  if (!cluster_) return;
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(ended_, true)) return;
    run_ = {};
  }
  if (!well && !is_in_) return cluster_->step_back(why);
  cluster_->end(well, why);
}

}  // namespace sluice::cli
