#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/contract/columns/token_budget.h"
#include "engine/contract/params/param_set.h"

namespace sluice::engine {

/// `[pipeline]`, `[budget]`, `[schedule]`, `[runtime]`, `[checkpoint]`, `[log]`, `[cluster]`, bound. Their descriptions are in
/// settings.cpp.
enum class Best { kHighest, kLowest };
constexpr std::array<std::pair<Best, const char*>, 2> enum_names(Best) {
  return {{{Best::kHighest, "highest"}, {Best::kLowest, "lowest"}}};
}

/// When a run ends before its last iteration.
struct StopWhen {
  std::string metric;
  std::optional<double> at_least, at_most;  // once its value is
  std::optional<int64_t> patience;          // or after so many values without a better one
  Best best = Best::kHighest;
};

struct PipelineSettings {
  std::string name;
  std::optional<std::string> preset;  // of the registry
  int64_t iterations = 1;
  int64_t seed = 0;
  std::optional<StopWhen> stop_when;
};

struct BudgetSettings {
  int64_t tokens_in_flight = 0;
  IntegerOrAuto micro_batch_tokens;
  IntegerOrAuto pass_tokens{.value = 0, .automatic = true};
  Admission admission = Admission::kWorstCase;
};

/// Which weights samples that run go on with: those of their iteration, or the newest ones as soon as they are published.
enum class WeightUpdate { kExact, kImmediately };
constexpr std::array<std::pair<WeightUpdate, const char*>, 2> enum_names(WeightUpdate) {
  return {{{WeightUpdate::kExact, "exact"}, {WeightUpdate::kImmediately, "immediately"}}};
}

/// What becomes of keys and values of older weights then.
enum class KvAtUpdate { kKeep, kReadAgain };
constexpr std::array<std::pair<KvAtUpdate, const char*>, 2> enum_names(KvAtUpdate) {
  return {{{KvAtUpdate::kKeep, "keep"}, {KvAtUpdate::kReadAgain, "read_again"}}};
}

struct ScheduleSettings {
  int64_t policy_lag = 0;
  WeightUpdate update = WeightUpdate::kExact;
  KvAtUpdate update_kv = KvAtUpdate::kKeep;
};

struct RuntimeSettings {
  int64_t cores = 0;           // 0: all cores of the machine
  double stall_seconds = 600;  // 0: never
  double grace_seconds = 20;   // for what is in flight when a run is interrupted
  double memory_gib = 0;       // 0: what the machine has
};

enum class OnSaveFailure { kContinue, kStop };
constexpr std::array<std::pair<OnSaveFailure, const char*>, 2> enum_names(OnSaveFailure) {
  return {{{OnSaveFailure::kContinue, "continue"}, {OnSaveFailure::kStop, "stop"}}};
}

/// What a checkpoint is written from: a copy in memory while training goes on, or the live weights while it waits.
enum class CheckpointCopy { kMemory, kNone };
constexpr std::array<std::pair<CheckpointCopy, const char*>, 2> enum_names(CheckpointCopy) {
  return {{{CheckpointCopy::kMemory, "memory"}, {CheckpointCopy::kNone, "none"}}};
}

struct CheckpointSettings {
  int64_t every_iterations = 0;          // 0: not by count
  double every_minutes = 0;              // 0: not by time
  int64_t keep_last = 2;                 // 0: all
  std::optional<std::string> keep_best;  // a metric
  Best best = Best::kHighest;
  std::optional<std::filesystem::path> folder;
  std::optional<CheckpointCopy> copy;  // unset: as memory has room, see Plan::checkpoint_copy
  OnSaveFailure on_failure = OnSaveFailure::kContinue;
};

/// Who is told of a run beside its folder. That changes no bit of the run.
struct LogSettings {
  std::vector<std::string> trackers;   // of known_trackers()
  std::optional<std::string> project;  // unset: the name of the pipeline
  double tracker_seconds = 30;         // that the end of a run waits for them
};

/// The experiment trackers that python/sluice/trackers/ has, by the names of their clients.
const std::vector<std::string>& known_trackers();

/// Keys that every source has beside those of its type: how its path takes part in a run.
struct SourceSettings {
  std::optional<int64_t> every_iterations;  // the path only measures: after so many iterations, and after the last
  bool before_training = false;             // likewise, and before the first
  std::optional<int64_t> tokens_in_flight;  // the path's own share of [budget]; unset: what the others leave

