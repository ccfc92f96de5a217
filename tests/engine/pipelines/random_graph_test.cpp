#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/error.h"
#include "base/numbers/random.h"
#include "engine/check/check.h"
#include "engine/contract/spec/pipeline_builder.h"
#include "engine/run/run.h"
#include "tests/engine/random_pipeline.h"
#include "tests/engine/toy_world.h"
#include "tests/files/forwarding_file_system.h"
#include "tests/sanitized.h"
#include "tests/temporary_folder.h"

namespace sluice::engine::random_graph_test {
namespace {

using toy::any_of_these;
using toy::budget_of;
using toy::divide_budget;
using toy::mix;
using toy::name_hash;
using toy::RandomPath;
using toy::spec_of;

using Row = std::map<std::string, double>;

/// The sequential program of one path: one iteration after the other, one node after the other, no micro-batches, no threads.
class Interpreter {
 public:
  /// `versions`: of the weights that the path trains, and of those that it samples from; null: none.
  Interpreter(const RandomPath& path, std::vector<uint64_t>* trained, const std::vector<uint64_t>* sampled)
      : path_(path), versions_(trained), sampled_(sampled) {}

  Row run(int64_t iteration, int64_t version) {
    run_iteration(iteration, sampled_ == nullptr ? 1 : sampled_->at(static_cast<size_t>(version)));
    return prefixed(row_);
  }

 private:
  using Groups = std::vector<int64_t>;                      // by index, ascending
  using Values = std::map<int64_t, std::vector<uint64_t>>;  // by group: of each sample

  // Of a path beside the main one all metrics begin with the name of its source.
  Row prefixed(const Row& row) const {
    if (path_.prefix.empty()) return row;
    Row all;
    for (const auto& [name, value] : row) all[path_.source() + "/" + name] = value;
    return all;
  }

  void run_iteration(int64_t iteration, uint64_t weights) {
    weights_ = weights;
    iteration_ = iteration;
    columns_.clear();
    streams_.clear();
    row_ = {{"data/tokens", 0}};
    streams_[""] = {};
    had_samples_ = false;
    kept_samples_ = kept_tokens_ = 1;
    draw(path_.groups * (refilling() == nullptr ? 1 : path_.most_draws));
    // Round after round, as long as the filter has kept too few of what was drawn.
    const RandomPath::Step* filter = refilling();
    int64_t drawn = filter == nullptr ? path_.groups : 0, kept = 0;
    while (filter != nullptr && kept < path_.groups && drawn < path_.groups * path_.most_draws) {
      const auto wanted = static_cast<int64_t>(std::ceil(static_cast<double>(path_.groups - kept) * path_.oversample));
      const int64_t end = std::min(drawn + wanted, path_.groups * path_.most_draws);
      for (; drawn < end; ++drawn) kept += passes_alone(*filter, drawn);
    }
    for (int64_t group = 0; group < drawn; ++group) {
      streams_[""].push_back(group);
      for (const uint64_t value : columns_["drawn"][group])
        row_["data/tokens"] += static_cast<double>(toy::sample_tokens(value, path_.worst));
    }
    row_["data/groups"] = static_cast<double>(drawn);
    for (const RandomPath::Step& step : path_.steps) step.filters() ? filter_groups(step) : mix_column(step);
    if (had_samples_ && !path_.measures()) row_["rollout/dropped_by_length"] = kept_samples_ - kept_tokens_;
    if (path_.trained) train();
  }

  const RandomPath::Step* refilling() const {
    const auto found = std::ranges::find_if(path_.steps, &RandomPath::Step::refills);
    return found == path_.steps.end() ? nullptr : &*found;
  }

  const RandomPath::Step& step_of(const std::string& name) const {
    return *std::ranges::find(path_.steps, name, &RandomPath::Step::name);
  }

  void draw(int64_t groups) {
    for (int64_t group = 0; group < groups; ++group) {
      const uint64_t origin = mix(static_cast<uint64_t>(iteration_), static_cast<uint64_t>(group));
      for (int64_t sample = 0; sample < path_.samples; ++sample) {
        columns_["drawn"][group].push_back(mix(mix(origin, static_cast<uint64_t>(sample)), weights_));
      }
    }
  }

