#include "engine/check/check_draft.h"

#include <algorithm>

#include "base/error.h"
#include "base/text/strings.h"
#include "engine/check/problem_kinds.h"

namespace sluice::engine::checking {
namespace {

Problem problem_of(Severity severity, const char* kind, const SourceSpan& where, std::string message, std::string caret,
                   std::string help, std::vector<std::string> notes) {
  const ProblemKind* known = find_problem_kind(kind);
  SLUICE_CHECK(known != nullptr && known->severity == severity, std::string("problem_kinds() has no such kind: ") + kind);
  return {.kind = kind,
          .where = where,
          .message = std::move(message),
          .caret = std::move(caret),
          .notes = std::move(notes),
          .help = std::move(help),
          .severity = severity};
}

// A value that a required parameter accepts, so that the needs of a type can be asked without a pipeline.
Value stand_in(const ParamInfo& info, const Registry& registry) {
  switch (info.kind) {
    case ParamKind::kBoolean:
      return {true, {}, {}};
    case ParamKind::kInteger:
      return {static_cast<int64_t>(info.minimum.value_or(0)) + (info.minimum_excluded ? 1 : 0), {}, {}};
    case ParamKind::kReal:
    case ParamKind::kScheduled:
      return {info.maximum.value_or(info.minimum.value_or(0) + 1), {}, {}};
    case ParamKind::kChoice:
      return {info.choices.front(), {}, {}};
    case ParamKind::kReals:
    case ParamKind::kStrings:
    case ParamKind::kTables:
      return {Array{}, {}, {}};
    case ParamKind::kTable:
      return {Table{}, {}, {}};
    case ParamKind::kString:
    case ParamKind::kPath:
    case ParamKind::kPaths:
      return {info.name, {}, {}};
    case ParamKind::kComponent:
      for (const auto& [key, type] : registry.components()) {
        if (key.first == info.component) return {key.second, {}, {}};
      }
      return {std::string(), {}, {}};
  }
  return {};
}

// "nodes.train": no key of it.
bool is_path_of_node(std::string_view path) { return path.starts_with("nodes.") && path.rfind('.') == path.find('.'); }

std::string name_in(const std::string& path) { return path.substr(path.find('.') + 1); }

// "--set nodes.train=false removes node 'train'"
std::string removal_text(const Name& removed) {
  const SourceText& source = *removed.where.source;
  const std::string by = source.typed ? source.name + " " + source.text : source.name + ":" + std::to_string(removed.where.line);
  return by + " removes " + (is_path_of_node(removed.text) ? "node '" : "model '") + name_in(removed.text) + "'";
}

}  // namespace

void Ancestors::resize(size_t nodes) {
  words_ = (nodes + 63) / 64;
  bits_.assign(nodes * words_, 0);
}

void Ancestors::add_edge(int from, int to) {
  uint64_t* target = &bits_[static_cast<size_t>(to) * words_];
  const uint64_t* origin = &bits_[static_cast<size_t>(from) * words_];
  for (size_t w = 0; w < words_; ++w) target[w] |= origin[w];
  target[static_cast<size_t>(from) / 64] |= uint64_t{1} << (from % 64);
}

bool Ancestors::contains(int node, int ancestor) const {
  return (bits_[static_cast<size_t>(node) * words_ + static_cast<size_t>(ancestor) / 64] >> (ancestor % 64)) & 1;
}

int Draft::main_path() const {
  const auto measures = [&](const DraftPath& path) { return node(path.source).source.measures(); };
  const auto found = std::ranges::find_if_not(paths, measures);
  return found == paths.end() ? -1 : static_cast<int>(found - paths.begin());
}

std::string metrics_prefix_of(const Draft& draft, const DraftNode& node) {
  const std::string& own = node.spec->metrics_prefix.text;
  if (node.path < 0 || node.path == draft.main_path()) return own;
  const std::string& source = draft.node(draft.path_of(node)->source).name();
  return own.empty() ? source : source + "/" + own;
}

int Draft::find_node(const std::string& name) const {
  const auto found = node_index_.find(name);
  return found == node_index_.end() ? -1 : found->second;
}

int Draft::find_model(const std::string& name) const {
  for (size_t i = 0; i < models.size(); ++i) {
    if (models[i].spec->name.text == name) return static_cast<int>(i);
  }
  return -1;
}

void Draft::error(const char* kind, const SourceSpan& where, std::string message, std::string caret, std::string help,
                  std::vector<std::string> notes) {
  problems.push_back(
      problem_of(Severity::kError, kind, where, std::move(message), std::move(caret), std::move(help), std::move(notes)));
}

void Draft::warning(const char* kind, const SourceSpan& where, std::string message, std::string caret, std::string help,
                    std::vector<std::string> notes) {
  problems.push_back(
      problem_of(Severity::kWarning, kind, where, std::move(message), std::move(caret), std::move(help), std::move(notes)));
}

void Draft::add(const char* kind, const UserError& error) {
  for (Problem problem : error.problems()) {
    if (problem.kind.empty()) problem.kind = kind;
    problems.push_back(std::move(problem));
  }
}

std::vector<std::string> removal_notes(const Draft& draft, const std::string& path) {
  for (const Name& removed : draft.spec.removed)
    if (removed.text == path) return {removal_text(removed)};
  return {};
}

std::vector<std::string> notes_of_removed_nodes(const Draft& draft) {
  std::vector<std::string> notes;
  for (const Name& removed : draft.spec.removed)
    if (is_path_of_node(removed.text) && draft.find_node(name_in(removed.text)) < 0) notes.push_back(removal_text(removed));
  constexpr size_t kTold = 2;  // of more it is not clear which one is meant
  return notes.size() > kTold ? std::vector<std::string>() : notes;
}

SourceSpan place_of(const DraftNode& node) {
  return node.spec->params.where.known() ? node.spec->params.where : node.spec->name.where;
}

SourceSpan place_of(const DraftNode& node, const std::string& key) { return place_of(node.spec->params, key, place_of(node)); }

SourceSpan place_of(const Table& table, const std::string& key, const SourceSpan& otherwise) {
  const Entry* entry = table.find(key);
  if (entry != nullptr) return entry->value.where;
  return table.where.known() ? table.where : otherwise;
}

std::optional<DefaultNode> with_default_params(const NodeType& type, const Registry& registry, std::vector<Entry> written) {
  Table table;
  table.entries = std::move(written);
  for (const Param& param : type.params.params()) {
    if (param.info.required && table.find(param.info.name) == nullptr)
      table.entries.push_back({param.info.name, {}, stand_in(param.info, registry)});
  }
  Problems ignored;
  BindContext context{registry, ignored, type.info.type};
  try {
    const auto params = type.bind(table, context);
    if (params == nullptr || !params_usable(type, params.get())) return std::nullopt;
    return DefaultNode{&type, type.needs(params.get())};
  } catch (const UserError&) {
    return std::nullopt;  // the type looks at a file that a stand-in does not name
  }
}

PresetScope preset_scope(const Draft& draft, const DraftNode& node, std::vector<PresetUse>* uses) {
  return {.preset = draft.preset, .of = node.spec->type.text, .inside = {}, .uses = uses};
}

PresetScope preset_scope(const Draft& draft, std::vector<PresetUse>* uses) {
  return {.preset = draft.preset, .of = "model", .inside = {}, .uses = uses};
}

std::vector<std::string> preset_notes(const Draft& draft, const DraftNode& node) {
  std::vector<std::string> keys;
  for (const PresetUse& use : node.preset_uses) {
    if (use.given) keys.push_back(use.inside.empty() ? use.key : use.inside + "." + use.key);
  }
  if (keys.empty()) return {};
  return {"'" + node.name() + "' has from preset " + sluice::quoted(draft.preset->name) + ": " + join(keys, ", ")};
}

bool params_usable(const NodeType& type, const void* params) {
  for (const Param& param : type.params.params()) {
    const bool expected = param.info.required || !param.info.default_text.empty();
    if (param.info.kind == ParamKind::kComponent && expected && param.text(params).empty()) return false;
  }
  return true;
}

}  // namespace sluice::engine::checking
