#include "nodes/sinks/write_jsonl.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "base/text/strings.h"
#include "nodes/columns/column_json.h"

namespace sluice::nodes {

using engine::ColumnSpec;
using engine::Extent;
using engine::MicroBatch;

namespace {

void check_fields(const WriteJsonlParams& params, engine::Findings& findings) {
  std::set<std::string> seen;
  for (const std::string& field : params.fields) {
    if (!seen.insert(field).second) findings.error("fields", sluice::quoted(field) + " is there twice");
  }
}

// What one sample has of a column: its own entries, or the entry of its group.
Json field_of_sample(const MicroBatch& batch, const ColumnSpec& column, size_t group, size_t sample) {
  const engine::ColumnData& data = batch.read(column);
  const engine::Layout& layout = batch.layout();
  const auto list = [&](const std::vector<int64_t>& offsets) {
    return entries_to_json(data, static_cast<size_t>(offsets[sample]), static_cast<size_t>(offsets[sample + 1]));
  };
  switch (column.extent) {
    case Extent::kToken:
      return list(layout.token_offsets);
    case Extent::kAction:
      return list(layout.action_offsets);
    case Extent::kSample:
      return entry_to_json(data, sample);
    case Extent::kGroup:
      return entry_to_json(data, group);
  }
  return {};
}

// Of a sample: its places in the tokens of the sample, where these are not the last ones, as where an environment has replied.
Json places_of_actions(const engine::Layout& layout, size_t sample) {
  const int64_t begin = layout.token_offsets[sample], end = layout.token_offsets[sample + 1];
  Json places = Json::array();
  for (int64_t action = layout.action_offsets[sample]; action < layout.action_offsets[sample + 1]; ++action)
    places.push_back(layout.action_tokens[static_cast<size_t>(action)] - begin);
  const bool are_last = places.empty() || places.front().get<int64_t>() + std::ssize(places) == end - begin;
  return are_last ? Json() : places;
}

}  // namespace

void WriteJsonl::describe(engine::Contract<WriteJsonlParams>& c) {
  using P = WriteJsonlParams;
  c.type("write_jsonl", "one JSON object a sample, appended to a file of the run folder");
  c.param("path", &P::path).doc("the file, in the run folder or below it; folders on the way are made");
  c.param("fields", &P::fields).doc("columns to write");
  c.param("every", &P::every).at_least(1).doc("write every so many iterations").unit("iterations");
  c.reads_any(&P::fields);
  c.needs([](const P& params, engine::NodeNeeds& needs) { needs.files.push_back({"path", params.path}); });
  c.check([](const P& params, engine::Findings& findings) {
    if (params.fields.empty())
      findings.error("fields", "no fields: there would be nothing to write", "fields = [\"prompt\", \"response\"]");
    check_fields(params, findings);
  });
}

WriteJsonl::WriteJsonl(const WriteJsonlParams& params, engine::NodeResources& resources)
    : params_(params), file_(resources.run_folder.append_to(params.path)) {}

void WriteJsonl::process(MicroBatch& batch) {
  if (batch.iteration() % params_.every != 0) return;
  const bool has_actions = std::ranges::any_of(
      params_.fields, [&](const std::string& field) { return batch.column(field).extent == Extent::kAction; });
  std::string lines;
  size_t group = 0;
  for (const engine::Range samples : batch.layout().samples_by_group()) {
    for (size_t sample = samples.begin; sample < samples.end; ++sample) {
      Json line;
      line["iteration"] = batch.iteration();
      line["group"] = batch.group_index(group);
      line["sample"] = sample - samples.begin;
      if (Json places = has_actions ? places_of_actions(batch.layout(), sample) : Json(); !places.is_null())
        line["action_tokens"] = std::move(places);
      for (const std::string& field : params_.fields) line[field] = field_of_sample(batch, batch.column(field), group, sample);
      lines += dump_json(line) + "\n";
    }
    ++group;
  }
  file_.write(lines);
}

void WriteJsonl::save(engine::StateWriter& state) const { state.file(params_.path, file_.size()); }

}  // namespace sluice::nodes
