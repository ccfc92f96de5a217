#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/json/json.h"
#include "base/problem.h"
#include "data/epoch_order.h"
#include "data/jsonl_reader.h"
#include "data/mixture.h"

namespace sluice::data {

struct DatasetOptions {
  std::vector<std::filesystem::path> paths;  // files, folders, patterns: see source_files.h
  std::vector<double> weights;               // one a path: mixed in these proportions; empty: one path after the other
  bool shuffle = true;
  int64_t epochs = 0;  // 0: without end
  uint64_t seed = 0;
  size_t most_rows = kAllRows;    // of each file, see JsonlReader
  std::filesystem::path scratch;  // where compressed files are unpacked, see RowFile
};

/// Where a reader of a dataset was, to go on there. The fingerprint tells another dataset, in which the position means another
/// row.
struct DatasetPosition {
  uint64_t next = 0;
  uint32_t fingerprint = 0;
};

/// One or more sources of rows as one endless (or `epochs` long) sequence. Which row comes at a position depends on the options,
/// the files and the position only: a run that is repeated or resumed sees the same rows.
///
/// With weights each path is a source of its own, shuffled and repeated for itself, and the sources are mixed (see Mixture); the
/// data ends where a source is due that was read `epochs` times. Without weights the rows of all paths are one list. Throws
/// UserError as source_files() and JsonlReader do. Not thread-safe.
class Dataset {
 public:
  Dataset(const DatasetOptions& options, const std::vector<JsonlField>& fields);

  /// A row of one of the sources.
  struct RowId {
    size_t source = 0;
    size_t row = 0;

    bool operator==(const RowId&) const = default;
  };

  /// Nothing when the data has ended.
  std::optional<RowId> row_at(uint64_t position);

  std::vector<Json> values(RowId id) const { return sources_[id.source].values(id.row); }
  std::vector<std::string> texts(RowId id) const { return sources_[id.source].texts(id.row); }
  std::string text_of(RowId id) const { return sources_[id.source].text_of(id.row); }
  SourceSpan where(RowId id) const { return sources_[id.source].where(id.row); }

  size_t sources() const { return sources_.size(); }
  size_t rows(size_t source) const { return sources_[source].rows(); }
  size_t rows() const;

  /// Leaves out the rows that `keep` refuses, and returns how many. It is asked about each row, in order. Throws UserError when a
  /// source has none left.
  size_t keep_only(const std::function<bool(RowId)>& keep);

  /// To be saved beside a run that has taken the rows before `next`.
  DatasetPosition position(uint64_t next) const { return {next, fingerprint()}; }

  /// `position.next`. Throws UserError when the position was saved with other data or another order.
  uint64_t resume(const DatasetPosition& position) const;

 private:
  uint32_t fingerprint() const;
  void make_orders();

  DatasetOptions options_;
  std::vector<JsonlReader> sources_;
  std::vector<EpochOrder> orders_;  // [sources]
  std::optional<Mixture> mixture_;
};

}  // namespace sluice::data
