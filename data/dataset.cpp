#include "data/dataset.h"

#include "base/error.h"
#include "base/numbers/crc32c.h"
#include "base/text/strings.h"
#include "data/source_files.h"

namespace sluice::data {

Dataset::Dataset(const DatasetOptions& options, const std::vector<JsonlField>& fields) : options_(options) {
  SLUICE_CHECK(options.weights.empty() || options.weights.size() == options.paths.size(), "one weight a path");
  const std::vector<std::filesystem::path> all = source_files(options.paths);  // refuses a file that two of them name
  if (options.weights.empty()) {
    sources_.emplace_back(all, fields, options.scratch, options.most_rows);
  } else {
    for (const auto& path : options.paths)
      sources_.emplace_back(source_files({path}), fields, options.scratch, options.most_rows);
    mixture_.emplace(options.weights, options.seed);
  }
  make_orders();
}

std::optional<Dataset::RowId> Dataset::row_at(uint64_t position) {
  const Mixture::Draw draw = mixture_ ? mixture_->at(position) : Mixture::Draw{0, position};
  const auto row = orders_[draw.source].row_at(draw.index);
  if (!row) return std::nullopt;
  return RowId{draw.source, *row};
}

size_t Dataset::rows() const {
  size_t rows = 0;
  for (const JsonlReader& source : sources_) rows += source.rows();
  return rows;
}

size_t Dataset::keep_only(const std::function<bool(RowId)>& keep) {
  size_t dropped = 0;
  for (size_t source = 0; source < sources_.size(); ++source) {
    std::vector<bool> kept(sources_[source].rows());
    for (size_t row = 0; row < kept.size(); ++row) {
      kept[row] = keep({source, row});
      dropped += !kept[row];
    }
    const SourceSpan first = sources_[source].where(0);
    sources_[source].keep_only(kept);
    if (sources_[source].rows() == 0)
      throw UserError(
          "no row of " + first.source->name + " is left: " +
          (kept.size() == 1 ? "its only row was dropped" : "all " + std::to_string(kept.size()) + " rows were dropped"));
  }
  make_orders();
  return dropped;
}

uint64_t Dataset::resume(const DatasetPosition& position) const {
  if (position.fingerprint == fingerprint()) return position.next;
  throw UserError("the data or its order is not what it was when the position was saved: row " + std::to_string(position.next) +
                      " is another one now",
                  "go on with the files, weights, seed and shuffle of then");
}

// Of what decides which row comes when. Not of the texts: a file may be too large to be read for that. Nor of the epochs, which
// only say when the data ends.
uint32_t Dataset::fingerprint() const {
  std::string text = std::to_string(options_.seed) + (options_.shuffle ? " shuffled" : " in order");
  for (const double weight : options_.weights) text += " " + real_text(weight);
  for (const JsonlReader& source : sources_) text += " " + std::to_string(source.rows());
  return crc32c(text);
}

void Dataset::make_orders() {
  orders_.clear();
  for (size_t source = 0; source < sources_.size(); ++source)
    orders_.emplace_back(options_.seed, sources_[source].rows(), options_.shuffle, options_.epochs,
                         static_cast<uint32_t>(source));
}

}  // namespace sluice::data
