#include "engine/contract/params/param_values.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.h"
#include "base/files/path_kind.h"
#include "base/files/user_path.h"
#include "base/text/strings.h"
#include "engine/contract/params/known_names.h"
#include "engine/contract/params/param_reports.h"

namespace sluice::engine::detail {

bool takes_number(const ParamInfo& info, double number) {
  if (!std::isfinite(number) && number != info.maximum) return false;
  if (info.minimum && (info.minimum_excluded ? number <= *info.minimum : number < *info.minimum)) return false;
  return !info.maximum || number <= *info.maximum;
}

bool read_boolean(const Value& value, bool& out, BindContext& context, const ParamInfo& info) {
  const bool* flag = std::get_if<bool>(&value.data);
  if (flag == nullptr) return report_kind(context, value, info), false;
  out = *flag;
  return true;
}

bool read_integer(const Value& value, int64_t& out, BindContext& context, const ParamInfo& info) {
  if (const auto* real = std::get_if<double>(&value.data);
      real != nullptr && *real == std::trunc(*real) && std::abs(*real) < 1e15) {
    return report_expected(context, "wrong-type", value, info, "write " + number_text(*real)), false;
  }
  const auto* number = std::get_if<int64_t>(&value.data);
  if (number == nullptr) return report_kind(context, value, info), false;
  if (!takes_number(info, static_cast<double>(*number)))
    return report_expected(context, "out-of-range", value, info, info.doc), false;
  out = *number;
  return true;
}

bool read_integer_or_auto(const Value& value, IntegerOrAuto& out, BindContext& context, const ParamInfo& info) {
  const auto* text = std::get_if<std::string>(&value.data);
  out.automatic = text != nullptr && *text == "auto";
  return out.automatic || read_integer(value, out.value, context, info);
}

bool read_real(const Value& value, double& out, BindContext& context, const ParamInfo& info) {
  double number = 0;
  if (const auto* integer = std::get_if<int64_t>(&value.data))
    number = static_cast<double>(*integer);
  else if (const auto* real = std::get_if<double>(&value.data))
    number = *real;
  else
    return report_kind(context, value, info), false;
  if (!std::isfinite(number) && number != info.maximum)
    return report_expected(context, "out-of-range", value, info, "this is not finite"), false;
  if (!takes_number(info, number)) return report_expected(context, "out-of-range", value, info, info.doc), false;
  out = number;
  return true;
}

bool read_string(const Value& value, std::string& out, BindContext& context, const ParamInfo& info) {
  const auto* text = std::get_if<std::string>(&value.data);
  if (text == nullptr) return report_kind(context, value, info), false;
  // An empty name stands for none, as of a model that may be left out.
  if (info.required && text->empty()) return report_expected(context, "empty-text", value, info, "this is empty"), false;
  out = *text;
  return true;
}

std::filesystem::path meant_path(const std::string& text, const std::string& base, const ParamInfo& info) {
  std::filesystem::path path = (std::filesystem::path(base) / expanded_path(text)).lexically_normal();
  return info.find ? info.find(text, path) : path;
}

// Where a relative path was looked for; a pipeline file that was copied has left its models and data behind. Empty for others.
std::string relative_path_text(const Value& value, const std::string& text) {
  if (std::filesystem::path(text).is_absolute() || text.starts_with('~') || text.starts_with('$')) return {};
  const bool typed = value.where.known() && value.where.source->typed;
  return (typed ? "a relative path on the command line starts at the current folder, "
                : "a relative path starts at the folder of the file that it is written in, ") +
         (absolute_path(value.base.empty() ? "." : value.base) / "").lexically_normal().parent_path().string();
}

// `missing` says what is not there, without the name of the key.
void report_no_path(const Value& value, const std::string& text, const Problem& missing, BindContext& context,
                    const ParamInfo& info) {
  Problem problem = missing;
  const std::string base = relative_path_text(value, text);
  problem.kind = "path-missing";
  problem.where = value.where;
  problem.message = info.name + ": " + missing.message;
  if (problem.help.empty())
    problem.help = base;
  else if (!base.empty())
    problem.notes.push_back(base);
  context.problems.push_back(std::move(problem));
}

bool read_path(const Value& value, std::filesystem::path& out, BindContext& context, const ParamInfo& info) {
  const auto* text = std::get_if<std::string>(&value.data);
  if (text == nullptr) return report_kind(context, value, info), false;
  if (text->empty()) return report_expected(context, "empty-text", value, info, "this is empty"), false;
  try {
    out = meant_path(*text, value.base, info);
    if (!is_utf8(absolute_path(out).native())) throw UserError(out.string() + " is not UTF-8, which what a run records is");
    if (info.find && name_kind(out) == PathKind::kNothing) throw UserError("there is no folder " + out.string());
  } catch (const UserError& error) {
    return report_no_path(value, *text, error.problems().front(), context, info), false;
  }
  const bool is_pattern = info.kind == ParamKind::kPaths && text->find_first_of("*?[") != std::string::npos;
  if (!info.must_exist || is_pattern) return true;
  try {
    const PathKind kind = path_kind(out);
    if (kind == PathKind::kFile || kind == PathKind::kFolder) return true;
    if (kind == PathKind::kOther) throw UserError(out.string() + " is a pipe, a device or a socket, not a file");
  } catch (const UserError& unreadable) {  // or in a folder that may not be entered
    Problem problem = unreadable.problems().front();
    problem.kind = "file-unreadable";
    problem.where = value.where;
    problem.message = info.name + ": " + problem.message;
    context.problems.push_back(std::move(problem));
    return false;
  }
  return report_no_path(value, *text, Problem{.message = "there is no file " + out.string()}, context, info), false;
}

bool read_paths(const Value& value, std::vector<std::filesystem::path>& out, BindContext& context, const ParamInfo& info) {
  std::vector<std::filesystem::path> paths(1);
  if (std::holds_alternative<std::string>(value.data)) {
    if (!read_path(value, paths.front(), context, info)) return false;
  } else {
    const auto* array = std::get_if<Array>(&value.data);
    if (array == nullptr) return report_kind(context, value, info), false;
    if (array->empty()) return report_expected(context, "empty-text", value, info, "this is empty"), false;
    paths.resize(array->size());
    bool all = true;
    for (size_t i = 0; i < paths.size(); ++i) all &= read_path((*array)[i], paths[i], context, info);
    if (!all) return false;
  }
  out = std::move(paths);
  return true;
}

bool read_reals(const Value& value, std::vector<double>& out, BindContext& context, const ParamInfo& info) {
  const auto* array = std::get_if<Array>(&value.data);
  if (array == nullptr) return report_kind(context, value, info), false;
  std::vector<double> numbers(array->size());
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (!read_real((*array)[i], numbers[i], context, info)) return false;
  }
  out = std::move(numbers);
  return true;
}