  bool measures() const { return every_iterations || before_training; }

  /// Whether a path that measures does so in an iteration of a run of `iterations`.
  bool is_due(int64_t iteration, int64_t iterations) const;

  /// What it samples from then: the weights that the iteration leaves, or the first ones.
  int64_t version_for(int64_t iteration) const { return measures_before(iteration) ? 0 : iteration + 1; }

  /// Whether it is the first weights then, those before training.
  bool measures_before(int64_t iteration) const { return before_training && iteration == 0; }
};

/// What of models each rank has a part of: nothing, of those that are trained the optimizer (Rajbhandari et al. 2020, ZeRO, stage
/// 1), or of all of them weights, gradients and optimizer (stage 3). The first two have the same result, and the third the same
/// on any number of ranks.
enum class Shard { kNone, kOptimizer, kParameters };
constexpr std::array<std::pair<Shard, const char*>, 3> enum_names(Shard) {
  return {{{Shard::kNone, "none"}, {Shard::kOptimizer, "optimizer"}, {Shard::kParameters, "parameters"}}};
}

/// The network between ranks as a simulation takes it to be. Of a run that is measured and not said.
struct NetworkSettings {
  double latency_microseconds = 250;       // between hosts: until a message is with all others
  double gigabytes_per_second = 1.2;       // that a rank sends to those of other hosts
  double host_latency_microseconds = 150;  // inside a host
  double host_gigabytes_per_second = 1.2;  // likewise
  int64_t ranks_per_host = 8;
};

/// Ranks that do a part of the work.
struct RoleSettings {
  int64_t ranks = 1;
  std::optional<int64_t> tokens_in_flight;  // of each; unset: [budget]
  bool elastic = false;                     // the run goes on when one of them is lost
};

/// What a run on several ranks is like. Nothing of it needs several: the same file runs on one.
struct ClusterSettings {
  std::optional<int64_t> slots;  // unset: as many as there are ranks
  Shard shard = Shard::kOptimizer;
  std::optional<int64_t> shard_ranks;      // that have weights in common with kParameters; unset: all that train
  int64_t sequence_parallel = 1;           // ranks that compute a pass together, a segment of its tokens each
  int64_t ring = 1;                        // blocks that these make, whose ranks go around a ring in attention
  int64_t tensor_parallel = 1;             // of them, those that sample a token together, with some columns of each matrix
  int64_t expert_parallel = 1;             // likewise, those that have whole experts of a mixture each
  double join_seconds = 60;                // for all ranks to come
  double dead_after_seconds = 8;           // a rank that gives no sign for so long is lost
  bool resend_damaged = false;             // a piece of columns that came damaged from another rank, once
  std::optional<NetworkSettings> network;  // unset: as it is by default
};

/// A device beside the CPU, as a plan takes it to be.
struct DeviceSettings {
  double memory_gib = 0;  // 0: what it has
};

/// A table that every pipeline may have, such as [budget], and its parameters.
struct SettingsTable {
  std::string name;
  ParamTable params;
};

ParamSet<PipelineSettings> pipeline_params();
ParamSet<BudgetSettings> budget_params();
ParamSet<ScheduleSettings> schedule_params();
ParamSet<RuntimeSettings> runtime_params();
ParamSet<CheckpointSettings> checkpoint_params();
ParamSet<LogSettings> log_params();
ParamSet<ClusterSettings> cluster_params();
ParamSet<RoleSettings> role_params();
ParamSet<DeviceSettings> device_params();
ParamSet<SourceSettings> source_params();

/// All of them in the order of a pipeline file; what the JSON schema and the documentation list.
std::vector<SettingsTable> settings_tables();

}  // namespace sluice::engine
