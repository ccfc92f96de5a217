#include "nodes/scorers/failed_samples.h"

#include <algorithm>

#include "base/error.h"
#include "base/log.h"
#include "base/strings.h"

namespace sluice::nodes {
namespace {

struct Sum {
  double scores = 0;
  double count = 0;
};

}  // namespace

void FailedSamples::settle(const OnErrorParams& params, const std::string& node, ScoredTexts& texts,
                           engine::MetricsRecorder& metrics) const {
  if (params.on_error != OnError::kFail) metrics.sum(node + "/failed_samples", static_cast<double>(failed_.size()));
  if (failed_.empty()) return;
  const auto first = std::ranges::min_element(failed_, {}, &std::pair<size_t, std::string>::first);
  if (params.on_error == OnError::kFail) {
    throw UserError(first->second, "on_error = \"skip\" or \"value\" goes on without the scores of such samples");
  }
  log_warning("node '" + node + "': " + plural(static_cast<int64_t>(failed_.size()), "sample") + " of " +
              std::to_string(texts.size()) + " could not be scored: " + first->second);

  std::vector<bool> scored(texts.size(), true);
  for (const auto& [sample, what] : failed_) scored[sample] = false;
  std::vector<Sum> groups(texts.size() == 0 ? 0 : texts.group_of(texts.size() - 1) + 1);  // of those that were scored
  for (size_t i = 0; i < texts.size(); ++i) {
    if (scored[i]) groups[texts.group_of(i)].scores += texts.score(i), groups[texts.group_of(i)].count += 1;
  }
  for (const auto& [sample, what] : failed_) {
    const Sum& others = groups[texts.group_of(sample)];
    const double mean = others.count > 0 ? others.scores / others.count : 0;
    texts.score(sample) = static_cast<float>(params.on_error == OnError::kSkip ? mean : params.error_value);
  }
}

}  // namespace sluice::nodes
