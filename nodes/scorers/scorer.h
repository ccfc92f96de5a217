#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "engine/contract/contract.h"
#include "engine/contract/node.h"
#include "nodes/columns/columns.h"
#include "nodes/columns/score_metrics.h"

namespace sluice::nodes {

/// Which texts a scorer scores.
enum class ScoredText {
  kResponse,  // those that were sampled: a score a sample
  kBaseline,  // the likeliest one of each prompt (generate, baseline = true): a score a group
};

constexpr auto enum_names(ScoredText) {
  return std::array{std::pair{ScoredText::kResponse, "response"}, std::pair{ScoredText::kBaseline, "baseline"}};
}

/// What every scorer of texts has beside its own parameters, which derive from it:
///
///   scores = "response"    # "baseline": the text of column baseline_response, a score for each group
///   writes = "score"       # the column's name; by default score, or baseline_score
struct ScorerParams {
  ScoredText scores = ScoredText::kResponse;
  std::string writes;

  engine::ColumnSpec text_column() const;
  engine::ColumnSpec score_column() const;
};

/// Declares the parameters, the columns of texts and scores, and the metrics of record_scores().
template <class P>
void describe_scorer(engine::Contract<P>& c);

/// Declares column label, of which the scorer can use what a reader takes. `reader_of(params)` is one: called with a label, from
/// any thread, it throws UserError that goes on from "it" ("holds no number"). Sources refuse such labels before a run.
template <class P, class ReaderOf>
void describe_labels(engine::Contract<P>& c, ReaderOf reader_of);

/// What `read` makes of each label[G], as such a reader. Throws UserError that names the group where it throws one.
template <class Read>
auto read_labels(engine::MicroBatch& batch, const Read& read);

/// Throws UserError that goes on from "it" where a label is blank: nothing could match it.
void check_label(const std::string& label);

/// Throws `error` with `the label of group 3, "...",` before its message; a long label is cut (base/text/shown_text.h).
[[noreturn]] void refuse_label(const std::string& label, int64_t group, const UserError& error);

/// Reports under `key` what is wrong with a regular expression.
void check_pattern(const std::string& key, const std::string& pattern, engine::Findings& findings);

/// The texts of a micro-batch that are to be scored, and the places of their scores. A view: valid during `process`.
class ScoredTexts {
 public:
  ScoredTexts(const ScorerParams& params, engine::MicroBatch& batch);

  size_t size() const { return texts_.size(); }
  const std::string& text(size_t i) const { return texts_[i]; }
  size_t group_of(size_t i) const { return groups_[i]; }  // of the micro-batch
  float& score(size_t i) { return scores_[i]; }

  /// Its score is no score, and not recorded.
  void leave_out(size_t i) { left_out_.insert(i); }

  /// record_scores() under the name of the column, of all that are not left out.
  void record(engine::MetricsRecorder& metrics) const;

  /// A metric of the column that is written.
  std::string metric(const std::string& what) const { return score_metric(name_, what); }

  /// Records COLUMN_answered: the share of the texts in which an answer was found.
  void record_answered(engine::MetricsRecorder& metrics, size_t answered) const;

 private:
  std::span<const std::string> texts_;
  std::span<float> scores_;
  std::vector<size_t> groups_;
  std::set<size_t> left_out_;
  std::string name_;
};

template <class P>
void describe_scorer(engine::Contract<P>& c) {
  c.param("scores", &P::scores).doc("which texts: response: those that were sampled, baseline: the likeliest one of each prompt");
  c.param("writes", &P::writes).doc("the column of the scores; empty: score, or baseline_score");
  c.needs([](const P& params, engine::NodeNeeds& needs) {
    needs.reads.push_back(params.text_column());
    needs.writes.push_back(params.score_column());
  });
  describe_scores(c);
}

template <class P, class ReaderOf>
void describe_labels(engine::Contract<P>& c, ReaderOf reader_of) {
  c.reads(columns::kLabel);
  c.needs([reader_of](const P& params, engine::NodeNeeds& needs) {
    struct Reader {
      std::once_flag once;
      std::optional<decltype(reader_of(params))> read;
    };
    // Made when the first label is looked at: needs are asked for often, also of parameters that are wrong.
    const auto check = [params, reader_of, reader = std::make_shared<Reader>()](const std::string& label) {
      std::call_once(reader->once, [&] { reader->read.emplace(reader_of(params)); });
      (*reader->read)(label);
    };
    needs.text_checks.push_back({columns::kLabel.spec().name, check, {}});
  });
}

template <class Read>
auto read_labels(engine::MicroBatch& batch, const Read& read) {
  std::vector<decltype(read(std::string()))> references;  // [G]
  for (const std::string& label : batch.read(columns::kLabel)) {
    try {
      references.push_back(read(label));
    } catch (const UserError& error) {
      refuse_label(label, batch.group_index(references.size()), error);
    }
  }
  return references;
}

}  // namespace sluice::nodes
