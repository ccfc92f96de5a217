#include "cli/try/columns_json.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include "base/error.h"
#include "base/text/strings.h"
#include "nodes/columns/column_json.h"

namespace sluice::cli {

using engine::ColumnSpec;
using engine::DType;
using engine::Extent;
using engine::Group;
using engine::Layout;
using engine::Range;

namespace {

const char* const kForm = "the form is {\"groups\": [SAMPLES, ...], \"columns\": {NAME: [...], ...}}";

bool is_ragged(Extent extent) { return extent == Extent::kToken || extent == Extent::kAction; }

// NaN and Infinity, which Python's json module writes and no JSON reader takes, in quotes.
std::string quote_bare_numbers(std::string_view text) {
  std::string out;
  bool in_string = false;
  for (size_t i = 0; i < text.size();) {
    std::string_view word;
    for (const std::string_view candidate : {"NaN", "-Infinity", "Infinity"}) {
      if (!in_string && word.empty() && text.substr(i).starts_with(candidate)) word = candidate;
    }
    if (!word.empty()) {
      out += sluice::quoted(word);
      i += word.size();
      continue;
    }
    if (text[i] == '"') in_string = !in_string;
    if (in_string && text[i] == '\\' && i + 1 < text.size()) out += text[i++];
    out += text[i++];
  }
  return out;
}

std::optional<double> read_real(const Json& value) {
  if (value.is_number()) return value.get<double>();
  if (value.is_null()) return std::numeric_limits<double>::quiet_NaN();
  if (!value.is_string()) return std::nullopt;
  const auto& text = value.get_ref<const std::string&>();
  if (text == "nan" || text == "NaN") return std::numeric_limits<double>::quiet_NaN();
  if (text == "inf" || text == "Infinity") return std::numeric_limits<double>::infinity();
  if (text == "-inf" || text == "-Infinity") return -std::numeric_limits<double>::infinity();
  return std::nullopt;
}

bool fits_float32(const Json& value) {
  const auto real = read_real(value);
  return real && (!std::isfinite(*real) || std::abs(*real) <= FLT_MAX);
}

bool fits(const Json& value, DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return fits_float32(value);
    case DType::kInt64:
      return value.is_number_integer() && (!value.is_number_unsigned() || value.get<uint64_t>() <= INT64_MAX);
    case DType::kUint8:
      return value.is_number_integer() && value.get<int64_t>() >= 0 && value.get<int64_t>() <= 255;
    case DType::kString:
      return value.is_string();
  }
  return false;
}

const char* wanted(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return "a number (float32, null for NaN)";
    case DType::kInt64:
      return "an integer";
    case DType::kUint8:
      return "an integer from 0 to 255";
    case DType::kString:
      return "a string";
  }
  return "";
}

void check_entry(const Json& value, const ColumnSpec& column, const std::string& place) {
  if (fits(value, column.dtype)) return;
  throw UserError("column '" + column.name + "', " + place + ": " + wanted(column.dtype) + " is expected, not " +
                  nodes::dump_json(value).substr(0, 80));
}

void set_entry(const engine::ColumnData& column, size_t index, const Json& value) {
  switch (column.dtype()) {
    case DType::kFloat32:
      column.entries<float>()[index] = static_cast<float>(*read_real(value));
      return;
    case DType::kInt64:
      column.entries<int64_t>()[index] = value.get<int64_t>();
      return;
    case DType::kUint8:
      column.entries<uint8_t>()[index] = value.get<uint8_t>();
      return;
    case DType::kString:
      column.entries<std::string>()[index] = value.get<std::string>();
      return;
  }
}

// Where the entries of sample or group `row` begin, in a column of that extent.
size_t offset_of(const Layout& layout, Extent extent, size_t group) {
  const auto sample = static_cast<size_t>(layout.group_offsets[group]);
  switch (extent) {
    case Extent::kToken:
      return static_cast<size_t>(layout.token_offsets[sample]);
    case Extent::kAction:
      return static_cast<size_t>(layout.action_offsets[sample]);
    case Extent::kSample:
      return sample;
    case Extent::kGroup:
      return group;
  }
  return 0;
}

template <class Entry>
Json nested(const std::vector<Range>& ranges, Entry entry) {
  Json lists = Json::array();
  for (const Range range : ranges) {
    Json list = Json::array();
    for (size_t i = range.begin; i < range.end; ++i) list.push_back(entry(i));
    lists.push_back(std::move(list));
  }
  return lists;
}

}  // namespace

