#include "engine/contract/settings.h"

namespace sluice::engine {

namespace {

constexpr double kLongestWait = 86'400;  // seconds

ParamSet<StopWhen> stop_params() {
  ParamSet<StopWhen> set;
  set.param("metric", &StopWhen::metric).required().doc("as in metrics.jsonl; iterations that do not have it do not count");
  set.param("at_least", &StopWhen::at_least).doc("end once it is that or more");
  set.param("at_most", &StopWhen::at_most).doc("end once it is that or less");
  set.param("patience", &StopWhen::patience)
      .at_least(1)
      .unit("values")
      .doc("end after so many values of it in a row of which none is better than the best before");
  set.param("best", &StopWhen::best).doc("for patience: whether the highest or the lowest value is the best");
  return set;
}

ParamSet<NetworkSettings> network_params() {
  ParamSet<NetworkSettings> set;
  set.param("latency_microseconds", &NetworkSettings::latency_microseconds)
      .at_least(0)
      .unit("microseconds")
      .doc("until a message of a rank is with the ranks of all other hosts");
  set.param("gigabytes_per_second", &NetworkSettings::gigabytes_per_second)
      .above(0)
      .unit("GB/s")
      .doc("of gradients that a rank sends to other hosts; ranks of a host that share a link have a share of it each");
  set.param("host_latency_microseconds", &NetworkSettings::host_latency_microseconds)
      .at_least(0)
      .unit("microseconds")
      .doc("the same inside a host");
  set.param("host_gigabytes_per_second", &NetworkSettings::host_gigabytes_per_second)
      .above(0)
      .unit("GB/s")
      .doc("the same inside a host");
  set.param("ranks_per_host", &NetworkSettings::ranks_per_host).at_least(1).unit("ranks").doc("more are on several hosts");
  return set;
}

}  // namespace

ParamSet<PipelineSettings> pipeline_params() {
  ParamSet<PipelineSettings> set;
  set.param("name", &PipelineSettings::name)
      .harmless()
      .doc("what the run folder is called after; by default the name of the file");
  set.param("preset", &PipelineSettings::preset)
      .harmless()  // the keys that it sets are compared themselves
      .doc("values for keys that are not written, as another system has them: \"openrlhf\", \"verl\", \"trl\", \"nemo_rl\"");
  set.param("iterations", &PipelineSettings::iterations)
      .required()
      .at_least(1)
      .harmless()
      .doc("times that it goes through the graph");
  set.table("stop_when", &PipelineSettings::stop_when, stop_params())
      .harmless()
      .doc(
          "end the run before its last iteration, after the one in which a metric is what it should be: { metric = "
          "\"held_out/reward/score_mean\", at_least = 0.95 } or { metric, patience = 3 }");
  set.param("seed", &PipelineSettings::seed).at_least(0).doc("all random streams of the run start from it");
  return set;
}

ParamSet<BudgetSettings> budget_params() {
  ParamSet<BudgetSettings> set;
  set.param("tokens_in_flight", &BudgetSettings::tokens_in_flight)
      .required()
      .at_least(1)
      .unit("tokens")
      .harmless()
      .doc("admitted at the source and not yet released by the last reader; peak memory follows it");
  set.param("micro_batch_tokens", &BudgetSettings::micro_batch_tokens)
      .required()
      .at_least(1)
      .unit("tokens")
      .harmless()
      .doc(
          "the most tokens that are packed into one micro-batch; \"auto\": what memory has room for, up to half of "
          "tokens_in_flight");
  set.param("pass_tokens", &BudgetSettings::pass_tokens)
      .at_least(1)
      .unit("tokens")
      .harmless()
      .doc(
          "the most tokens of a micro-batch that a model computes at once, whole samples; activations follow it; \"auto\": what "
          "memory has room for, up to micro_batch_tokens");
  set.param("admission", &BudgetSettings::admission)
      .harmless()
      .doc(
          "when credit is taken: \"worst_case\" for all that a group can become before it starts; \"on_demand\" for its prompts, "
          "then for what is sampled, where the youngest samples are preempted when the budget is exhausted");
  return set;
}

ParamSet<ScheduleSettings> schedule_params() {
  ParamSet<ScheduleSettings> set;
  set.param("policy_lag", &ScheduleSettings::policy_lag)
      .between(0, 64)
      .unit("versions")
      .doc("how many versions older than the trainer the sampling weights are; 0 is on-policy");
  set.param("update", &ScheduleSettings::update)
      .doc(
          "\"exact\": an iteration is sampled with one version, the same in every run; \"immediately\": samples that run go on "
          "with the newest weights at their next token, policy_lag versions old at most; such a run does not repeat");
  set.param("update_kv", &ScheduleSettings::update_kv)
      .doc("what becomes of keys and values of older weights at such an update: they are kept, or the text is read again");
  return set;
}

ParamSet<RuntimeSettings> runtime_params() {
  ParamSet<RuntimeSettings> set;
  set.param("cores", &RuntimeSettings::cores)
      .between(0, 65536)
      .unit("cores")
      .harmless()
      .doc("divided among the cpu executors; 0: all of the machine");
  set.param("stall_seconds", &RuntimeSettings::stall_seconds)
      .at_least(0)
      .unit("seconds")
      .harmless()
      .doc("a run in which nothing has got on for so long is ended with a report of what waits for what; 0: never");
  set.param("grace_seconds", &RuntimeSettings::grace_seconds)
      .at_least(0)
      .unit("seconds")
      .harmless()
      .doc(
          "what is in flight when a run is interrupted may take so long to be finished; the rest is dropped, and made again by a "
          "resume");
  set.param("memory_gib", &RuntimeSettings::memory_gib)
      .at_least(0)
      .unit("GiB")
      .harmless()
      .doc("memory that the run may take; what it needs at worst is compared with it; 0: what the machine has");
  return set;
}

ParamSet<CheckpointSettings> checkpoint_params() {
  ParamSet<CheckpointSettings> set;
  set.param("every_iterations", &CheckpointSettings::every_iterations)
      .at_least(0)
      .unit("iterations")
      .harmless()
      .doc(
          "save the run so often, or as soon as the checkpoint before is made; 0: not by count. It is always saved at its end, "
          "and when it is interrupted");
  set.param("every_minutes", &CheckpointSettings::every_minutes)
      .at_least(0)
      .unit("minutes")
      .harmless()
      .doc("save the run at the end of an iteration when the last checkpoint is so old; 0: not by time");
  set.param("keep_last", &CheckpointSettings::keep_last)
      .at_least(0)
      .unit("checkpoints")
      .harmless()
      .doc("how many of the newest checkpoints stay; 0: all");
  set.param("keep_best", &CheckpointSettings::keep_best)
      .harmless()
      .doc("a metric, such as \"reward/score_mean\": the checkpoint of the iteration where it is best stays too");
  set.param("best", &CheckpointSettings::best)
      .harmless()
      .doc("whether the highest or the lowest value of that metric is the best");
  set.param("folder", &CheckpointSettings::folder)
      .harmless()
      .doc(
          "checkpoints are written into FOLDER/NAME-OF-THE-RUN-FOLDER, to which RUN/checkpoints is then a link; unset: into the "
          "run folder. "
          "Only on the command line: --set checkpoint.folder=FOLDER");
  set.param("copy", &CheckpointSettings::copy)
      .harmless()
      .doc(
          "\"memory\": trained weights and optimizer are copied, and written while training goes on; \"none\": training waits "
          "until they are written, and there is no copy; unset: a copy where memory has room for it");
  set.param("on_failure", &CheckpointSettings::on_failure)
      .harmless()
      .doc(
          "when a checkpoint cannot be saved during the run: warn and go on, or end the run. Those saved before stay in either "
          "case");
  return set;
}

const std::vector<std::string>& known_trackers() {
  static const std::vector<std::string> names{"tensorboard", "wandb", "mlflow", "trackio", "swanlab"};
  return names;
}

ParamSet<LogSettings> log_params() {
  ParamSet<LogSettings> set;
  set.param("trackers", &LogSettings::trackers)
      .each_of(known_trackers())
      .harmless()
      .doc("experiment trackers that are told metrics and samples, by a process of its own that is never in the run's way");
  set.param("project", &LogSettings::project)
      .harmless()
      .doc("what the trackers file the run under; unset: the name of the pipeline");
  set.param("tracker_seconds", &LogSettings::tracker_seconds)
      .at_least(0)
      .unit("seconds")
      .harmless()
      .doc("the end of the run waits so long at most for what the trackers have still to be told");
  return set;
}

ParamSet<ClusterSettings> cluster_params() {
  ParamSet<ClusterSettings> set;
  set.param("slots", &ClusterSettings::slots)
      .between(1, 4096)
      .unit("slots")
      .doc(
          "parts that the groups of an iteration are dealt out to; gradients are summed slot by slot, and slots in a fixed "
          "order, so a run has the same result on every number of ranks that divides it; unset: as many as there are ranks");
  set.param("shard", &ClusterSettings::shard)
      .harmless()
      .doc(
          "what each rank has a part of: the optimizers (ZeRO, stage 1), or weights, gradients and optimizers of all models "
          "(stage 3), which the ranks of a host have in common; \"none\": each has all. \"parameters\" rounds gradients in "
          "another way; the others have the same result");
  set.param("shard_ranks", &ClusterSettings::shard_ranks)
      .between(1, 4096)
      .unit("ranks")
      .harmless()
      .doc(
          "with shard = \"parameters\" so many ranks that train, next to each other and on one host, have weights and gradients "
          "once; each such group has all of them, and the optimizers are shared out over all groups. The result is the same. "
          "Unset: all that train, on one host");
  set.param("sequence_parallel", &ClusterSettings::sequence_parallel)
      .between(1, 256)
      .unit("ranks")
      .doc(
          "so many of the ranks that train compute each pass of a model together, with a part of its tokens each (Ulysses); one "
          "of them has the micro-batches, and the others assist. Log-probabilities have the same bits, gradients round "
          "otherwise; a run of one rank does without");
  set.param("ring", &ClusterSettings::ring)
      .between(1, 256)
      .unit("blocks")
      .doc(
          "blocks that the ranks of sequence_parallel make, where these are more than a model has heads of keys: the ranks of a "
          "block divide heads among them, and blocks give each other keys or queries in turn (ring attention); it divides "
          "sequence_parallel. Attention rounds otherwise then");
  set.param("tensor_parallel", &ClusterSettings::tensor_parallel)
      .between(1, 256)
      .unit("ranks")
      .harmless()
      .doc(
          "so many ranks sample together: each has some heads and columns of the weights that are sampled from, and its part of "
          "the KV cache; tokens and log-probabilities have the same bits. With roles it divides the ranks of the one that "
          "samples; without, sequence_parallel, and they are of its ranks. 1: each rank that samples does so alone");
  set.param("expert_parallel", &ClusterSettings::expert_parallel)
      .between(1, 256)
      .unit("ranks")
      .doc(
          "of the ranks of sequence_parallel, which it divides, so many share out the experts of each mixture, whole ones: a "
          "rank computes its own experts for the tokens of all of them, in passes and, without roles, in sampling, and holds no "
          "others of the weights that are sampled from. Tokens and log-probabilities have the same bits, gradients round "
          "otherwise");
  set.param("join_seconds", &ClusterSettings::join_seconds)
      .above(0)
      .at_most(kLongestWait)
      .unit("seconds")
      .harmless()
      .doc("at the start of a run on several ranks all of them have so long to come");
  set.param("dead_after_seconds", &ClusterSettings::dead_after_seconds)
      .between(2, kLongestWait)  // ranks show a sign once a second, and one may be late
      .unit("seconds")
      .harmless()
      .doc("a rank that gives no sign for so long is lost: all others end, and name it");
  set.param("resend_damaged", &ClusterSettings::resend_damaged)
      .harmless()
      .doc("a piece of columns that comes damaged from another rank is sent once more, where the run else ends at once");
  set.table("network", &ClusterSettings::network, network_params())
      .harmless()
      .doc("how fast ranks tell each other something, for simulate --ranks");
  return set;
}

ParamSet<RoleSettings> role_params() {
  ParamSet<RoleSettings> set;
  set.param("ranks", &RoleSettings::ranks)
      .required()
      .between(1, 4096)
      .unit("ranks")
      .harmless()
      .doc("how many ranks have the role");
  set.param("tokens_in_flight", &RoleSettings::tokens_in_flight)
      .at_least(1)
      .unit("tokens")
      .harmless()
      .doc(
          "the most tokens that are in flight on each of them; unset: tokens_in_flight of [budget]. Not of a role that computes "
          "passes of frozen models");
  set.param("elastic", &RoleSettings::elastic)
      .harmless()
      .doc("of a role that samples: where a rank is lost, the others make its groups, and the run goes on");
  return set;
}

ParamSet<DeviceSettings> device_params() {
  ParamSet<DeviceSettings> set;
  set.param("memory_gib", &DeviceSettings::memory_gib)
      .at_least(0)
      .unit("GiB")
      .harmless()
      .doc("how much memory the device has for the run, so that one can be planned for that is not here; 0: what it has");
  return set;
}

ParamSet<SourceSettings> source_params() {
  ParamSet<SourceSettings> set;
  set.param("every_iterations", &SourceSettings::every_iterations)
      .at_least(1)
      .unit("iterations")
      .doc("the path only measures: after so many iterations each time, and after the last; unset: it takes part in every one");
  set.param("before_training", &SourceSettings::before_training)
      .doc("the path only measures: in the first iteration, with the weights as they are before training, and after the last");
  set.param("tokens_in_flight", &SourceSettings::tokens_in_flight)
      .at_least(1)
      .unit("tokens")
      .harmless()
      .doc("the path's own share of [budget] tokens_in_flight; unset: what the other paths leave");
  return set;
}

bool SourceSettings::is_due(int64_t iteration, int64_t iterations) const {
  if (before_training && iteration == 0) return true;
  return (every_iterations && (iteration + 1) % *every_iterations == 0) || iteration + 1 == iterations;
}

std::vector<SettingsTable> settings_tables() {
  return {{"pipeline", pipeline_params().erased()},     {"budget", budget_params().erased()},
          {"schedule", schedule_params().erased()},     {"runtime", runtime_params().erased()},
          {"checkpoint", checkpoint_params().erased()}, {"log", log_params().erased()},
          {"cluster", cluster_params().erased()}};
}

}  // namespace sluice::engine
