#include "nodes/scorers/failed_samples.h"

#include <algorithm>

#include "base/error.h"
#include "base/log.h"
#include "base/text/shown_text.h"
#include "base/text/strings.h"
#include "text/unicode/oniguruma.h"

namespace sluice::nodes {
namespace {

struct Sum {
  double scores = 0;
  double count = 0;
};

// Sample 1 of group 7, "The answer ...".
std::string name_of(size_t sample, const engine::MicroBatch& batch, const ScoredTexts& texts) {
  size_t place = 0;
  while (place < sample && texts.group_of(sample - place - 1) == texts.group_of(sample)) ++place;
  return "sample " + std::to_string(place) + " of group " + std::to_string(batch.group_index(texts.group_of(sample))) + ", " +
         shown_text(texts.text(sample));
}

}  // namespace

void FailedSamples::settle(const OnErrorParams& params, const std::string& node, engine::MicroBatch& batch, ScoredTexts& texts,
                           engine::MetricsRecorder& metrics) const {
  if (params.on_error == OnError::kSkip) mask(node, texts.size(), batch, metrics);
  if (failed_.empty()) return;
  const auto first = std::ranges::min_element(failed_, {}, &std::pair<size_t, std::string>::first);
  const std::string name = name_of(first->first, batch, texts);
  const std::string several = plural(static_cast<int64_t>(failed_.size()), "sample") + " of " + std::to_string(texts.size()) +
                              " could not be scored, the first of them " + name;
  if (params.on_error == OnError::kFail) {
    throw UserError({.where = {},
                     .message = first->second,
                     .notes = {failed_.size() == 1 ? "it was to score " + name : several},
                     .help = "on_error = \"skip\" or \"value\" goes on without the scores of such samples"});
  }
  metrics.sum("reward/" + node + "/failed_samples", static_cast<double>(failed_.size()));
  log_warning("node '" + node + "', iteration " + std::to_string(batch.iteration()) + ": " + several + ": " + first->second);

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
    if (params.on_error == OnError::kSkip) texts.leave_out(sample);
  }
}

// Where a text is of a group, as a baseline is, none of its samples has anything to be compared with.
void FailedSamples::mask(const std::string& node, size_t texts, engine::MicroBatch& batch,
                         engine::MetricsRecorder& metrics) const {
  std::vector<bool> failed(texts), masked(batch.samples());
  for (const auto& [text, what] : failed_) failed[text] = true;
  const std::vector<size_t> groups = group_of_samples(batch.layout());
  for (size_t s = 0; s < masked.size(); ++s) masked[s] = failed[texts == masked.size() ? s : groups[s]];
  const std::vector<engine::Range> actions = batch.actions_by_sample();
  const auto mask = batch.write(columns::kMask);  // [A], zero
  for (size_t s = 0; s < masked.size(); ++s) {
    record_sample(node, masked[s], actions[s].size(), metrics);
    if (!masked[s]) std::ranges::fill(mask.subspan(actions[s].begin, actions[s].size()), 1.0F);
  }
}

void score_each(ScoredTexts& texts, FailedSamples& failed, FunctionRef<float(size_t)> score_of) {
  for (size_t i = 0; i < texts.size(); ++i) {
    try {
      texts.score(i) = score_of(i);
    } catch (const text::RegexGaveUp& error) {
      failed.add(i, error.message());
    }
  }
}

}  // namespace sluice::nodes
