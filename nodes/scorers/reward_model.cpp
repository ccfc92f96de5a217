#include "nodes/scorers/reward_model.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

#include "nodes/columns/columns.h"
#include "nodes/forward/forward.h"
#include "nodes/forward/passes.h"
#include "nodes/forward/ragged.h"
#include "nodes/models/model_parts.h"
#include "nodes/models/special_in_text.h"
#include "nodes/scorers/scorer.h"
#include "nodes/scorers/step_ends.h"

namespace sluice::nodes {
namespace {

// Runs of a sample's actions that stand side by side, as places among the actions: text that another put between them parts them.
std::vector<engine::Range> runs_of_actions(const engine::Layout& layout, engine::Range actions) {
  std::vector<engine::Range> runs;
  for (size_t begin = actions.begin, end = begin; begin < actions.end; begin = end) {
    for (++end; end < actions.end && layout.action_tokens[end] == layout.action_tokens[end - 1] + 1;) ++end;
    runs.push_back({begin, end});
  }
  return runs;
}

}  // namespace

engine::ColumnSpec RewardModelParams::column() const {
  const bool by_step = level == RewardLevel::kStep;
  return {writes.empty() ? (by_step ? columns::kStepRewards.name : columns::kScore.name) : writes, engine::DType::kFloat32,
          by_step ? engine::Extent::kAction : engine::Extent::kSample};
}

void RewardModel::describe(engine::Contract<RewardModelParams>& c) {
  using P = RewardModelParams;
  c.type("reward_model", "what a reward model makes of each sample, or of each step of it");
  c.model("model", &P::model, engine::ModelUse::kReads, "value").required().doc("the reward model");
  c.param("level", &P::level).doc("sample: a score at its last token, step: a reward at each action that ends a step");
  c.param("separator", &P::separator).doc("the text that ends a step");
  c.param("writes", &P::writes).doc("the column's name; empty: score, or step_rewards");
  c.reads(columns::kTokens);
  c.needs([](const P& params, engine::NodeNeeds& needs) {
    needs.writes.push_back(params.column());
    if (!needs.models.empty()) needs.models.front().expects_frozen = true;
  });
  c.check([](const P& params, engine::Findings& findings) {
    if (params.level == RewardLevel::kSample && findings.changed("separator")) {
      findings.without_effect("separator", "separator has no effect while level is \"sample\"",
                              "level = \"step\", or remove separator");
    }
    if (params.separator.empty()) findings.error("separator", "separator is empty", "name the text that ends a step");
  });
  c.data([](const P& params, engine::DataLook& look) {
    if (params.level == RewardLevel::kStep) refuse_special_in_text(params.model, "separator", {params.separator}, look);
  });
  c.metrics("reward/COLUMN", engine::Metric::kMoments,
            "mean and standard deviation of the rewards, of COLUMN \"score\" by default",
            [](const P& params) { return std::vector{score_metric(params.column().name)}; });
  c.metrics("reward/COLUMN_steps_mean", engine::Metric::kMean, "with level = \"step\": mean number of steps of a sample",
            [](const P& params) {
              const bool by_step = params.level == RewardLevel::kStep;
              return by_step ? std::vector{score_metric(params.column().name, "steps_mean")} : std::vector<std::string>();
            });
}

RewardModel::RewardModel(const RewardModelParams& params, engine::NodeResources& resources)
    : params_(params),
      model_(forward_model(resources, params.model)),
      text_(model_text(resources, params.model)),
      pass_tokens_(resources.pass_tokens),
      metrics_(*resources.metrics) {}

void RewardModel::process(engine::MicroBatch& batch) {
  const at::NoGradGuard no_gradient;
  const auto entries = batch.write(params_.column()).entries<float>();
  if (params_.level == RewardLevel::kSample) {
    score_samples(batch, entries);
  } else {
    score_steps(batch, entries);
  }
}

void RewardModel::score_samples(const engine::MicroBatch& batch, std::span<float> scores) {
  const engine::Layout& layout = batch.layout();
  std::vector<size_t> all(layout.samples());
  std::iota(all.begin(), all.end(), size_t{0});
  for (const std::vector<size_t>& pass : passes_of(layout, all, pass_tokens_)) {
    const RaggedSamples samples = some_samples({batch.read(columns::kTokens)}, layout, pass);
    std::vector<float> of_pass(pass.size());
    copy_entries(token_values(*model_, samples, last_tokens(samples.sample_offsets)), of_pass);
    for (size_t i = 0; i < pass.size(); ++i) scores[pass[i]] = of_pass[i];
  }
  require_finite(scores, "scores of model " + model_->name());
  for (const float score : scores) metrics_.moments(score_metric(params_.column().name), score);
}

std::vector<std::vector<size_t>> RewardModel::steps_of(const engine::MicroBatch& batch) const {
  const engine::Layout& layout = batch.layout();
  const auto tokens = batch.read(columns::kTokens);
  std::vector<int64_t> actions;
  for (const int64_t token : layout.action_tokens) actions.push_back(tokens[static_cast<size_t>(token)]);
  std::vector<std::vector<size_t>> steps;
  for (const engine::Range of_sample : layout.actions_by_sample()) {
    auto& ends = steps.emplace_back();
    for (const engine::Range run : runs_of_actions(layout, of_sample)) {
      const auto text = std::span<const int64_t>(actions).subspan(run.begin, run.size());
      for (const size_t end : step_ends(text_->tokenizer(), text, params_.separator)) ends.push_back(run.begin + end);
    }
  }
  return steps;
}

void RewardModel::score_steps(const engine::MicroBatch& batch, std::span<float> rewards) {
  std::ranges::fill(rewards, std::numeric_limits<float>::quiet_NaN());
  const engine::Layout& layout = batch.layout();
  const std::vector<std::vector<size_t>> steps = steps_of(batch);
  std::vector<size_t> with_steps, ends;
  for (size_t s = 0; s < steps.size(); ++s) {
    if (!steps[s].empty()) with_steps.push_back(s);
    ends.insert(ends.end(), steps[s].begin(), steps[s].end());
  }
  if (batch.samples() > 0) {
    const auto count = static_cast<double>(batch.samples());
    metrics_.mean(score_metric(params_.column().name, "steps_mean"), static_cast<double>(ends.size()) / count, count);
  }
  for (const std::vector<size_t>& pass : passes_of(layout, with_steps, pass_tokens_)) score_pass(batch, pass, steps, rewards);
  std::vector<float> values;
  for (const size_t end : ends) values.push_back(rewards[end]);
  require_finite(values, "step rewards of model " + model_->name());
  for (const float value : values) metrics_.moments(score_metric(params_.column().name), value);
}

void RewardModel::score_pass(const engine::MicroBatch& batch, std::span<const size_t> pass,
                             const std::vector<std::vector<size_t>>& steps, std::span<float> rewards) {
  const engine::Layout& layout = batch.layout();
  const RaggedSamples samples = some_samples({batch.read(columns::kTokens)}, layout, pass);
  std::vector<size_t> ends;
  std::vector<int64_t> places;  // of those among the tokens of the pass
  for (size_t i = 0; i < pass.size(); ++i) {
    for (const size_t end : steps[pass[i]]) {
      ends.push_back(end);
      places.push_back(layout.action_tokens[end] - layout.token_offsets[pass[i]] + samples.sample_offsets[i]);
    }
  }
  std::vector<float> values(ends.size());
  copy_entries(token_values(*model_, samples, places_tensor(places)), values);
  for (size_t i = 0; i < ends.size(); ++i) rewards[ends[i]] = values[i];
}

}  // namespace sluice::nodes
