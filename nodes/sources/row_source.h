#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "engine/contract/contract.h"
#include "engine/contract/node.h"
#include "nodes/prompts/too_long.h"

namespace sluice::nodes {

/// The parameters by which a source says where its rows come from: members `path` (paths) and `weights` (numbers) of P.
template <class P>
void describe_paths(engine::Contract<P>& c);

/// In which order: `groups_per_iteration`, `shuffle`, `epochs`.
template <class P>
void describe_order(engine::Contract<P>& c, const std::string& what);

/// Bytes that no text of the rows exceeds; 0 when they cannot be read.
int64_t longest_text(const std::vector<std::filesystem::path>& paths);

/// Reports paths that name no file, and weights that do not fit them.
void check_paths(const std::vector<std::filesystem::path>& paths, const std::vector<double>& weights, engine::Findings& findings);

/// Checks rows one by one before the run. With TooLong::kDrop a row that is over its limit is left out, else it is a problem that
/// shows its line; any other fault always is. Throws one UserError with up to 20 problems.
class RowCheck {
 public:
  explicit RowCheck(TooLong too_long) : too_long_(too_long) {}

  /// What is wrong with a row.
  struct Fault {
    std::string message;
    std::string help;
    bool too_long = false;
  };

  /// `fault_of` tells it, or nothing; a UserError that it throws is the row's too. Rows that are left out are no longer in
  /// `dataset`.
  void run(data::Dataset& dataset, const std::function<std::optional<Fault>(data::Dataset::RowId)>& fault_of);

  /// The metrics of describe_dropped(), once something was dropped.
  void record(engine::MetricsRecorder* metrics) const;

 private:
  TooLong too_long_;
  size_t rows_ = 0;
  size_t dropped_ = 0;
};

template <class P>
void describe_dropped(engine::Contract<P>& c) {
  c.metric("data/rows_dropped", engine::Metric::kValue, "rows that are left out because they are too long");
  c.metric("data/rows_read", engine::Metric::kValue, "rows that were there before; both are told only when some were dropped");
}

template <class P>
void describe_paths(engine::Contract<P>& c) {
  c.param("path", &P::path)
      .required()
      .must_exist()
      .doc(
          "a file of JSON lines or of one JSON array, plain, gzip or zstd, of Parquet, Arrow or Feather; a folder of such files, "
          "a pattern such as \"data/*.json\", or an array of them");
  c.param("weights", &P::weights)
      .above(0)
      .doc("one a path: rows come from the paths in these proportions, exactly; empty: all rows are one list");
  c.check([](const P& params, engine::Findings& findings) { check_paths(params.path, params.weights, findings); });
}

template <class P>
void describe_order(engine::Contract<P>& c, const std::string& what) {
  c.param("groups_per_iteration", &P::groups_per_iteration)
      .required()
      .at_least(1)
      .doc(what + " in each iteration")
      .unit("groups");
  c.param("shuffle", &P::shuffle).doc("another order in each epoch, fixed by the seed");
  c.param("epochs", &P::epochs).at_least(0).doc("times through the rows (with weights: of any path); 0: without end");
}

}  // namespace sluice::nodes
