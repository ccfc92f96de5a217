#include "nodes/sources/row_source.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/text/strings.h"
#include "data/row_file.h"
#include "data/source_files.h"

namespace sluice::nodes {
namespace {

// The first problem of an error, with its place in words: the row's own place goes before it.
RowCheck::Fault fault_of_error(const UserError& error) {
  const Problem& problem = error.problems().front();
  std::string place;
  if (problem.where.known())
    place = " (" + problem.where.source->name + (problem.where.line > 0 ? ":" + std::to_string(problem.where.line) : "") + ")";
  return {problem.message + place, problem.help};
}

std::optional<RowCheck::Fault> thrown_or_told(const std::function<std::optional<RowCheck::Fault>(data::Dataset::RowId)>& fault_of,
                                              data::Dataset::RowId id) {
  try {
    return fault_of(id);
  } catch (const UserError& error) {
    return fault_of_error(error);
  }
}

// All rows of a source were too long: why, by the last of them.
[[noreturn]] void refuse_all_too_long(const UserError& error, const std::string& fault) {
  Problem problem = error.problems().front();
  problem.notes.push_back("the last of them: " + fault);
  problem.help = "raise that limit; too_long = \"drop\" leaves out what is longer";
  throw UserError(Problems{std::move(problem)});
}

}  // namespace

int64_t longest_text(const std::vector<std::filesystem::path>& paths) {
  constexpr size_t kMostFiles = 16;  // a guess for the plan need not read all of a large corpus
  try {
    int64_t longest = 0;
    const auto files = data::source_files(paths);
    for (size_t i = 0; i < std::min(files.size(), kMostFiles); ++i) longest = std::max(longest, data::longest_text(files[i]));
    return longest;
  } catch (const UserError&) {
    return 0;  // check_paths says why
  }
}

void check_paths(const std::vector<std::filesystem::path>& paths, const std::vector<double>& weights,
                 engine::Findings& findings) {
  if (paths.empty()) return;  // was reported
  try {
    data::source_files(paths);
  } catch (const UserError& error) {
    const Problem& problem = error.problems().front();
    findings.error("path", problem.message, problem.help);
  }
  if (weights.empty()) return;
  if (weights.size() != paths.size()) {
    findings.error(
        "weights",
        plural(static_cast<int64_t>(weights.size()), "weight") + " for " + plural(static_cast<int64_t>(paths.size()), "path"),
        "give one weight a path; all files of a folder or pattern share theirs");
  } else if (weights.size() == 1) {
    findings.without_effect("weights", "weights has no effect on a single path", "remove it, or add a path");
  } else if (weights.size() > data::Mixture::kMostSources) {
    findings.error("weights", "more than 1000 paths cannot be mixed", "join some of them with a pattern");
  }
}

void RowCheck::run(data::Dataset& dataset, const std::function<std::optional<Fault>(data::Dataset::RowId)>& fault_of) {
  constexpr size_t kMostProblems = 20;
  Problems problems;
  std::string too_long;  // what is said of the last row that was left out
  rows_ = dataset.rows();
  const auto is_kept = [&](data::Dataset::RowId id) {
    if (problems.size() == kMostProblems) return true;
    auto fault = thrown_or_told(fault_of, id);
    if (!fault) return true;
    if (fault->too_long && too_long_ == TooLong::kDrop) return too_long = std::move(fault->message), false;
    problems.push_back({.where = dataset.where(id),
                        .message = std::move(fault->message),
                        .caret = {},
                        .notes = {},
                        .help = std::move(fault->help)});
    return true;
  };
  try {
    dropped_ = dataset.keep_only(is_kept);
  } catch (const UserError& error) {
    refuse_all_too_long(error, too_long);
  }
  if (problems.size() == kMostProblems)
    problems.back().notes.push_back("checking stopped here: " + plural(kMostProblems, "problem"));
  if (!problems.empty()) throw UserError(std::move(problems));
}

void RowCheck::record(engine::MetricsRecorder* metrics) const {
  if (dropped_ == 0 || metrics == nullptr) return;
  metrics->value("data/rows_dropped", static_cast<double>(dropped_));
  metrics->value("data/rows_read", static_cast<double>(rows_));
}

}  // namespace sluice::nodes
