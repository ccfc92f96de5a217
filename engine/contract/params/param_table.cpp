#include "engine/contract/params/param_table.h"

#include <set>
#include <utility>

#include "base/error.h"
#include "base/text/strings.h"
#include "engine/contract/params/known_names.h"
#include "engine/contract/params/param_reports.h"

namespace sluice::engine {

using detail::report;

namespace {

void report_missing(const Table& table, BindContext& context, const ParamInfo& info) {
  std::string help = "add " + info.name + " = " + example_text(info);
  help += info.doc.empty() ? " (" + expectation(info) + ")" : ": " + info.doc;
  report(context, "missing-key", table.where, context.owner + " needs " + info.name, {}, std::move(help));
}

// Reports a key that no parameter has; returns the parameter that was probably meant.
std::string report_unknown_key(const Entry& entry, const std::vector<Param>& params, BindContext& context) {
  std::vector<std::string> known;
  for (const Param& param : params) known.push_back(param.info.name);
  KeyHelp help = context.known.help_for_unknown_key(entry.key, known, context.owner);
  report(context, "unknown-key", entry.key_where, entry.key + " is not a parameter of " + context.owner, std::move(help.caret),
         std::move(help.help));
  return help.meant;
}

// A component that is not written still has to be made: `default_text` is its quoted type.
void bind_default_component(void* params, const Table& table, BindContext& context, const Param& param) {
  if (param.info.kind != ParamKind::kComponent || param.info.default_text.empty()) return;
  const std::string type = param.info.default_text.substr(1, param.info.default_text.size() - 2);
  param.bind(params, Value{type, table.where, {}}, context, param.info);
}

// Under a key with a typing error stands a component that is not read: it gets no type, as one that is not known.
void leave_unmade(void* params, const Table& table, BindContext& context, const Param& param) {
  if (param.info.kind != ParamKind::kComponent) return;
  Problems said_of_the_key;
  BindContext silent{context.known, said_of_the_key, context.owner};
  param.bind(params, Value{std::string(), table.where, {}}, silent, param.info);
}

}  // namespace

void ParamTable::bind(void* params, const Table& table, BindContext& context) const {
  std::set<std::string> meant;  // by keys with a typing error: they are not missing
  for (const Entry& entry : table.entries) {
    const Param* param = find(entry.key);
    if (param == nullptr)
      meant.insert(report_unknown_key(entry, params_, context));
    else
      param->bind(params, entry.value, context, param->info);
  }
  for (const Param& param : params_) {
    const bool written = table.find(param.info.name) != nullptr || meant.contains(param.info.name);
    const Value* preset = context.preset.value_of(param.info.name, !written);
    if (meant.contains(param.info.name) && table.find(param.info.name) == nullptr) leave_unmade(params, table, context, param);
    if (written) continue;
    if (preset != nullptr)
      param.bind(params, *preset, context, param.info);
    else if (param.info.required)
      report_missing(table, context, param.info);
    else
      bind_default_component(params, table, context, param);
  }
}

const Param* ParamTable::find(std::string_view name) const {
  for (const Param& param : params_) {
    if (param.info.name == name) return &param;
  }
  return nullptr;
}

std::vector<ParamInfo> ParamTable::infos() const {
  std::vector<ParamInfo> infos;
  for (const Param& param : params_) infos.push_back(param.info);
  return infos;
}

std::vector<ParamText> ParamTable::texts(const void* params) const {
  std::vector<ParamText> texts;
  for (const Param& param : params_) {
    std::string text = param.text(params);
    if (!text.empty()) texts.push_back({.name = param.info.name, .text = std::move(text), .harmless = param.info.harmless});
  }
  return texts;
}

Param& ParamTable::add(Param param) {
  SLUICE_CHECK(find(param.info.name) == nullptr, "parameter " + param.info.name + " is declared twice");
  params_.push_back(std::move(param));
  return params_.back();
}

}  // namespace sluice::engine