  // A value of a column in front of which there is no barrier.
  uint64_t value_alone(const std::string& column, int64_t group, size_t sample) {
    if (column == "drawn") return columns_["drawn"][group][sample];
    uint64_t value = name_hash(path_.prefix + column);
    for (const std::string& read : step_of(column).reads) value = mix(value, value_alone(read, group, sample));
    return value;
  }

  bool passes_alone(const RandomPath::Step& filter, int64_t group) {
    if (!filter.stream.empty() && !passes_alone(step_of(filter.stream), group)) return false;
    uint64_t verdict = 0;
    for (size_t s = 0; s < static_cast<size_t>(path_.samples); ++s) {
      for (const std::string& read : filter.reads) verdict = mix(verdict, value_alone(read, group, s));
    }
    return verdict % static_cast<uint64_t>(filter.drop_one_in) != 0;
  }

  void filter_groups(const RandomPath::Step& step) {
    Groups kept;
    double dropped = 0, surplus = 0, samples = 0, kept_samples = 0, tokens = 0, kept_tokens = 0;
    for (const int64_t group : streams_[step.stream]) {
      uint64_t verdict = 0;
      for (size_t s = 0; s < static_cast<size_t>(path_.samples); ++s) {
        for (const std::string& read : step.reads) verdict = mix(verdict, columns_[read][group][s]);
      }
      if (verdict % static_cast<uint64_t>(step.drop_one_in) == 0)
        ++dropped;
      else if (step.refills && static_cast<int64_t>(kept.size()) == path_.groups)
        ++surplus;
      else
        kept.push_back(group);
      const double actions = actions_of(group), is_kept = !kept.empty() && kept.back() == group;
      tokens += actions, samples += static_cast<double>(path_.samples);
      kept_tokens += is_kept * actions, kept_samples += is_kept * static_cast<double>(path_.samples);
    }
    const std::string metrics = "filter/" + path_.prefix + step.name;
    row_[metrics + "/groups_kept"] = static_cast<double>(kept.size());
    row_[metrics + "/groups_dropped"] = dropped;
    if (step.refills) {
      row_[metrics + "/groups_surplus"] = surplus;
      row_[metrics + "/groups_missing"] = static_cast<double>(path_.groups) - static_cast<double>(kept.size());
    }
    if (samples > 0) {
      row_[metrics + "/dropped_samples"] = (samples - kept_samples) / samples;
      row_[metrics + "/dropped_tokens"] = (tokens - kept_tokens) / tokens;
      had_samples_ = true;
      kept_samples_ *= 1 - row_[metrics + "/dropped_samples"];
      kept_tokens_ *= 1 - row_[metrics + "/dropped_tokens"];
    }
    streams_[step.name] = kept;
  }

  double actions_of(int64_t group) {
    double actions = 0;
    for (const uint64_t value : columns_["drawn"][group])
      actions += static_cast<double>(toy::sample_tokens(value, path_.worst) - 1);
    return actions;
  }

  void mix_column(const RandomPath::Step& step) {
    const uint64_t name = name_hash(path_.prefix + step.name);
    uint64_t fold = mix(name, static_cast<uint64_t>(iteration_));
    Values& out = columns_[step.name];
    for (const int64_t group : streams_[step.stream]) {
      for (size_t s = 0; s < static_cast<size_t>(path_.samples); ++s) {
        uint64_t value = name;
        for (const std::string& read : step.reads) value = mix(value, columns_[read][group][s]);
        out[group].push_back(value);
        fold = mix(fold, value);
      }
    }
    if (step.barrier) {
      for (auto& [group, values] : out) {
        for (uint64_t& value : values) value = mix(value, fold);
      }
    }
    row_["mix/" + path_.prefix + step.name] = static_cast<double>(fold >> 12);
  }

  void train() {
    const RandomPath::Step& last = path_.steps.back();
    uint64_t gradient = 0;
    for (const int64_t group : streams_[last.filters() ? last.name : last.stream]) {
      for (const uint64_t value : columns_[path_.trained_column][group]) gradient = mix(gradient, value);
    }
    versions_->push_back(mix(versions_->back(), gradient));
    row_["policy/weights"] = static_cast<double>(versions_->back() >> 12);
  }

