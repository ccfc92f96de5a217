// What holds of every objective that the program has: a new one is tested here as soon as it is registered.
#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "nodes/objectives/preference/preference_objective.h"
#include "tests/nodes/objectives/random_samples.h"
#include "tests/nodes/objectives/registered_objectives.h"

namespace sluice::nodes::objective_properties_test {
namespace {

using testing::expect_gradient_is_numeric;
using testing::Loss;
using testing::made_objective;
using testing::packed;
using testing::random_samples;
using testing::RandomSample;
using testing::registered;
using testing::tensor;
using testing::Vector;
using testing::vector_of;

using Order = std::vector<size_t>;  // samples, by their number

// What a train node adds up over an optimizer step.
struct Sums {
  double loss = 0, count = 0;
  std::map<size_t, Vector> gradients;                      // of each sample
  std::map<std::string, std::pair<double, double>> means;  // metrics: sum and weight
  std::map<std::string, double> maxima;
};

void add(const Sums& from, Sums& to) {
  to.loss += from.loss, to.count += from.count;
  to.gradients.insert(from.gradients.begin(), from.gradients.end());
  for (const auto& [name, mean] : from.means) to.means[name].first += mean.first, to.means[name].second += mean.second;
  for (const auto& [name, value] : from.maxima)
    to.maxima[name] = to.maxima.contains(name) ? std::max(to.maxima[name], value) : value;
}

void add_metrics(const std::vector<ObjectiveMetric>& metrics, Sums& to) {
  for (const ObjectiveMetric& metric : metrics) {
    Sums one;
    if (metric.kind == ObjectiveMetric::Kind::kMaximum)
      one.maxima[metric.name] = metric.value;
    else
      one.means[metric.name] = {metric.value * metric.weight, metric.weight};
    add(one, to);
  }
}

void set_gradients(const at::Tensor& x, const Order& order, const std::vector<int64_t>& offsets, Sums& sums) {
  const Vector all = x.grad().defined() ? vector_of(x.grad().to(at::kDouble)) : Vector(static_cast<size_t>(x.numel()));
  for (size_t i = 0; i < order.size(); ++i)
    sums.gradients[order[i]].assign(all.begin() + offsets[i], all.begin() + offsets[i + 1]);
}

// Of the samples of one micro-batch.
using Piece = std::function<Sums(const Order&)>;

Piece policy_piece(const Objective& objective, const std::vector<RandomSample>& samples, at::ScalarType type) {
  return [&, type, step = testing::found_in(objective, samples, type)](const Order& order) {
    ObjectiveInputs inputs = packed(samples, order, type);
    inputs.step = step;
    const ObjectiveResult result = objective.compute(inputs);
    result.loss_sum.backward();
    Sums sums{.loss = result.loss_sum.item().toDouble(), .count = result.count, .gradients = {}, .means = {}, .maxima = {}};
    set_gradients(inputs.logprobs, order, inputs.action_offsets, sums);
    add_metrics(result.metrics, sums);
    return sums;
  };
}

// Log-probabilities stand for values here, advantages for returns.
Piece value_piece(const ValueObjective& objective, const std::vector<RandomSample>& samples, at::ScalarType type) {
  return [&, type](const Order& order) {
    const ObjectiveInputs inputs = packed(samples, order, type);
    const ObjectiveResult result = objective.compute(
        {.values = inputs.logprobs, .old_values = inputs.old_logprobs, .returns = inputs.advantages, .mask = inputs.mask});
    result.loss_sum.backward();
    Sums sums{.loss = result.loss_sum.item().toDouble(), .count = result.count, .gradients = {}, .means = {}, .maxima = {}};
    set_gradients(inputs.logprobs, order, inputs.action_offsets, sums);
    add_metrics(result.metrics, sums);
    return sums;
  };
}

// The first four entries of a sample stand for the log-probabilities of a pair: policy and reference of the chosen, of the other.
Piece preference_piece(const PreferenceObjective& objective, const std::vector<Vector>& pairs, at::ScalarType type) {
  return [&, type](const Order& order) {
    const auto column = [&](size_t entry) {
      Vector all;
      for (const size_t pair : order) all.push_back(pairs[pair][entry]);
      return tensor(all).to(type);
    };
    const PreferenceInputs inputs{
        .chosen = {.policy = column(0).requires_grad_(true), .reference = column(1), .lengths = column(4)},
        .rejected = {.policy = column(2), .reference = column(3), .lengths = column(5)}};
    const PreferenceTerms terms = objective.compute(inputs);
    terms.losses.sum().backward();
    Sums sums;
    sums.loss = terms.losses.sum().item().toDouble(), sums.count = static_cast<double>(order.size());
    std::vector<int64_t> offsets(order.size() + 1);
    std::iota(offsets.begin(), offsets.end(), 0);
    set_gradients(inputs.chosen.policy, order, offsets, sums);
    return sums;
  };
}

// Micro-batches of several ranks: samples in any order, cut anywhere between them.
std::vector<std::vector<Order>> dealt_out(size_t samples, std::mt19937& random) {
  Order shuffled(samples);
  std::iota(shuffled.begin(), shuffled.end(), size_t{0});
  std::shuffle(shuffled.begin(), shuffled.end(), random);
  std::vector<std::vector<Order>> ranks(std::uniform_int_distribution<size_t>(1, 3)(random), std::vector<Order>(1));
  for (const size_t sample : shuffled) {
    std::vector<Order>& batches = ranks[std::uniform_int_distribution<size_t>(0, ranks.size() - 1)(random)];
    if (std::uniform_int_distribution<int>(0, 1)(random) == 0) batches.emplace_back();
    batches.back().push_back(sample);
  }
  return ranks;
}

void expect_close(double actual, double expected, double scale, double tolerance, const std::string& what) {
  EXPECT_NEAR(actual, expected, tolerance * std::max(1.0, scale)) << what;
}

// The property: what all micro-batches of all ranks add up to is what one micro-batch of everything gives.
void expect_same_in_pieces(const Piece& piece, size_t samples, std::mt19937& random, double tolerance) {
  Order everything(samples);
  std::iota(everything.begin(), everything.end(), size_t{0});
  const Sums whole = piece(everything);
  Sums parts;
  double scale = 0;  // losses of samples may cancel
  for (const auto& rank : dealt_out(samples, random)) {
    Sums of_rank;
    for (const Order& batch : rank) add(piece(batch), of_rank);
    scale += std::abs(of_rank.loss);
    add(of_rank, parts);
  }
  expect_close(parts.loss, whole.loss, scale, tolerance, "loss");
  expect_close(parts.count, whole.count, whole.count, tolerance, "count");
  for (const auto& [sample, expected] : whole.gradients) {
    const Vector& actual = parts.gradients.at(sample);
    ASSERT_EQ(actual.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i)
      expect_close(actual[i], expected[i], std::abs(expected[i]), tolerance, "gradient of sample " + std::to_string(sample));
  }
  ASSERT_EQ(parts.means.size(), whole.means.size());
  for (const auto& [name, mean] : whole.means)
    expect_close(parts.means.at(name).first / parts.means.at(name).second, mean.first / mean.second,
                 std::abs(mean.first / mean.second), tolerance, name);
  for (const auto& [name, value] : whole.maxima) expect_close(parts.maxima.at(name), value, std::abs(value), tolerance, name);
}

constexpr double kInDouble = 1e-12, kInFloat = 1e-5;

void expect_same_in_pieces(const std::function<Piece(at::ScalarType)>& piece, size_t samples, std::mt19937& random) {
  expect_same_in_pieces(piece(at::kDouble), samples, random, kInDouble);
  expect_same_in_pieces(piece(at::kFloat), samples, random, kInFloat);
}

// Each setting of what all policy objectives have, so that every way through policy_loss.cpp is gone with each of them.
std::vector<std::string> corrections() {
  std::vector<std::string> all{""};
  for (const std::string correction : {"truncate", "mask"}) {
    for (const std::string level : {"token", "sequence", "geometric"})
      all.push_back("correction = \"" + correction + "\"\ncorrection_level = \"" + level + "\"\ncorrection_min = 0.5\n");
  }
  for (const std::string rejection : {"token", "sequence_sum", "sequence_mean", "sequence_max"}) {
    all.push_back("rejection = \"" + rejection + "\"\nrejection_max = 0.3\n");
    all.push_back("rejection = \"" + rejection +
                  "\"\nrejection_estimator = \"k1\"\nrejection_max = 0.8\ncorrection = \"truncate\"\n");
  }
  return all;
}

std::vector<std::string> shared_settings() {
  std::vector<std::string> all;
  for (const std::string aggregation : {"token_mean", "sample_mean", "sequence_sum"}) {
    for (const std::string& correction : corrections()) {
      all.push_back("aggregation = \"" + aggregation + "\"\nkl_coefficient = 0.3\nentropy_coefficient = 0.2\n" + correction);
      if (aggregation == "sequence_sum") all.back() += "sequence_constant = 7\n";
    }
  }
  return all;
}

const std::set<std::string> kSharedKeys{"aggregation",         "correction",   "correction_level", "rejection",
                                        "rejection_estimator", "kl_estimator", "kl_gradient"};
const std::map<std::string, std::string> kNeededBeside{
    {"noise", "label_smoothing = 0.1\n"}};  // what a choice has no effect without

// The defaults, and each choice of each key that the objective has for itself.
std::vector<std::string> own_settings(const engine::ComponentType& type) {
  std::vector<std::string> all{""};
  for (const engine::Param& param : type.params.params()) {
    if (kSharedKeys.contains(param.info.name)) continue;
    const auto beside = kNeededBeside.find(param.info.name);
    for (const std::string& choice : param.info.choices)
      all.push_back((beside == kNeededBeside.end() ? "" : beside->second) + param.info.name + " = \"" + choice + "\"\n");
  }
  return all;
}

TEST(ObjectiveProperty, PoliciesLoseTheSameInAnyMicroBatchesOfAnyRanks) {
  std::mt19937 random(5);
  for (const engine::ComponentType* type : registered<Objective>()) {
    for (const std::string& own : own_settings(*type)) {
      for (const std::string& shared : shared_settings()) {
        SCOPED_TRACE(type->type + "\n" + own + shared);
        const auto objective = made_objective<Objective>(type->type, own + shared);
        ASSERT_NE(objective, nullptr);
        const std::vector<RandomSample> samples = random_samples(random, 7);
        expect_same_in_pieces([&](at::ScalarType dtype) { return policy_piece(*objective, samples, dtype); }, samples.size(),
                              random);
      }
    }
  }
}

TEST(ObjectiveProperty, CriticsLoseTheSameInAnyMicroBatchesOfAnyRanks) {
  std::mt19937 random(6);
  for (const engine::ComponentType* type : registered<ValueObjective>()) {
    for (const std::string& own : own_settings(*type)) {
      SCOPED_TRACE(type->type + "\n" + own);
      const auto objective = made_objective<ValueObjective>(type->type, own);
      ASSERT_NE(objective, nullptr);
      for (int round = 0; round < 20; ++round) {
        const std::vector<RandomSample> samples = random_samples(random, 7);
        expect_same_in_pieces([&](at::ScalarType dtype) { return value_piece(*objective, samples, dtype); }, samples.size(),
                              random);
      }
    }
  }
}

TEST(ObjectiveProperty, PairsLoseTheSameInAnyMicroBatchesOfAnyRanks) {
  std::mt19937 random(7);
  std::normal_distribution<double> normal;
  for (const engine::ComponentType* type : registered<PreferenceObjective>()) {
    for (const std::string& own : own_settings(*type)) {
      SCOPED_TRACE(type->type + "\n" + own);
      const auto objective = made_objective<PreferenceObjective>(type->type, own);
      ASSERT_NE(objective, nullptr);
      for (int round = 0; round < 5; ++round) {
        std::vector<Vector> pairs(9);
        for (Vector& pair : pairs)
          pair = {-5 + normal(random), -5 + normal(random), -5 + normal(random), -5 + normal(random), 4, 7};
        expect_same_in_pieces([&](at::ScalarType dtype) { return preference_piece(*objective, pairs, dtype); }, pairs.size(),
                              random);
      }
    }
  }
}

// Policy gradients that a constant weighs: their gradient is not that of their value, by definition. Their numbers are those of
// other systems (policy_reference_test.cpp).
const std::set<std::string> kWeighedByConstants{"cispo", "vespo"};

// What looks at a step may choose actions by their size, and the last one chosen stands on the edge: of these
// step_objectives_test.cpp has differences that no choice stands in.
bool chooses_by_size(const engine::ComponentType& type) { return made_objective<Objective>(type.type, "")->looks() > 0; }

TEST(ObjectiveProperty, GradientsOfPoliciesAgreeWithDifferences) {
  std::mt19937 random(8);
  for (const engine::ComponentType* type : registered<Objective>()) {
    if (kWeighedByConstants.contains(type->type) || chooses_by_size(*type)) continue;
    for (const std::string& own : own_settings(*type)) {
      for (const std::string& shared : shared_settings()) {
        SCOPED_TRACE(type->type + "\n" + own + shared);
        const auto objective = made_objective<Objective>(type->type, own + shared);
        ASSERT_NE(objective, nullptr);
        const std::vector<RandomSample> samples{testing::random_sample(random, 4), testing::random_sample(random, 2)};
        const ObjectiveInputs inputs = packed(samples, {0, 1});
        const Loss loss = [&](const at::Tensor& logprobs) {
          ObjectiveInputs moved = inputs;
          moved.logprobs = logprobs;
          return objective->compute(moved);
        };
        expect_gradient_is_numeric(loss, vector_of(inputs.logprobs), 1e-5);
      }
    }
  }
}

TEST(ObjectiveProperty, GradientsOfCriticsAgreeWithDifferences) {
  std::mt19937 random(9);
  for (const engine::ComponentType* type : registered<ValueObjective>()) {
    for (const std::string& own : own_settings(*type)) {
      SCOPED_TRACE(type->type + "\n" + own);
      const auto objective = made_objective<ValueObjective>(type->type, own);
      ASSERT_NE(objective, nullptr);
      for (int round = 0; round < 10; ++round) {
        const ObjectiveInputs inputs = packed({testing::random_sample(random, 6)}, {0});
        const Loss loss = [&](const at::Tensor& values) {
          return objective->compute(
              {.values = values, .old_values = inputs.old_logprobs, .returns = inputs.advantages, .mask = inputs.mask});
        };
        expect_gradient_is_numeric(loss, vector_of(inputs.logprobs), 1e-5);
      }
    }
  }
}

// A type that is registered and not met above would be a hole in all of them.
TEST(ObjectiveProperty, ThereAreObjectivesOfEachKind) {
  EXPECT_GE(registered<Objective>().size(), 8u);
  EXPECT_GE(registered<ValueObjective>().size(), 3u);
  EXPECT_GE(registered<PreferenceObjective>().size(), 4u);
}

}  // namespace
}  // namespace sluice::nodes::objective_properties_test
