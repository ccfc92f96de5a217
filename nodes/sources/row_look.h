#pragma once

#include <optional>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "engine/plan/data_look.h"
#include "nodes/models/model_text.h"
#include "nodes/sources/prompt_reader.h"

// How a source of rows looks at them before a run (engine/plan/data_look.h).
namespace sluice::nodes {

/// Of each file, unless all rows are looked at.
inline constexpr size_t kFirstRows = 64;

/// The rows in the order of their files.
template <class P>
data::DatasetOptions rows_to_look_at(const P& params, const engine::DataLook& look) {
  return {.paths = params.path,
          .weights = params.weights,
          .shuffle = false,
          .epochs = 1,
          .most_rows = look.all() ? data::kAllRows : kFirstRows,
          .scratch = {}};
}

/// Whether the model that `format` needs for its chat template has one; if not, that is reported.
bool has_needed_template(const PromptFormat& format, const std::string& model, engine::DataLook& look);

/// Warns where `prompt`, the first one, is sent as it is although nobody said so and the model has a chat template. `model`: that
/// of the source; empty: the one that samples.
void warn_of_skipped_template(const PromptFormat& format, const std::string& model, const std::string& prompt,
                              engine::DataLook& look);

/// Warns of what belongs to the prompts of the first rows, and nothing would read: an "input" where the prompt is "instruction"
/// alone, as Alpaca's rows have it; images, videos or sounds. `read`: what the source reads of a row.
void warn_of_skipped_fields(const PromptFormat& format, const std::vector<data::JsonlField>& read, data::DatasetOptions rows,
                            engine::DataLook& look);

/// Warns where the rows, in `epochs` times through them (0: without end), are fewer than a run has groups for: its data end
/// early, or some count oftener than others where a path measures. Of `rows` that are mixed in proportions it knows nothing, and
/// nothing of long files of which it has the beginning.
struct Draws {
  int64_t groups_per_iteration = 1;
  int64_t epochs = 0;
  bool mixed = false;
};
void warn_of_few_rows(const data::Dataset& rows, const Draws& draws, engine::DataLook& look);

template <class P>
Draws draws_of(const P& params) {
  return {.groups_per_iteration = params.groups_per_iteration, .epochs = params.epochs, .mixed = !params.weights.empty()};
}

/// Warns where the first rows have tool calls whose arguments are a text, as servers of OpenAI's form give them, and the template
/// of the model writes them as one: quoted, which no model does. `model`: that of the source; empty: the one that samples.
void warn_of_quoted_arguments(const data::Dataset& rows, const std::string& model, engine::DataLook& look);

}  // namespace sluice::nodes