ColumnsInput::ColumnsInput(std::string_view text, const std::vector<ColumnSpec>& known) {
  const Json root = parse_json(quote_bare_numbers(text), "standard input");
  if (!root.is_object() || !root.contains("columns")) throw UserError("standard input has no \"columns\"", kForm);
  for (const auto& [key, value] : root.items()) {
    if (key != "groups" && key != "columns") throw UserError("standard input: unknown key " + sluice::quoted(key), kForm);
  }
  read_columns(root["columns"], known);
  if (root.contains("groups")) read_groups(root["groups"]);
  make_layout();
  flatten();
}

void ColumnsInput::read_columns(const Json& columns, const std::vector<ColumnSpec>& known) {
  if (!columns.is_object()) throw UserError("\"columns\" must be an object", kForm);
  std::vector<std::string> names;
  for (const ColumnSpec& spec : known) names.push_back(spec.name);
  for (const auto& [name, rows] : columns.items()) {
    const auto spec = std::ranges::find(known, name, &ColumnSpec::name);
    if (spec == known.end()) {
      const std::string nearest = did_you_mean(name, names);
      throw UserError("no column is called '" + name + "' here",
                      nearest.empty() ? "known are " + join(names, ", ") : "did you mean " + nearest + "?");
    }
    const std::string each = spec->extent == Extent::kGroup ? "a group" : "a sample";
    if (!rows.is_array()) {
      throw UserError("column '" + name + "' must be a list with one " + (is_ragged(spec->extent) ? "list " : "value ") + each);
    }
    columns_.push_back({*spec, {rows.begin(), rows.end()}, {}});
  }
}

bool ColumnsInput::tells_lengths() const {
  return std::ranges::any_of(columns_, [](const Entries& column) { return is_ragged(column.spec.extent); });
}

void ColumnsInput::read_groups(const Json& groups) {
  groups_given_ = true;
  const auto is_count = [](const Json& value) { return value.is_number_unsigned() && value.get<uint64_t>() <= INT32_MAX; };
  if (!groups.is_array() || !std::ranges::all_of(groups, is_count)) {
    throw UserError("\"groups\" must be a list of numbers of samples, one a group", "for example [4, 4]");
  }
  for (const Json& samples : groups) samples_per_group_.push_back(samples.get<int64_t>());
}

void ColumnsInput::make_layout() {
  const int64_t samples = count_of_samples();
  if (!groups_given_) samples_per_group_ = {samples};
  std::vector<int64_t> actions = list_lengths(Extent::kAction, "action");
  std::vector<int64_t> tokens = list_lengths(Extent::kToken, "token");
  if (actions.empty()) {
    for (const int64_t count : tokens) actions.push_back(std::max<int64_t>(0, count - 1));
  }
  actions.resize(static_cast<size_t>(samples), 0);
  for (auto s = tokens.size(); s < actions.size(); ++s) tokens.push_back(actions[s] + 1);

  size_t sample = 0;
  for (const int64_t count : samples_per_group_) {
    for (int64_t i = 0; i < count; ++i, ++sample) {
      if (actions[sample] > 0 && actions[sample] >= tokens[sample]) {
        throw UserError("sample " + std::to_string(sample) + " has " + plural(tokens[sample], "token") + " and " +
                        plural(actions[sample], "action") + ": at least its first token is no action");
      }
      layout_.add_sample(tokens[sample], actions[sample]);
    }
    layout_.end_group();
  }
}

void ColumnsInput::flatten() {
  for (Entries& column : columns_) {
    const bool per_group = column.spec.extent == Extent::kGroup;
    if (per_group && column.rows.size() != layout_.groups()) {
      throw UserError(
          "column '" + column.spec.name + "' has " + plural(static_cast<int64_t>(column.rows.size()), "value") + ", but there " +
              (layout_.groups() == 1 ? "is " : "are ") + plural(static_cast<int64_t>(layout_.groups()), "group"),
          groups_given_ ? "" : "\"groups\" says how many samples each group has; without it all samples are one group");
    }
    for (size_t row = 0; row < column.rows.size(); ++row) {
      const std::string place = (per_group ? "group " : "sample ") + std::to_string(row);
      if (!is_ragged(column.spec.extent)) {
        check_entry(column.rows[row], column.spec, place);
        column.entries.push_back(std::move(column.rows[row]));
        continue;
      }
      for (size_t i = 0; i < column.rows[row].size(); ++i) {
        check_entry(column.rows[row][i], column.spec, place + ", entry " + std::to_string(i));
        column.entries.push_back(std::move(column.rows[row][i]));
      }
    }
    column.rows.clear();
  }
}

