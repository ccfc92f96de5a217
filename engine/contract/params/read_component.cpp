#include <algorithm>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/text/strings.h"
#include "engine/contract/params/foreign_names.h"
#include "engine/contract/params/known_names.h"
#include "engine/contract/params/param_reports.h"
#include "engine/contract/params/param_values.h"

// read_component() of param_values.h.
namespace sluice::engine::detail {
namespace {

// `objective = "x"` or `objective = { type = "x", ... }`: the name, and the table without `type`.
struct ComponentText {
  std::string type;
  SourceSpan where;
  Table params;
};

std::optional<ComponentText> component_text(const Value& value, BindContext& context, const ParamInfo& info) {
  if (const auto* name = std::get_if<std::string>(&value.data)) {
    ComponentText text{*name, value.where, {}};
    text.params.where = value.where;
    return text;
  }
  const Table* table = std::get_if<Table>(&value.data);
  if (table == nullptr) return report_kind(context, value, info), std::nullopt;
  const Entry* type = table->find("type");
  const auto* name = type == nullptr ? nullptr : std::get_if<std::string>(&type->value.data);
  if (name == nullptr) {
    const SourceSpan where = type == nullptr ? value.where : type->value.where;
    report(context, "missing-key", where, info.name + " needs a type", {},
           info.name + " = { type = NAME, ... } with one of " + quoted_list(context.known.component_types(info.component)));
    return std::nullopt;
  }
  ComponentText text{*name, type->value.where, *table};
  std::erase_if(text.params.entries, [](const Entry& entry) { return entry.key == "type"; });
  return text;
}

void report_unknown_component(const ComponentText& text, BindContext& context, const ParamInfo& info) {
  const std::vector<std::string> known = context.known.component_types(info.component);
  const std::string foreign = foreign_type_text(text.type, info.component);
  const std::string near = foreign.empty() ? did_you_mean(text.type, known) : std::string();
  std::string help = !foreign.empty() ? foreign
                     : known.empty()  ? "this program knows no " + info.component + "; a plugin can add one"
                                      : "known: " + quoted_list(known);
  report(context, "unknown-component", text.where, "there is no " + info.component + " " + sluice::quoted(text.type),
         near.empty() ? std::string() : "did you mean " + sluice::quoted(near) + "?", std::move(help));
}

// Nothing where its code threw.
MadeComponent made_of(const ComponentType& type, const ComponentText& written, BindContext& context) {
  try {
    return type.make(written.params, context);
  } catch (const UserError& error) {
    for (Problem problem : error.problems()) {
      if (problem.kind.empty()) problem.kind = "setting-unusable";
      context.problems.push_back(std::move(problem));
    }
    return {};
  }
}

}  // namespace

Component<const void> read_component(const Value& value, BindContext& context, const ParamInfo& info) {
  const auto written = component_text(value, context, info);
  if (!written) return {};
  const ComponentType* component = context.known.find_component(info.component, written->type);
  if (component == nullptr) return report_unknown_component(*written, context, info), Component<const void>{};
  BindContext inside{context.known, context.problems, info.component + " " + sluice::quoted(written->type),
                     context.preset.within(info.name, info.component + ":" + written->type), context.iterations};
  const size_t before = context.problems.size();
  MadeComponent made = made_of(*component, *written, inside);
  give_place(context.problems, before, value.where);
  if (made.object == nullptr) return {};
  made.parts.insert(made.parts.begin(), {.name = "type", .text = sluice::quoted(written->type)});
  return {written->type, std::move(made.object), std::move(made.parts), std::move(made.metrics), std::move(made.schedules)};
}

}  // namespace sluice::engine::detail
