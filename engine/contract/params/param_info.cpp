#include "engine/contract/params/param_info.h"

#include <cmath>

#include "base/error.h"
#include "base/text/strings.h"
#include "engine/contract/params/param_reports.h"

namespace sluice::engine {

using detail::number_text;
using detail::quoted_list;

namespace {

std::string range_text(const ParamInfo& info) {
  const std::string low =
      info.minimum ? (info.minimum_excluded ? " above " : " from ") + number_text(*info.minimum) : std::string();
  if (!info.maximum) return low;
  if (std::isinf(*info.maximum)) return low + ", or inf";
  return low + (info.minimum_excluded || !info.minimum ? " up to " : " to ") + number_text(*info.maximum);
}

}  // namespace

std::string expectation(const ParamInfo& info) {
  switch (info.kind) {
    case ParamKind::kBoolean:
      return "true or false";
    case ParamKind::kInteger:
      return "an integer" + range_text(info) + (info.or_auto ? ", or \"auto\"" : "");
    case ParamKind::kReal:
      return "a number" + range_text(info);
    case ParamKind::kScheduled:
      return "a number" + range_text(info) + ", or a schedule";
    case ParamKind::kString:
      return "a string";
    case ParamKind::kChoice:
      return "one of " + quoted_list(info.choices);
    case ParamKind::kPath:
      return "a path";
    case ParamKind::kPaths:
      return "a path or an array of paths";
    case ParamKind::kReals:
      return "an array of numbers" + range_text(info);
    case ParamKind::kStrings:
      return info.choices.empty() ? "an array of strings" : "an array of " + quoted_list(info.choices) + ", each once at most";
    case ParamKind::kTable:
      return "a table";
    case ParamKind::kTables:
      return "an array of tables";
    case ParamKind::kComponent:
      return "the name of its " + info.component + ", or a table with type and parameters";
  }
  return {};
}

std::string example_text(const ParamInfo& info) {
  switch (info.kind) {
    case ParamKind::kBoolean:
      return "true";
    case ParamKind::kInteger:
      return info.unit == "tokens" ? "2048" : number_text(info.minimum.value_or(1));  // one token holds nothing
    case ParamKind::kReal:
    case ParamKind::kScheduled:
      return real_text(info.maximum.value_or(1.0));
    case ParamKind::kChoice:
      return sluice::quoted(info.choices.empty() ? "" : info.choices.front());
    case ParamKind::kReals:
      return "[1.0]";
    case ParamKind::kStrings:
      return "[\"...\"]";
    case ParamKind::kTable:
      return "{ ... }";
    case ParamKind::kTables:
      return "[{ ... }]";
    case ParamKind::kString:
    case ParamKind::kPath:
    case ParamKind::kPaths:
    case ParamKind::kComponent:
      return "\"...\"";
  }
  return {};
}

}  // namespace sluice::engine
