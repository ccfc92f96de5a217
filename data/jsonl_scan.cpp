#include "data/jsonl_scan.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/strings.h"
#include "data/messages.h"

namespace sluice::data {
namespace {

constexpr size_t kMostProblems = 20;

bool continues_code_point(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

int code_points(std::string_view text) {
  return static_cast<int>(std::ranges::count_if(text, [](char c) { return !continues_code_point(c); }));
}

bool is_text(Json::value_t type) {
  return type == Json::value_t::string || type == Json::value_t::number_integer || type == Json::value_t::number_unsigned ||
         type == Json::value_t::number_float;
}

bool may_be(FieldKind kind, Json::value_t type) {
  return (kind != FieldKind::kMessages && is_text(type)) || (kind != FieldKind::kText && type == Json::value_t::array);
}

const char* expected_text(FieldKind kind) {
  switch (kind) {
    case FieldKind::kText:
      return "must be a string or a number";
    case FieldKind::kMessages:
      return "must be a list of messages";
    case FieldKind::kTextOrMessages:
      break;
  }
  return "must be a string or a list of messages";
}

// What is wrong with a field's value; nothing if it is as it should be.
std::optional<std::string> fault_of(FieldKind kind, const Json& value) {
  if (kind != FieldKind::kMessages && is_text(value.type())) return std::nullopt;
  if (kind == FieldKind::kText || (kind == FieldKind::kTextOrMessages && !value.is_array()))
    return "it is " + std::string(value.type_name());
  return fault_of_messages(value);
}

std::string fields_text(const Row& row) {
  std::vector<std::string> names;
  for (const auto& [name, type] : row.seen) names.push_back(name);
  return names.empty() ? "the object is empty" : "fields here: " + join(names, ", ");
}

std::string nearest_field(const JsonlField& wrong, const Row& row) {
  std::vector<std::string> candidates;
  for (const auto& [name, type] : row.seen) {
    if (may_be(wrong.kind, type)) candidates.push_back(name);
  }
  return did_you_mean(wrong.name, candidates);
}

}  // namespace

SourceSpan span_in_line(const std::string& file, uint32_t line, std::string_view content, size_t byte, size_t length) {
  constexpr size_t kBefore = 400, kBehind = 1200;
  byte = std::min(byte, content.size());
  size_t begin = byte > kBefore ? byte - kBefore : 0;
  while (begin > 0 && begin < byte && continues_code_point(content[begin])) ++begin;
  const std::string_view excerpt = content.substr(begin, byte - begin + kBehind);
  const int column = 1 + code_points(content.substr(0, byte));
  const int first_column = 1 + code_points(content.substr(0, begin));
  auto source = std::make_shared<SourceText>(SourceText{file, std::string(excerpt), static_cast<int>(line), first_column});
  return {std::move(source), static_cast<int>(line), column, static_cast<int>(std::min(length, kBehind))};
}

bool RowProblems::full() const { return problems_.size() >= kMostProblems; }

void RowProblems::check(const RowParser& parser, const std::string& file, uint32_t number, std::string_view content) {
  const Line line{file, number, content};
  Row row;
  if (auto fault = parser.parse(content, row))
    return report(line, fault->byte.value_or(0), fault->byte ? 1 : content.size(), std::move(fault->message),
                  std::move(fault->caret));
  for (size_t i = 0; i < fields_.size(); ++i) check_field(line, row, i);
}

void RowProblems::check_field(const Line& line, const Row& row, size_t index) {
  const JsonlField& field = fields_[index];
  const Json* value = find_field(row.fields, field.name);
  if (value == nullptr || (value->is_null() && !field.required)) {
    if (field.required) report_missing(line, row, index);
  } else if (auto fault = fault_of(field.kind, *value)) {
    report(line, 0, line.content.size(), "field " + sluice::quoted(field.name) + " " + expected_text(field.kind),
           std::move(*fault));
  }
}

void RowProblems::report_missing(const Line& line, const Row& row, size_t index) {
  // When the parameter is wrong every line lacks the field: that is one problem, not twenty.
  if (lacking_[index]++ > 0) return;
  const JsonlField& field = fields_[index];
  lacking_problem_[index] = problems_.size();
  report(line, 0, line.content.size(), "no field " + sluice::quoted(field.name), fields_text(row));
  const std::string nearest = nearest_field(field, row);
  problems_.back().help =
      nearest.empty() ? field.param + " names the field to read" : field.param + " = " + sluice::quoted(nearest) + "?";
}

void RowProblems::report(const Line& line, size_t byte, size_t length, std::string message, std::string caret) {
  problems_.push_back({.where = span_in_line(line.file, line.number, line.content, byte, length),
                       .message = std::move(message),
                       .caret = std::move(caret),
                       .notes = {},
                       .help = {}});
}

void RowProblems::finish() {
  for (const auto& [index, count] : lacking_) {
    if (count > 1)
      problems_[lacking_problem_[index]].notes.push_back("so do " + plural(count - 1, "more line") + " that were read");
  }
  if (full()) problems_.back().notes.push_back("reading stopped here: " + plural(kMostProblems, "broken line"));
  if (!problems_.empty()) throw UserError(std::move(problems_));
}

}  // namespace sluice::data
