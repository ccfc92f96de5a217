#include "nodes/sinks/evaluate_samples.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <span>
#include <vector>

#include "base/error.h"
#include "base/text/strings.h"
#include "nodes/columns/action_mask.h"
#include "nodes/columns/columns.h"
#include "nodes/columns/score_columns.h"

namespace sluice::nodes {
namespace {

bool is_count(double k) { return k >= 1 && k <= 1e6 && k == std::floor(k); }

void check_params(const EvaluateSamplesParams& params, engine::Findings& findings) {
  if (params.k.empty()) findings.error("k", "k is empty: there is nothing to tell", "k = [1]");
  if (!std::ranges::all_of(params.k, is_count)) findings.error("k", "k holds what is no number of samples", "k = [1, 4]");
  try {
    AnswerFinder(params.extract, "extract");
  } catch (const UserError& error) {
    findings.error("extract", error);
  }
}

// Whether it has no part in statistics.
std::string metric_at(const std::string& what, size_t k) { return "reward/" + what + "_at_" + std::to_string(k); }

std::vector<std::string> metrics_at(const std::string& what, const EvaluateSamplesParams& params) {
  std::vector<std::string> names;
  for (const double k : params.k) names.push_back(metric_at(what, static_cast<size_t>(k)));
  return names;
}

}  // namespace

void EvaluateSamples::describe(engine::Contract<EvaluateSamplesParams>& c) {
  using P = EvaluateSamplesParams;
  c.type("evaluate_samples", "pass@k and majority@k of each group's samples");
  c.param("k", &P::k).doc("numbers of samples to tell metrics for; each at most the samples of a group");
  c.param("least_score", &P::least_score).doc("a sample with at least this score is right");
  c.param("extract", &P::extract)
      .doc(
          "regular expression whose last match (its group 1, if it has one) is the answer that votes; empty: the whole response");
  c.param("normalize", &P::normalize)
      .doc("which answers are the same: none: the same text, text: case and blanks aside, number: the same number");
  c.reads(columns::kScore, columns::kResponse);
  c.reads_if_written(columns::kMask);
  c.needs([](const P& params, engine::NodeNeeds& needs) {
    for (const double k : params.k) needs.least_samples = std::max(needs.least_samples, static_cast<int64_t>(k));
  });
  c.check(check_params);
  c.metrics("reward/pass_at_K", engine::Metric::kMean,
            "for each K of k: chance that one of K samples is right, mean over the groups",
            [](const P& params) { return metrics_at("pass", params); });
  c.metric("reward/answers_not_read", engine::Metric::kSum,
           "responses on which extract gave up, where there were any: they do not vote");
  c.metrics("reward/maj_at_K", engine::Metric::kMean,
            "for each K of k: how right the commonest answer of K samples is, mean over the groups",
            [](const P& params) { return metrics_at("maj", params); });
}

EvaluateSamples::EvaluateSamples(const EvaluateSamplesParams& params, engine::NodeResources& resources)
    : params_(params), finder_(params.extract, "node '" + resources.node + "', extract"), metrics_(*resources.metrics) {}

void EvaluateSamples::process(engine::MicroBatch& batch) {
  const auto scores = scores_that_count(batch);              // [S]
  const std::vector<bool> counted = counted_samples(batch);  // [S]
  const auto responses = batch.read(columns::kResponse);     // [S]
  size_t group = 0;
  for (const engine::Range samples : batch.layout().samples_by_group()) {
    std::vector<Vote> votes;
    for (size_t s = samples.begin; s < samples.end; ++s) {
      if (counted[s]) votes.push_back({.answer = answer_in(responses[s]), .right = is_at_least(scores[s], params_.least_score)});
    }
    const bool some_masked = votes.size() < samples.size();
    const auto right = std::ranges::count(votes, true, &Vote::right);
    for (const double wanted : params_.k) {
      const auto k = static_cast<size_t>(wanted);
      if (votes.size() < k && some_masked) continue;
      if (votes.size() < k) {
        throw UserError("group " + std::to_string(batch.group_index(group)) + " has " +
                            plural(static_cast<int64_t>(votes.size()), "sample") + ", k names " + std::to_string(k),
                        "draw more (samples_per_prompt), or leave that k out");
      }
      metrics_.mean(metric_at("pass", k), pass_at(static_cast<int64_t>(votes.size()), right, static_cast<int64_t>(k)));
      double majorities = 0;
      const size_t runs = votes.size() / k;
      for (size_t run = 0; run < runs; ++run) majorities += majority(std::span(votes).subspan(run * k, k));
      metrics_.mean(metric_at("maj", k), majorities / static_cast<double>(runs));
    }
    ++group;
  }
}

std::optional<std::string> EvaluateSamples::answer_in(const std::string& response) {
  try {
    const auto found = finder_.find(response);
    return found ? canonical_answer(*found, params_.normalize) : std::nullopt;
  } catch (const text::RegexGaveUp&) {
    metrics_.sum("reward/answers_not_read", 1);
    return std::nullopt;
  }
}

double EvaluateSamples::majority(std::span<const Vote> votes) {
  struct Tally {
    double votes = 0;
    double right = 0;
  };
  std::map<std::string, Tally> tallies;
  for (const Vote& vote : votes) {
    if (!vote.answer) continue;
    Tally& tally = tallies[*vote.answer];
    tally.votes += 1;
    tally.right += vote.right ? 1 : 0;
  }
  double most = 0, rightness = 0, tied = 0;
  for (const auto& [answer, tally] : tallies) {
    if (tally.votes > most) most = tally.votes, rightness = tied = 0;
    if (tally.votes < most) continue;
    rightness += tally.right / tally.votes;
    tied += 1;
  }
  return tied > 0 ? rightness / tied : 0;
}

double pass_at(int64_t samples, int64_t right, int64_t drawn) {
  if (samples - right < drawn) return 1;
  double none = 1;  // C(n - c, k) / C(n, k), factor by factor
  for (int64_t i = samples - right + 1; i <= samples; ++i) none *= 1 - static_cast<double>(drawn) / static_cast<double>(i);
  return 1 - none;
}

}  // namespace sluice::nodes
