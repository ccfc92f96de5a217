#include "cli/run/ranks.h"

#include <chrono>
#include <cstdlib>
#include <utility>

#include "base/error.h"
#include "cli/run/open_files.h"
#include "cli/run/rank_agreement.h"
#include "comm/cluster.h"
#include "comm/gradients_over.h"
#include "comm/parcels/parcels_over.h"
#include "comm/weights/common_memory.h"
#include "comm/weights/publications_over.h"
#include "engine/plan/rank_groups.h"
#include "engine/ranks/returning_ranks.h"
#include "models/cuda/gpus_of_rank.h"

namespace sluice::cli {
namespace {

constexpr std::chrono::seconds kMargin{2};  // for a lost rank to be told
constexpr const char* kKeyVariable = "SLUICE_CLUSTER_KEY";

std::string shared_key() {
  const char* key = std::getenv(kKeyVariable);
  return key == nullptr ? "" : key;
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
    return connect([this](std::exception_ptr error) { fate_.hear_of(std::move(error)); }, fate_.give_up());
  } catch (const UserError&) {
    fate_.throw_what_is_noticed();
    throw;
  }
}

void Ranks::join(const engine::Plan& plan) {
  if (!environment_) return;
  require_open_files(plan, size());
  fate_.begin({.time_to_notice = std::chrono::duration<double>(plan.cluster.dead_after_seconds) + kMargin,
               .expendable = plan.expendable().count,
               .warn = [this](const std::string& why) { cluster_->warn(why); }});
  shares_making_ = plan.shares_making();
  cluster_ = std::make_unique<comm::Cluster>(cluster_options(plan));
  if (came_back()) fate_.begin_to_come_back();
  cluster_->mail().receive(engine::Mail::Channel::kControl,
                           [this](int, const std::string& message) { fate_.note([&] { heard_ = message; }); });
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
                               .sign = [this] { return fate_.sign(); },
                               .failed = [this](std::exception_ptr error) { fate_.fail(std::move(error)); },
                               .make_gradients = {},
                               .make_parcels = {},
                               .expendable = plan.expendable(),
                               .lost = [this](int rank, const std::string& why) { fate_.lose(rank, why); },
                               .back = [this](int rank, int64_t incarnation) { take_back(rank, incarnation); },
                               .over = [this] { fate_.be_late(); }};
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
      may_be_given_up ? fate_.suspect(std::move(error)) : hear(std::move(error));
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
  publications_ = std::make_unique<comm::PublicationsOver>(parcels, plan.expendable().any());
  fate_.tell_of_losses([this](int lost) { publications_->lose(lost); });
}

void Ranks::have_in_common(const std::string& name, const engine::SharingRanks& ranks, double join_seconds) {
  common_memory_ = connected([&](auto /*failed*/, const std::stop_token& give_up) {
    return comm::common_memory_over(cluster_->store(), name, ranks, join_seconds, give_up);
  });
}

void Ranks::take_back(int rank, int64_t incarnation) {
  if (!fate_.take_back(rank, incarnation)) return;
  std::optional<std::string> told;
  {
    const std::lock_guard lock(telling_);
    told = told_;
  }
  if (told) cluster_->mail().send(rank, engine::Mail::Channel::kControl, *told);
}

bool Ranks::came_back() const { return cluster_ && cluster_->incarnation() > 0; }

int64_t Ranks::come_in() {
  engine::ask_to_come_in(cluster_->mail(), cluster_->incarnation(),
                         [this](std::optional<int64_t> first_version) { fate_.let_in(first_version); });
  return fate_.await_entry();
}

void Ranks::tell(const std::string& text) {
  {
    const std::lock_guard lock(telling_);
    told_ = text;
  }
  for (int rank = 1; cluster_ && rank < size(); ++rank) cluster_->mail().send(rank, engine::Mail::Channel::kControl, text);
}

std::string Ranks::hear() {
  return fate_.await([this]() -> const std::optional<std::string>& { return heard_; });
}

engine::Reductions* Ranks::reductions() { return cluster_ ? &cluster_->reductions() : nullptr; }

std::optional<engine::RankLinks> Ranks::links() {
  comm::ParcelsWithoutLost* const parcels = cluster_ && shares_making_ ? cluster_->parcels() : nullptr;
  if (parcels == nullptr) return {};
  return engine::RankLinks{cluster_->mail(), *parcels, publications_.get()};
}

std::optional<engine::ClockOffset> Ranks::clock_offset() const {
  return cluster_ ? cluster_->clock_offset() : engine::ClockOffset{};
}

// Takes no lock of this: a run asks while it is asked for its sign.
std::vector<engine::RankSeen> Ranks::seen() const { return cluster_ ? cluster_->seen() : std::vector<engine::RankSeen>(); }

void Ranks::end(bool well, const std::string& why) {
  if (!cluster_ || !fate_.end()) return;
  if (!well && !fate_.is_in()) return cluster_->step_back(why);
  cluster_->end(well, why);
}

}  // namespace sluice::cli
