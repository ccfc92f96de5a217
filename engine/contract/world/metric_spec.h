#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sluice::engine {

/// How the values that are recorded under a name become the value of an iteration.
enum class Metric {
  kMean,     // weighted mean of all
  kMoments,  // two metrics: NAME_mean and NAME_std (population) of all
  kSum,
  kMaximum,
  kValue,  // the last one
};

/// A metric that a node records, as its contract declares it. A name begins with its group: "policy/loss", "reward/score_mean".
/// Where it has a part NODE, as in "filter/NODE/groups_kept", that part is the node's name.
///
/// What depends on timing or memory is in the groups time/, memory/ and engine/. Everything else repeats exactly.
struct MetricSpec {
  std::string name;  // of kMoments without _mean and _std
  Metric kind = Metric::kMean;
  std::string doc;
  bool is_family = false;       // every name that begins with `name`: what a user's function makes up as it runs
  std::string of_mixture = {};  // a key that names a model: recorded only where that is a mixture of experts; empty: always
};

/// The names that stand in metrics.jsonl: one, or the two of kMoments. Not for families.
std::vector<std::string> names_of(const MetricSpec& metric);

/// `name` with the name of its node in place of the part NODE.
std::string metric_of_node(const std::string& name, const std::string& node);

/// Why no metric can have that name, such as "it is empty": it is UTF-8 without blanks and control characters, and no part of it
/// is empty. Empty: it can.
std::string fault_of_metric_name(const std::string& name);

/// How people see it: "reward/score_mean, reward/score_std", "reward/NODE/...".
std::string shown_name(const MetricSpec& metric);

/// `name` of a node with that metrics_prefix: "held_out/reward/score_mean". What depends on timing stays in its group:
/// "time/held_out/...". An empty prefix changes nothing.
std::string prefixed_metric(const std::string& prefix, const std::string& name);

/// True of names in time/, memory/ and engine/.
bool depends_on_timing(std::string_view name);

/// The one of `names` that `wanted` may mean: with another group or none, or with a misspelling. Empty: none.
std::string nearest_metric(const std::string& wanted, const std::vector<std::string>& names);

}  // namespace sluice::engine
