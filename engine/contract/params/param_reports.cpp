#include "engine/contract/params/param_reports.h"

#include <utility>

#include "base/text/strings.h"

namespace sluice::engine::detail {

void report(BindContext& context, const char* kind, const SourceSpan& where, std::string message, std::string caret,
            std::string help) {
  if (!where.known() && message.find(context.owner) == std::string::npos) message += " (" + context.owner + ")";
  context.problems.push_back({.kind = kind,
                              .where = where,
                              .message = std::move(message),
                              .caret = std::move(caret),
                              .notes = {},
                              .help = std::move(help)});
}

void report_expected(BindContext& context, const char* kind, const Value& value, const ParamInfo& info, std::string caret) {
  report(context, kind, value.where, info.name + " must be " + expectation(info), std::move(caret));
}

void report_kind(BindContext& context, const Value& value, const ParamInfo& info) {
  report_expected(context, "wrong-type", value, info, "this is " + kind_name(value));
}

std::string number_text(double value) {
  const std::string text = real_text(value);
  return text.ends_with(".0") ? text.substr(0, text.size() - 2) : text;
}

std::string quoted_list(const std::vector<std::string>& names) {
  std::vector<std::string> parts;
  for (const std::string& name : names) parts.push_back(sluice::quoted(name));
  return join(parts, ", ");
}

void give_place(Problems& problems, size_t first, const SourceSpan& where) {
  for (size_t i = first; i < problems.size(); ++i) {
    if (!problems[i].where.known()) problems[i].where = where;
  }
}

}  // namespace sluice::engine::detail
