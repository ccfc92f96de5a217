#include "nodes/sinks/write_dataset.h"

#include <algorithm>
#include <span>
#include <vector>

#include "nodes/columns/action_mask.h"
#include "nodes/columns/column_json.h"
#include "nodes/columns/columns.h"
#include "nodes/columns/score_columns.h"

namespace sluice::nodes {

using engine::MicroBatch;
using engine::Range;

namespace {

// The samples of a micro-batch as members of rows.
class Texts {
 public:
  explicit Texts(const MicroBatch& batch) : prompts_(batch.read(columns::kPrompt)), responses_(batch.read(columns::kResponse)) {
    if (batch.has(columns::kMessages.spec())) messages_ = batch.read(columns::kMessages);
  }

  Json prompt(size_t group) const {
    return is_conversation(group) ? parse_json(messages_[group], "messages") : Json(prompts_[group]);
  }
  Json answer(size_t group, size_t sample) const {
    if (!is_conversation(group)) return responses_[sample];
    return Json::array({{{"role", "assistant"}, {"content", responses_[sample]}}});
  }

 private:
  bool is_conversation(size_t group) const { return !messages_.empty() && !messages_[group].empty(); }

  std::span<const std::string> prompts_;    // [G]
  std::span<const std::string> responses_;  // [S]
  std::span<const std::string> messages_;   // [G], or empty
};

// The samples of which the mask keeps an action; without a mask all, also those without actions.
std::vector<size_t> kept_samples(const ActionMask& mask, const std::vector<Range>& actions, Range samples) {
  std::vector<size_t> kept;
  for (size_t s = samples.begin; s < samples.end; ++s)
    if (mask.weights().empty() || mask.kept(actions[s]) > 0) kept.push_back(s);
  return kept;
}

// Empty: there are no two different scores.
std::vector<Json> pair_of(const Texts& texts, std::span<const float> scores, size_t group, const std::vector<size_t>& kept) {
  const auto score_of = [&](size_t sample) { return scores[sample]; };
  const auto best = std::ranges::max_element(kept, {}, score_of), worst = std::ranges::min_element(kept, {}, score_of);
  if (kept.empty() || scores[*best] == scores[*worst]) return {};
  return {Json{{"prompt", texts.prompt(group)},
               {"chosen", texts.answer(group, *best)},
               {"rejected", texts.answer(group, *worst)},
               {"chosen_score", to_json(scores[*best])},
               {"rejected_score", to_json(scores[*worst])},
               {"margin", to_json(scores[*best] - scores[*worst])}}};
}

std::vector<Json> examples_of(const Texts& texts, std::span<const float> scores, size_t group, const std::vector<size_t>& kept) {
  std::vector<Json> rows;
  for (const size_t sample : kept) {
    Json& row = rows.emplace_back(Json{{"prompt", texts.prompt(group)}, {"completion", texts.answer(group, sample)}});
    if (!scores.empty()) row["score"] = to_json(scores[sample]);
  }
  return rows;
}

}  // namespace

void WriteDataset::describe(engine::Contract<WriteDatasetParams>& c) {
  using P = WriteDatasetParams;
  c.type("write_dataset", "samples as rows to learn from, appended to a file of the run folder");
  c.param("path", &P::path).doc("the file, in the run folder or below it; folders on the way are made");
  c.param("form", &P::form).doc("examples: each sample that the mask keeps; pairs: of each group the best and the worst of them");
  c.reads(columns::kPrompt, columns::kResponse);
  c.reads_if([](const P& params) { return params.form == DatasetForm::kPairs; }, columns::kScore);
  c.reads_if_written(columns::kScore, columns::kMessages, columns::kMask);
  c.needs([](const P& params, engine::NodeNeeds& needs) { needs.files.push_back({"path", params.path}); });
  c.metric("data/rows_written", engine::Metric::kSum, "rows that were written");
}

WriteDataset::WriteDataset(const WriteDatasetParams& params, engine::NodeResources& resources)
    : params_(params), file_(resources.run_folder.append_to(params.path)), metrics_(*resources.metrics) {}

void WriteDataset::process(MicroBatch& batch) {
  const Texts texts(batch);
  const ActionMask mask(batch);
  const std::vector<Range> actions = batch.actions_by_sample();
  const auto scores =
      batch.has(columns::kScore.spec()) ? finite_scores(batch, columns::kScore.name) : std::span<const float>();  // [S]
  const auto rows_of = params_.form == DatasetForm::kPairs ? pair_of : examples_of;

  std::string lines;
  size_t group = 0, written = 0;
  for (const Range samples : batch.layout().samples_by_group()) {
    for (const Json& row : rows_of(texts, scores, group, kept_samples(mask, actions, samples))) {
      lines += dump_json(row) + "\n";
      ++written;
    }
    ++group;
  }
  file_.write(lines);
  metrics_.sum("data/rows_written", static_cast<double>(written));
}

void WriteDataset::save(engine::StateWriter& state) const { state.file(params_.path, file_.size()); }

}  // namespace sluice::nodes
