#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json/json.h"
#include "engine/contract/columns/micro_batch.h"

namespace sluice::cli {

/// Columns as people write them by hand, for `rlhf-run try`:
///
///   {"groups": [2, 1], "columns": {"response": ["4", "5", "7"], "label": ["4", "7"], "values": [[0.1, 0.2], [], [0.5]]}}
///
/// "groups" has the samples of each group; without it all samples are one group. Token and action columns have a list a sample,
/// sample columns a value a sample, group columns a value a group. A number that is not finite is null or "nan", "inf", "-inf";
/// NaN and Infinity as Python writes them are understood too. Where no token column is given a sample has one token before its
/// actions; where no action column is, all tokens of a sample but the first are actions.
class ColumnsInput {
 public:
  /// `known`: the columns that may be there. Throws UserError naming column, sample and entry for whatever does not fit.
  ColumnsInput(std::string_view text, const std::vector<engine::ColumnSpec>& known);

  bool has(const std::string& column) const { return find(column) != nullptr; }
  const engine::Layout& layout() const { return layout_; }
  std::vector<std::string> names() const;

  /// Whether some column has a list for each sample. Else no sample has an action.
  bool tells_lengths() const;

  /// One group each, with all columns.
  std::vector<engine::Group> groups() const;

  /// The entries of a float32 column that is there, in double precision, back to back.
  std::vector<double> reals(const std::string& column) const;

 private:
  struct Entries {
    engine::ColumnSpec spec;
    std::vector<Json> rows;     // as given: an entry a sample or group, lists for tokens and actions
    std::vector<Json> entries;  // back to back
  };

  const Entries* find(const std::string& column) const;
  void read_columns(const Json& columns, const std::vector<engine::ColumnSpec>& known);
  void read_groups(const Json& groups);
  void make_layout();
  void flatten();  // checks the entries and moves them from rows to entries
  int64_t count_of_samples() const;
  std::vector<int64_t> list_lengths(engine::Extent extent, const std::string& noun) const;

  std::vector<Entries> columns_;
  std::vector<int64_t> samples_per_group_;
  bool groups_given_ = false;
  engine::Layout layout_;
};

/// {NAME: [...]} in the same form.
Json columns_to_json(const std::vector<engine::Group::NamedColumn>& columns, const engine::Layout& layout);

/// A list of numbers, one list a sample, of values[A] over the actions of `layout`.
Json actions_to_json(const std::vector<double>& values, const engine::Layout& layout);

/// A number, or "nan", "inf", "-inf".
Json real_to_json(double value);

}  // namespace sluice::cli