  const RandomPath& path_;
  std::vector<uint64_t>* const versions_;
  const std::vector<uint64_t>* const sampled_;
  uint64_t weights_ = 1;
  int64_t iteration_ = 0;
  std::map<std::string, Values> columns_;
  std::map<std::string, Groups> streams_;  // what arrives after each filter
  bool had_samples_ = false;               // some filter
  double kept_samples_ = 1, kept_tokens_ = 1;
  Row row_;
};

bool is_due(const RandomPath& path, int64_t iteration) {
  if (!path.measures()) return true;
  if (iteration + 1 == path.iterations || (path.before_training && iteration == 0)) return true;
  return path.every_iterations && (iteration + 1) % *path.every_iterations == 0;
}

int64_t version_of(const RandomPath& path, int64_t iteration) {
  if (path.sampled_model().empty()) return 0;
  if (!path.measures()) return std::max<int64_t>(0, iteration - path.lag);
  return path.before_training && iteration == 0 ? 0 : iteration + 1;
}

/// All paths. Those that measure come last in an iteration: they sample what it leaves.
std::vector<Row> sequential(const toy::RandomPipeline& paths) {
  std::map<std::string, std::vector<uint64_t>> versions;  // by model
  std::vector<const RandomPath*> leading, measuring;
  for (const RandomPath& other : paths.others) (other.measures() ? measuring : leading).push_back(&other);
  leading.insert(leading.begin(), &paths.main);
  for (const RandomPath* path : leading) {
    if (path->trained) versions[path->model()] = {1};
  }
  const auto run = [&](const RandomPath& path, int64_t iteration) {
    const auto found = [&](const std::string& model) { return versions.contains(model) ? &versions[model] : nullptr; };
    Interpreter interpreter(path, path.trained ? found(path.model()) : nullptr, found(path.sampled_model()));
    return interpreter.run(iteration, version_of(path, iteration));
  };
  std::vector<Row> rows(static_cast<size_t>(paths.main.iterations));
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto iteration = static_cast<int64_t>(i);
    for (const RandomPath* path : leading) rows[i].merge(run(*path, iteration));
    for (const RandomPath* path : measuring) {
      if (is_due(*path, iteration)) rows[i].merge(run(*path, iteration));
    }
  }
  return rows;
}

std::string message_of(const RunSummary& summary) {
  if (!summary.error) return {};
  try {
    std::rethrow_exception(summary.error);
  } catch (const std::exception& error) {
    return error.what();
  }
}

// 10,000 paths in all; a tenth where a sanitizer makes each many times slower.
constexpr uint64_t kPipelinesATest = tests::kSanitized ? 50 : 500;

class RandomGraph : public ::testing::TestWithParam<uint64_t> {};

// One to three paths; forks, joins, barriers, filters, lags and budgets at random, pauses at random, and samples that take the
// longer the more tokens they have, or the fewer: what comes out is what the sequential program gives, nothing stalls, every
// group is accounted for, and the budget holds at every step (TokenBudget itself throws when it does not).
TEST_P(RandomGraph, GivesTheSequentialProgramsResult) {
  Registry registry;
  toy::register_toys(registry);
  const TemporaryFolder folder;
  for (uint64_t seed = GetParam() * kPipelinesATest; seed < (GetParam() + 1) * kPipelinesATest; ++seed) {
    SCOPED_TRACE(seed);
    toy::RandomPipeline paths = toy::random_pipeline(seed);
    const int64_t budget = divide_budget(paths, registry);
    const CheckResult checked = check(spec_of(paths, seed, seed % 2 == 0 ? 0 : 75, budget), registry);
    ASSERT_TRUE(checked.plan) << render(checked.problems);
    std::vector<IterationReport> reports;
    // Some leave all the files of a run, whose writers watch every executor.
    const std::filesystem::path files = seed % 10 == 0 ? folder.path() : std::filesystem::path();
    engine::Run run(*checked.plan, {.folder = files,
                                    .files = unsynced_disk(),
                                    .on_executor_start = {},
                                    .on_iteration = [&](const IterationReport& r) { reports.push_back(r); }});
    const RunSummary summary = run.execute();
    ASSERT_EQ(summary.end, RunEnd::kDone) << message_of(summary);
    EXPECT_EQ(run.status().tokens_in_flight, 0) << "credit was lost";
    EXPECT_EQ(run.status().column_bytes, 0) << "columns were lost";
    for (const RunStatus::Edge& edge : run.status().edges) {
      EXPECT_EQ(edge.micro_batches + edge.tokens + edge.bytes, 0)
          << "something is left between " << edge.from << " and " << edge.to;
    }
    const std::vector<Row> expected = sequential(paths);
    ASSERT_EQ(reports.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(reports[i].iteration, static_cast<int64_t>(i));
      EXPECT_LE(reports[i].metric("engine/tokens_in_flight_max"), static_cast<double>(budget));
      EXPECT_LE(reports[i].metric("memory/column_bytes_max"), static_cast<double>(checked.plan->memory.column_bytes));
      for (const auto& [name, value] : expected[i]) ASSERT_EQ(reports[i].metric(name), value) << name << " of iteration " << i;
      for (const RandomPath& other : paths.others) {
        const bool measured = !std::isnan(reports[i].metric(other.source() + "/data/groups"));
        ASSERT_EQ(measured, is_due(other, static_cast<int64_t>(i))) << other.source() << " in iteration " << i;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomGraph, ::testing::Range<uint64_t>(0, 20));

// Whatever node fails, and wherever: the run ends, says which node and which micro-batch, and gives no later iteration out.
TEST(RandomGraph, EndsAndNamesTheNodeThatFails) {
  Registry registry;
  toy::register_toys(registry);
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    const RandomPath path = toy::random_path(seed);
    RandomStream random(seed, 1);
    const RandomPath::Step& culprit = any_of_these(path.steps, random);
    if (culprit.filters() || !culprit.stream.empty()) continue;  // what is dropped cannot fail
    const auto iteration = static_cast<int64_t>(random.below(static_cast<uint64_t>(path.iterations)));
    PipelineSpec spec = spec_of(path, seed, 50, budget_of(path, registry));
    for (NodeSpec& node : spec.nodes) {
      if (node.name.text == culprit.name)
        node.params.entries.push_back({"fail_in_iteration", {}, {.data = iteration, .where = {}, .base = {}}});
    }
    const CheckResult checked = check(spec, registry);
    ASSERT_TRUE(checked.plan) << render(checked.problems);
    engine::Run run(*checked.plan, {});
    const RunSummary summary = run.execute();
    ASSERT_EQ(summary.end, RunEnd::kFailed);
    EXPECT_LE(summary.iterations, iteration + path.lag + 1);
    EXPECT_THAT(message_of(summary), ::testing::AllOf(::testing::HasSubstr("node '" + culprit.name + "' failed"),
                                                      ::testing::HasSubstr("iteration " + std::to_string(iteration)),
                                                      ::testing::HasSubstr("as asked")));
  }
}

// A trainer's packets wait for a publication that a failure makes impossible: they must not keep the run from ending.
TEST(Failure, EndsARunWhoseTrainerWaitsForAPublication) {
  Registry registry;
  toy::register_toys(registry);
  const Array drawn{{.data = std::string("drawn"), .where = {}, .base = {}}};
  for (int repeat = 0; repeat < 20; ++repeat) {
    PipelineBuilder builder("path", 8);
    builder.budget(64, 8).set("runtime", "cores", int64_t{2}).set("schedule", "policy_lag", int64_t{3}).model("policy", {});
    builder.node("source", "toy_source", {}, {{"groups_per_iteration", int64_t{4}}});
    builder.node("rollout", "toy_rollout", {"source"}, {{"model", std::string("policy")}}, "cpu:1");
    builder.node("train", "toy_train", {"rollout"}, {{"model", std::string("policy")}, {"reads", std::string("drawn")}});
    builder.node("late", "toy_mix", {"train"},
                 {{"reads", drawn},
                  {"writes", std::string("late")},
                  {"barrier", true},
                  {"pause_us", int64_t{2000}},
                  {"fail_in_iteration", int64_t{1}}});
    builder.node("publish", "toy_publish", {"late"}, {{"model", std::string("policy")}});
    const CheckResult checked = check(builder.build(), registry);
    ASSERT_TRUE(checked.plan) << render(checked.problems);
    engine::Run run(*checked.plan, {});
    EXPECT_EQ(run.execute().end, RunEnd::kFailed);
  }
}

}  // namespace
}  // namespace sluice::engine::random_graph_test
