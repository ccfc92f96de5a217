#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "data/dataset.h"
#include "engine/plan/data_look.h"
#include "nodes/models/model_text.h"
#include "nodes/sources/prompt_reader.h"
#include "nodes/sources/row_source.h"
#include "nodes/sources/unknown_characters.h"

namespace sluice::nodes {

/// Whether the model that `format` needs for its chat template has one; if not, that is reported.
bool has_needed_template(const PromptFormat& format, const std::string& model, engine::DataLook& look);

/// How a source of rows looks at them before a run (engine/plan/data_look.h): at the first of each file, or at all. Reads nothing
/// of a model but its folder. One thread.
class RowLook {
 public:
  /// `params`: of the source, with the members that all of them have. `fields`: what it reads of a row. `look` outlives it.
  template <class P>
  RowLook(const P& params, std::vector<data::JsonlField> fields, engine::DataLook& look)
      : format_(prompt_format(params)),
        model_(params.model),
        fields_(std::move(fields)),
        options_{.paths = params.path,
                 .weights = params.weights,
                 .shuffle = false,
                 .epochs = 1,
                 .most_rows = look.all() ? data::kAllRows : kFirstRows,
                 .scratch = {}},
        draws_{.groups_per_iteration = params.groups_per_iteration, .epochs = params.epochs, .mixed = !params.weights.empty()},
        rows_(options_, fields_),
        unknown_(model_, look),
        check_(params.too_long),
        look_(look) {}

  /// In the order of their files.
  const data::Dataset& rows() const { return rows_; }
  std::vector<Json> values(data::Dataset::RowId id) const { return rows_.values(id); }
  std::vector<Json> first_values() const { return rows_.values({0, 0}); }

  /// As RowCheck::run().
  void check(const std::function<std::optional<RowCheck::Fault>(data::Dataset::RowId)>& fault_of) { check_.run(rows_, fault_of); }

  /// What warn() is to tell of a row that is checked: characters that the tokenizer has no token for.
  void note_unknown(const std::string& text, data::Dataset::RowId id) { unknown_.look_at(text, rows_, id); }
  void note_unknown(const std::vector<Json>& values, data::Dataset::RowId id) { unknown_.look_at(values, rows_, id); }

  /// Once all were checked: warns of what is no error, but rarely meant. `first_prompt`: nothing where a template writes the
  /// prompts.
  void warn(const std::optional<std::string>& first_prompt) const;

 private:
  static constexpr size_t kFirstRows = 64;  // of each file, unless all rows are looked at

  // How a run draws from the rows. Of those that are mixed in proportions no number is told.
  struct Draws {
    int64_t groups_per_iteration = 1;
    int64_t epochs = 0;
    bool mixed = false;
  };

  void warn_of_skipped_template(const std::string& prompt) const;
  void warn_of_skipped_fields() const;
  void warn_of_quoted_arguments() const;
  void warn_of_few_rows() const;

  const PromptFormat format_;
  const std::string model_;  // empty: the one that samples
  const std::vector<data::JsonlField> fields_;
  const data::DatasetOptions options_;
  const Draws draws_;
  data::Dataset rows_;
  UnknownCharacters unknown_;
  RowCheck check_;
  engine::DataLook& look_;
};

}  // namespace sluice::nodes
