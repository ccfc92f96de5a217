#include "data/jsonl_scan.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/text/strings.h"
#include "base/text/utf8.h"
#include "data/messages.h"
#include "data/row_meter.h"

namespace sluice::data {
namespace {

constexpr size_t kMostProblems = 20;

int code_points(std::string_view text) { return static_cast<int>(count_code_points(text)); }

// Of the line that the byte `at` is in: where it begins, after a byte order mark, and what is before that byte.
struct LineBegin {
  uint64_t at = 0;
  int code_points = 0;
};

LineBegin line_begin(const RowFile& file, uint64_t at) {
  constexpr uint64_t kStep = uint64_t{64} << 10;
  LineBegin line{.at = at};
  while (line.at > 0) {
    const uint64_t from = line.at - std::min(line.at, kStep);
    const std::string text = file.row(from, static_cast<size_t>(line.at - from));
    const size_t rest = text.rfind('\n') + 1;  // npos + 1: all of it
    const size_t mark = from == 0 && rest == 0 && text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0;
    line.code_points += code_points(std::string_view(text).substr(rest + mark));
    line.at = from + rest + mark;
    if (rest + mark > 0) break;
  }
  return line;
}

bool is_text(Json::value_t type) {
  return type == Json::value_t::string || type == Json::value_t::number_integer || type == Json::value_t::number_unsigned ||
         type == Json::value_t::number_float;
}

bool is_flag(const Json& value) { return value.is_boolean() || (value.is_number() && (value == 0 || value == 1)); }

bool may_be(FieldKind kind, Json::value_t type) {
  if (kind == FieldKind::kFlag) return type == Json::value_t::boolean;
  return (kind != FieldKind::kMessages && is_text(type)) || (kind != FieldKind::kText && type == Json::value_t::array);
}

std::string type_text(Json::value_t type) {
  const std::string name = Json(type).type_name();
  if (name == "null") return name;
  return (name == "array" || name == "object" ? "an " : "a ") + name;
}

const char* expected_text(FieldKind kind) {
  switch (kind) {
    case FieldKind::kText:
      return "must be a string or a number";
    case FieldKind::kMessages:
      return "must be a list of messages";
    case FieldKind::kFlag:
      return "must be true or false";
    case FieldKind::kTextOrMessages:
      break;
  }
  return "must be a string or a list of messages";
}

const char* name_of(RowUnit unit) {
  switch (unit) {
    case RowUnit::kLine:
      return "line";
    case RowUnit::kElement:
      return "element";
    case RowUnit::kRow:
      break;
  }
  return "row";
}

// No more than RowParser notes of a row.
std::vector<std::pair<std::string, Json::value_t>> first_of(const Columns& columns) {
  constexpr size_t kMostNamed = 100;
  std::vector<std::pair<std::string, Json::value_t>> first;
  for (size_t i = 0; i < std::min(columns.size(), kMostNamed); ++i) first.emplace_back(columns[i].name, columns[i].json);
  return first;
}

// The column of a field whose values are not read; null: there is none.
const FileColumn* unread_column(const RowPlace& place, const std::string& field) {
  if (place.columns == nullptr) return nullptr;
  const auto found = std::ranges::find_if(
      *place.columns, [&](const FileColumn& column) { return column.name == field && column.json == Json::value_t::binary; });
  return found == place.columns->end() ? nullptr : &*found;
}

constexpr const char* kMakeJsonLines =
    "make JSON lines of it: python3 -c 'import csv, json, sys; [print(json.dumps(row)) for row in csv.DictReader(sys.stdin)]' "
    "< IN.csv > OUT.jsonl";

bool is_comma_separated(const std::string& file) { return file.ends_with(".csv") || file.ends_with(".tsv"); }

// What is wrong with a field's value; nothing if it is as it should be.
std::optional<std::string> fault_of(FieldKind kind, const Json& value) {
  if (kind == FieldKind::kFlag) return is_flag(value) ? std::nullopt : std::optional("it is " + type_text(value.type()));
  if (kind != FieldKind::kMessages && is_text(value.type())) return std::nullopt;
  if (kind == FieldKind::kText || (kind == FieldKind::kTextOrMessages && !value.is_array()))
    return "it is " + type_text(value.type());
  return fault_of_messages(value);
}

std::vector<std::string> names_of(const Json& object) {
  constexpr size_t kMostNames = 20;
  std::vector<std::string> names;
  for (const auto& [name, value] : object.items()) {
    if (names.size() < kMostNames) names.push_back(name);
  }
  return names;
}

// Of "meta.answer", where there is an object "meta" without it: "meta" and that object.
struct Within {
  std::string name;
  const Json* object = nullptr;
};

Within object_of(const std::string& name, const Row& row) {
  for (size_t dot = name.rfind('.'); dot != std::string::npos && dot > 0; dot = name.rfind('.', dot - 1)) {
    const Json* found = find_field(row.fields, name.substr(0, dot));
    if (found != nullptr && found->is_object()) return {name.substr(0, dot), found};
  }
  return {};
}

std::string fields_text(const std::string& missing, const Row& row) {
  if (const Within within = object_of(missing, row); within.object != nullptr && !within.object->empty())
    return "fields of " + sluice::quoted(within.name) + ": " + join(names_of(*within.object), ", ");
  std::vector<std::string> names;
  for (const auto& [name, type] : row.seen) names.push_back(name);
  return names.empty() ? "the object is empty" : "fields here: " + join(names, ", ");
}

// `label_field = "answer"?`, and where the parameter is a list or a text with several names `"answer" in prompt_fields?`
std::string named_instead(const std::string& param, const std::string& name) {
  return param.ends_with("_field") ? param + " = " + sluice::quoted(name) + "?" : sluice::quoted(name) + " in " + param + "?";
}

// The parameter with a field that may be meant.
std::string help_for_missing(const JsonlField& wrong, const Row& row) {
  if (const Within within = object_of(wrong.name, row); within.object != nullptr) {
    const std::string near = did_you_mean(wrong.name.substr(within.name.size() + 1), names_of(*within.object));
    if (!near.empty()) return named_instead(wrong.param, within.name + "." + near);
  }
  std::vector<std::string> candidates, lists;
  for (const auto& [name, type] : row.seen) {
    if (may_be(wrong.kind, type)) candidates.push_back(name);
    if (type == Json::value_t::array) lists.push_back(name);
  }
  const std::string nearest = did_you_mean(wrong.name, candidates);
  if (!nearest.empty()) return named_instead(wrong.param, nearest);
  if (!wrong.list_param.empty() && !lists.empty()) return wrong.list_param + " = " + sluice::quoted(lists.front()) + "?";
  return wrong.param + " names the field to read";
}

// What reads the value that is there.
std::string help_for_fault(const JsonlField& field, const Json& value) {
  if (value.is_array() && field.kind == FieldKind::kText && !field.list_param.empty())
    return field.list_param + " = " + sluice::quoted(field.name) + " reads a list of messages";
  if (!value.is_object() || value.empty() || !field.param.ends_with("_field")) return {};
  return field.param + " = " + sluice::quoted(field.name + "." + names_of(value).front()) +
         " reads a field of it; it has: " + join(names_of(value), ", ");
}

}  // namespace

SourceSpan span_in_row(const RowPlace& place, size_t byte, size_t length) {
  constexpr uint64_t kBefore = 400, kBehind = 1200;
  byte = std::min(byte, place.content.size());
  const uint64_t at = place.begin + byte;
  const auto line = place.line + std::ranges::count(place.content.substr(0, byte), '\n');
  const LineBegin begin = line_begin(place.file, at);
  const uint64_t first = std::max(begin.at, at - std::min(at, kBefore));
  std::string excerpt = place.file.row(first, static_cast<size_t>(std::min(at + kBehind, place.file.size()) - first));
  auto before = static_cast<size_t>(at - first);
  if (first > begin.at) {  // perhaps in the middle of a character
    const auto whole = std::ranges::find_if_not(excerpt, is_continuation);
    const size_t part = std::min(before, static_cast<size_t>(whole - excerpt.begin()));
    excerpt.erase(0, part);
    before -= part;
  }
  excerpt = excerpt.substr(0, excerpt.find_first_of("\r\n", before));
  const size_t shown = std::max<size_t>(1, excerpt.size() - before);
  const int column = 1 + begin.code_points;
  const int first_column = column - code_points(std::string_view(excerpt).substr(0, before));
  auto source = std::make_shared<SourceText>(SourceText{place.name(), std::move(excerpt), static_cast<int>(line), first_column});
  return {std::move(source), static_cast<int>(line), column, static_cast<int>(std::min(length, shown))};
}

bool RowProblems::full() const { return problems_.size() >= kMostProblems; }

bool RowProblems::check(const RowParser& parser, const RowPlace& place) {
  Row row;
  if (auto fault = parser.parse(place.content, row, name_of(place.unit)); fault && is_comma_separated(place.name())) {
    if (!is_repeated(fields_.size(), {}, place.unit)) report(place, 0, 1, "this is no JSON", "CSV is not read", kMakeJsonLines);
    return false;
  } else if (fault) {
    report(place, fault->byte.value_or(0), fault->byte ? 1 : place.content.size(), std::move(fault->message),
           std::move(fault->caret));
    return false;
  }
  for (size_t i = 0; i < fields_.size(); ++i) check_field(place, row, i);
  return true;
}

void RowProblems::check_field(const RowPlace& place, Row& row, size_t index) {
  const JsonlField& field = fields_[index];
  const Json* value = find_field(row.fields, field.name);
  if (const FileColumn* unread = unread_column(place, field.name)) {
    if (is_repeated(index, {}, place.unit)) return;
    report(place, 0, place.content.size(), "field " + sluice::quoted(field.name) + " " + expected_text(field.kind),
           "its column has the type " + unread->type + ", which is not read", "write the column as texts or numbers");
  } else if (value == nullptr || (value->is_null() && !field.required)) {
    if (!field.required || is_repeated(index, {}, place.unit)) return;
    if (place.columns != nullptr) row.seen = first_of(*place.columns);
    report(place, 0, place.content.size(), "no field " + sluice::quoted(field.name), fields_text(field.name, row),
           help_for_missing(field, row));
  } else if (value->is_null() && field.nullable) {
    return;
  } else if (auto fault = fault_of(field.kind, *value); fault && !is_repeated(index, *fault, place.unit)) {
    report(place, 0, place.content.size(), "field " + sluice::quoted(field.name) + " " + expected_text(field.kind),
           std::move(*fault), help_for_fault(field, *value));
  }
}

// When a parameter is wrong every row has the same fault: that is one problem, not twenty.
bool RowProblems::is_repeated(size_t index, const std::string& fault, RowUnit unit) {
  const auto [found, is_new] = repeated_.try_emplace({index, fault}, Repeated{.problem = problems_.size(), .unit = unit});
  if (!is_new) ++found->second.rows;
  return !is_new;
}

void RowProblems::report(const RowPlace& place, size_t byte, size_t length, std::string message, std::string caret,
                         std::string help) {
  unit_ = place.unit;
  problems_.push_back({.where = span_in_row(place, byte, length),
                       .message = std::move(message),
                       .caret = std::move(caret),
                       .notes = {},
                       .help = std::move(help)});
}

void RowProblems::add(const UserError& error) {
  problems_.insert(problems_.end(), error.problems().begin(), error.problems().end());
}

void RowProblems::finish() {
  for (const auto& [fault, repeated] : repeated_) {
    if (repeated.rows > 1)
      problems_[repeated.problem].notes.push_back("likewise in " +
                                                  plural(repeated.rows - 1, std::string("more ") + name_of(repeated.unit)) +
                                                  (repeated.rows == 2 ? " that was read" : " that were read"));
  }
  if (full())
    problems_.back().notes.push_back("reading stopped here: " + plural(kMostProblems, std::string("broken ") + name_of(unit_)));
  if (!problems_.empty()) throw UserError(std::move(problems_));
}

}  // namespace sluice::data