bool read_strings(const Value& value, std::vector<std::string>& out, BindContext& context, const ParamInfo& info) {
  const auto* array = std::get_if<Array>(&value.data);
  if (array == nullptr) return report_kind(context, value, info), false;
  std::vector<std::string> strings;
  ParamInfo each = info;
  each.kind = ParamKind::kChoice;
  for (const Value& element : *array) {
    const auto* text = std::get_if<std::string>(&element.data);
    if (text == nullptr) return report_kind(context, element, info), false;
    if (size_t index = 0; !info.choices.empty() && !read_choice(element, index, context, each)) return false;
    if (!info.choices.empty() && std::ranges::find(strings, *text) != strings.end())
      return report_expected(context, "written-twice", element, info, "this is there already"), false;
    strings.push_back(*text);
  }
  out = std::move(strings);
  return true;
}

bool read_choice(const Value& value, size_t& index, BindContext& context, const ParamInfo& info) {
  const auto* text = std::get_if<std::string>(&value.data);
  if (text == nullptr) return report_kind(context, value, info), false;
  const auto found = std::find(info.choices.begin(), info.choices.end(), *text);
  if (found == info.choices.end()) {
    const std::string near = did_you_mean(*text, info.choices);
    return report_expected(context, "unknown-choice", value, info,
                           near.empty() ? info.doc : "did you mean " + sluice::quoted(near) + "?"),
           false;
  }
  index = static_cast<size_t>(found - info.choices.begin());
  return true;
}

const Table* read_table(const Value& value, BindContext& context, const ParamInfo& info) {
  const Table* table = std::get_if<Table>(&value.data);
  if (table != nullptr) return table;
  std::vector<std::string> keys;
  for (const ParamInfo& child : info.children) keys.push_back(child.name);
  report(context, "wrong-type", value.where, info.name + " must be " + expectation(info), "this is " + kind_name(value),
         info.name + " = { KEY = VALUE, ... } with " + join(keys, ", "));
  return nullptr;
}

std::optional<std::vector<const Table*>> read_tables(const Value& value, BindContext& context, const ParamInfo& info) {
  std::vector<const Table*> tables;
  const auto* array = std::get_if<Array>(&value.data);
  if (array == nullptr) return report_kind(context, value, info), std::nullopt;
  for (const Value& element : *array) {
    tables.push_back(std::get_if<Table>(&element.data));
    if (tables.back() == nullptr) return report_kind(context, element, info), std::nullopt;
  }
  return tables;
}

std::string array_text(const std::vector<std::string>& elements) {
  return elements.empty() ? std::string() : "[" + join(elements, ", ") + "]";
}

std::string inline_text(const std::vector<ParamText>& parts) {
  std::vector<std::string> texts;
  for (const ParamText& part : parts) texts.push_back(part.name + " = " + part.text);
  return texts.empty() ? "{}" : "{ " + join(texts, ", ") + " }";
}

std::string to_text(bool value) { return value ? "true" : "false"; }
std::string to_text(const IntegerOrAuto& value) { return value.automatic ? "\"auto\"" : std::to_string(value.value); }
std::string to_text(int64_t value) { return std::to_string(value); }
std::string to_text(double value) { return real_text(value); }
std::string to_text(const ScheduledNumber& value) { return value.written(); }
std::string to_text(const std::string& value) { return sluice::quoted(value); }

// It means the same wherever it is read.
std::string lasting_text(const std::filesystem::path& path) {
  return unexpanded_path(absolute_path(path).lexically_normal().string());
}

// An empty path is no path: written out as "" it would read back as the folder of the pipeline.
std::string to_text(const std::filesystem::path& value) {
  return value.empty() ? std::string() : sluice::quoted(lasting_text(value));
}

// One path as it is mostly written: without brackets.
std::string to_text(const std::vector<std::filesystem::path>& value) {
  if (value.size() == 1) return to_text(value.front());
  std::vector<std::string> names;
  for (const std::filesystem::path& path : value) names.push_back(lasting_text(path));
  return names.empty() ? std::string() : to_text(names);
}

std::string to_text(const std::vector<double>& value) {
  std::vector<std::string> parts;
  for (const double number : value) parts.push_back(real_text(number));
  return "[" + join(parts, ", ") + "]";
}

std::string to_text(const std::vector<std::string>& value) { return "[" + quoted_list(value) + "]"; }

}  // namespace sluice::engine::detail