int64_t ColumnsInput::count_of_samples() const {
  const std::string* first = nullptr;
  int64_t samples = std::accumulate(samples_per_group_.begin(), samples_per_group_.end(), int64_t{0});
  for (const Entries& column : columns_) {
    if (column.spec.extent == Extent::kGroup) continue;
    const auto count = static_cast<int64_t>(column.rows.size());
    if (first == nullptr && !groups_given_) samples = count;
    if (count != samples) {
      const std::string other = groups_given_ ? "\"groups\" adds up to " : "column '" + *first + "' has ";
      throw UserError("column '" + column.spec.name + "' has " + plural(count, "sample") + ", but " + other +
                      std::to_string(samples));
    }
    if (first == nullptr) first = &column.spec.name;
  }
  return samples;
}

// The entries of each sample, on which all columns of that extent must agree. Empty when there is no such column.
std::vector<int64_t> ColumnsInput::list_lengths(Extent extent, const std::string& noun) const {
  std::vector<int64_t> lengths;
  const Entries* first = nullptr;
  for (const Entries& column : columns_) {
    if (column.spec.extent != extent) continue;
    for (size_t sample = 0; sample < column.rows.size(); ++sample) {
      const std::string where = "column '" + column.spec.name + "', sample " + std::to_string(sample) + ": ";
      if (!column.rows[sample].is_array()) throw UserError(where + "a list of " + noun + "s is expected, one entry each");
      const auto length = static_cast<int64_t>(column.rows[sample].size());
      if (first == nullptr) {
        lengths.push_back(length);
      } else if (length != lengths[sample]) {
        throw UserError(where + plural(length, noun) + ", but column '" + first->spec.name + "' has " +
                        std::to_string(lengths[sample]) + " there");
      }
    }
    if (first == nullptr) first = &column;
  }
  return lengths;
}

std::vector<std::string> ColumnsInput::names() const {
  std::vector<std::string> names;
  for (const Entries& column : columns_) names.push_back(column.spec.name);
  return names;
}

const ColumnsInput::Entries* ColumnsInput::find(const std::string& column) const {
  const auto found = std::ranges::find_if(columns_, [&](const Entries& entries) { return entries.spec.name == column; });
  return found == columns_.end() ? nullptr : &*found;
}

std::vector<Group> ColumnsInput::groups() const {
  std::vector<Group> groups;
  const auto tokens = layout_.tokens_by_sample(), actions = layout_.actions_by_sample();
  for (const Range samples : layout_.samples_by_group()) {
    const size_t index = groups.size();
    Group& group = groups.emplace_back();
    group.index = static_cast<int64_t>(index);
    for (size_t s = samples.begin; s < samples.end; ++s) {
      group.layout.add_sample(static_cast<int64_t>(tokens[s].size()), static_cast<int64_t>(actions[s].size()));
    }
    group.layout.end_group();
    for (const Entries& column : columns_) {
      const size_t begin = offset_of(layout_, column.spec.extent, index), end = offset_of(layout_, column.spec.extent, index + 1);
      engine::ColumnData data(column.spec.dtype, end - begin);
      for (size_t i = begin; i < end; ++i) set_entry(data, i - begin, column.entries[i]);
      group.columns.push_back({column.spec, std::move(data)});
    }
  }
  return groups;
}

std::vector<double> ColumnsInput::reals(const std::string& column) const {
  const Entries* entries = find(column);
  SLUICE_CHECK(entries != nullptr && entries->spec.dtype == DType::kFloat32, "column '" + column + "' has no real numbers");
  std::vector<double> reals;
  for (const Json& entry : entries->entries) reals.push_back(*read_real(entry));
  return reals;
}

Json columns_to_json(const std::vector<Group::NamedColumn>& columns, const Layout& layout) {
  Json json = Json::object();
  for (const Group::NamedColumn& column : columns) {
    const auto entry = [&](size_t i) { return nodes::entry_to_json(column.data, i); };
    switch (column.spec.extent) {
      case Extent::kToken:
        json[column.spec.name] = nested(layout.tokens_by_sample(), entry);
        break;
      case Extent::kAction:
        json[column.spec.name] = nested(layout.actions_by_sample(), entry);
        break;
      case Extent::kSample:
      case Extent::kGroup:
        json[column.spec.name] = nodes::entries_to_json(column.data, 0, column.data.count());
        break;
    }
  }
  return json;
}

Json actions_to_json(const std::vector<double>& values, const Layout& layout) {
  return nested(layout.actions_by_sample(), [&](size_t i) { return real_to_json(values[i]); });
}

Json real_to_json(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value + 0.0;  // -0 is printed as 0
}

}  // namespace sluice::cli
