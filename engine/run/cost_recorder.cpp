#include "engine/run/cost_recorder.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/checkpoint/checkpoint_schedule.h"
#include "engine/observe/engine_metrics.h"
#include "engine/observe/guess_metrics.h"

namespace sluice::engine {
namespace {

constexpr int64_t kRanges = 16;              // of iterations, each with its own lengths
constexpr int64_t kLongestGap_ns = 100'000;  // a longer pause is not overhead: the executor had nothing to do

double us(const Slice& slice) { return static_cast<double>(slice.end_ns - slice.begin_ns) * 1e-3; }

}  // namespace

CostRecorder::CostRecorder(const Plan& plan, int rank)
    : plan_(plan),
      rank_(rank),
      nodes_(plan.nodes.size()),
      places_(plan.executors.size()),
      filtered_(plan.nodes.size()),
      guessed_(plan.nodes.size()) {}

void CostRecorder::ended(const Slice& slice) {
  Place& place = places_[static_cast<size_t>(slice.executor)];
  const int64_t gap = slice.begin_ns - place.last_end_ns;
  if (place.last_end_ns >= 0 && gap < kLongestGap_ns) ++place.gaps, place.gap_ns += gap;
  place.last_end_ns = slice.end_ns;

  if (slice.prompt_tokens > 0) read_prompt_tokens_.fetch_add(slice.prompt_tokens, std::memory_order_relaxed);
  const auto node = static_cast<size_t>(slice.node);
  const std::lock_guard lock(nodes_[node].mutex);
  Sums& sums = nodes_[node].sums;
  if (!sums.warm && slice.iteration > 0) sums = {.warm = true};
  sums.add(slice, plan_.nodes[node].needs.scope == Scope::kIteration, saved_by_count(plan_, slice.iteration));
}

void CostRecorder::Sums::add(const Slice& slice, bool is_barrier, bool saves) {
  const auto tokens = static_cast<double>(slice.tokens);
  if (slice.ends_iteration) {
    (saves ? saving_ends : ends).add(is_barrier ? tokens : 0, us(slice) + std::exchange(parts_us, 0));
  } else if (slice.micro_batch >= 0) {
    batches.add(tokens, us(slice));
  } else if (slice.tokens > 0 || slice.prompt_tokens > 0) {
    steps.add({1, tokens, static_cast<double>(slice.prompt_tokens)}, us(slice));
    groups.add({static_cast<double>(slice.groups), 0}, us(slice));
  } else {
    parts_us += us(slice);  // of an end that waits for other ranks
  }
}

void CostRecorder::packed(int64_t iteration, const Layout& layout) {
  const int64_t first = range_of(iteration);
  if (lengths_.empty() || lengths_.back().first_iteration != first)
    lengths_.push_back({.first_iteration = first, .prompt = {}, .response = {}});
  Lengths& lengths = lengths_.back();
  for (size_t group = 0; group < layout.groups(); ++group) {
    for (int64_t s = layout.group_offsets[group]; s < layout.group_offsets[group + 1]; ++s) {
      const auto sample = static_cast<size_t>(s);
      const int64_t response = layout.action_offsets[sample + 1] - layout.action_offsets[sample];
      const int64_t prompt = layout.token_offsets[sample + 1] - layout.token_offsets[sample] - response;
      if (s == layout.group_offsets[group]) lengths.prompt.add(prompt);
      lengths.response.add(response);
      sample_prompt_tokens_.fetch_add(prompt, std::memory_order_relaxed);
    }
  }
}

void CostRecorder::reported(const IterationReport& report) {
  const std::lock_guard lock(mutex_);
  ++iterations_;  // of this process: a run that goes on has begun before it
  for (size_t i = 0; i < plan_.nodes.size(); ++i) {
    const PlanNode& node = plan_.nodes[i];
    const auto metric = [&](const std::string& name) {
      const double value = report.metric(prefixed_metric(node.metrics_prefix, name));
      return std::isnan(value) ? 0 : value;
    };
    if (node.needs.drops_groups) {
      const auto of_filter = [&](const char* name) { return metric(metrics::of_filter(node.name, name)); };
      const double passed = of_filter(metrics::kGroupsKept) + of_filter(metrics::kGroupsSurplus);
      filtered_[i].passed += passed;
      filtered_[i].arrived += passed + of_filter(metrics::kGroupsDropped);
    }
    if (node.type->kind == NodeKind::kRollout) {
      guessed_[i].steps += metric(metrics::kGuessedSteps);
      guessed_[i].drafted += metric(metrics::kDraftedTokens);
      guessed_[i].kept += metric(metrics::kKeptDrafts);
    }
  }
}

// The first iteration of the range that `iteration` is in.
int64_t CostRecorder::range_of(int64_t iteration) const {
  const int64_t length = std::max<int64_t>(1, (plan_.pipeline.iterations + kRanges - 1) / kRanges);
  return iteration / length * length;
}

// Of all ranks: who reads a prompt need not be who packs its samples.
double CostRecorder::read_share() const {
  double read = static_cast<double>(read_prompt_tokens_), packed = static_cast<double>(sample_prompt_tokens_);
  const std::lock_guard lock(mutex_);
  for (const auto& [rank, costs] : told_) {
    read += static_cast<double>(costs.read_prompt_tokens);
    packed += static_cast<double>(costs.sample_prompt_tokens);
  }
  return packed == 0 ? 1 : std::min(1.0, read / packed);
}

RankCosts CostRecorder::told() const {
  RankCosts costs{.read_prompt_tokens = read_prompt_tokens_, .sample_prompt_tokens = sample_prompt_tokens_, .nodes = {}};
  for (size_t i = 0; i < plan_.nodes.size(); ++i) {
    const int node = static_cast<int>(i);
    if (plan_.has(rank_, node) && !plan_.has(0, node)) costs.nodes[plan_.nodes[i].name] = costs_of(i);
  }
  return costs;
}

void CostRecorder::hear(int rank, RankCosts costs) {
  const std::lock_guard lock(mutex_);
  told_[rank] = std::move(costs);
}

// The mean of those that have measured something.
NodeCosts CostRecorder::told_of(size_t node) const {
  const std::lock_guard lock(mutex_);
  std::vector<NodeCosts> all;
  for (const auto& [rank, costs] : told_) {
    const auto found = costs.nodes.find(plan_.nodes[node].name);
    if (found != costs.nodes.end() && !(found->second == NodeCosts{.threads = found->second.threads}))
      all.push_back(found->second);
  }
  return mean_of(all);
}

// Of a rollout a token of a prompt costs what one takes that is read.
NodeCosts CostRecorder::costs_of(size_t node) const {
  const PlanNode& plan = plan_.nodes[node];
  const std::lock_guard of_node(nodes_[node].mutex);
  const Sums& sums = nodes_[node].sums;
  NodeCosts costs{.threads = plan_.threads_of(plan)};
  if (plan.type->kind == NodeKind::kRollout) {
    const auto [step, sampled, prompt] = sums.steps.fit({0, 1, 1});
    costs.per_step_us = step, costs.per_sampled_token_us = sampled, costs.per_prompt_token_us = prompt;
    return costs;
  }
  if (plan.type->kind == NodeKind::kSource) {
    if (!plan_.path_of(static_cast<int>(node)).rollout) costs.per_group_us = sums.groups.fit({1, 0})[0];
    return costs;
  }
  const auto [batch, batch_token] = sums.batches.fit();
  const auto [end, end_token] = (sums.ends.count() > 0 ? sums.ends : sums.saving_ends).fit();
  costs.per_batch_us = batch;
  costs.per_token_us = batch_token + end_token;  // a node has the one or the other
  costs.per_iteration_us = end;
  if (sums.ends.count() > 0 && sums.saving_ends.count() > 0)
    costs.per_checkpoint_us = std::max(0.0, sums.saving_ends.mean() - sums.ends.mean());
  const std::lock_guard lock(mutex_);
  if (filtered_[node].arrived > 0) costs.kept_share = filtered_[node].passed / filtered_[node].arrived;
  return costs;
}

Costs CostRecorder::costs() const {
  Costs costs{.pipeline = plan_.pipeline.name, .iterations = 0, .nodes = {}, .lengths = lengths_};
  {
    const std::lock_guard lock(mutex_);
    costs.iterations = iterations_;
  }
  int64_t gaps = 0, gap_ns = 0;
  for (const Place& place : places_) {
    costs.seconds = std::max(costs.seconds, static_cast<double>(place.last_end_ns) * 1e-9);
    gaps += place.gaps, gap_ns += place.gap_ns;
  }
  if (gaps > 0) costs.gap_us = static_cast<double>(gap_ns) * 1e-3 / static_cast<double>(gaps);
  for (size_t i = 0; i < plan_.nodes.size(); ++i) {
    NodeCosts& of_node = costs.nodes[plan_.nodes[i].name];
    of_node = plan_.has(rank_, static_cast<int>(i)) ? costs_of(i) : told_of(i);
    if (plan_.nodes[i].type->kind != NodeKind::kRollout) continue;
    of_node.per_prompt_token_us *= read_share();
    const std::lock_guard lock(mutex_);
    if (guessed_[i].steps == 0) continue;
    of_node.drafted_per_step = guessed_[i].drafted / guessed_[i].steps;
    of_node.kept_per_step = guessed_[i].kept / guessed_[i].steps;
  }
  return costs;
}

}  // namespace sluice::engine
