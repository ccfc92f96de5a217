// merge_layers: several trees of keys become one.
#include <algorithm>
#include <utility>

#include "base/text/strings.h"
#include "dsl/layers.h"
#include "dsl/shape.h"

namespace sluice::dsl {
namespace {

engine::Entry* find_entry(engine::Table& table, std::string_view key) {
  for (engine::Entry& entry : table.entries) {
    if (entry.key == key) return &entry;
  }
  return nullptr;
}

void merge_table(engine::Table& under, engine::Table&& over);

void merge_entry(engine::Table& under, engine::Entry&& over) {
  engine::Entry* old = find_entry(under, over.key);
  if (old == nullptr) {
    under.entries.push_back(std::move(over));
    return;
  }
  auto* old_table = std::get_if<engine::Table>(&old->value.data);
  auto* new_table = std::get_if<engine::Table>(&over.value.data);
  if (old_table != nullptr && new_table != nullptr) {
    merge_table(*old_table, std::move(*new_table));
  } else {
    *old = std::move(over);
  }
}

void merge_table(engine::Table& under, engine::Table&& over) {
  for (engine::Entry& entry : over.entries) merge_entry(under, std::move(entry));
}

bool is_false(const engine::Value& value) {
  const bool* flag = std::get_if<bool>(&value.data);
  return flag != nullptr && !*flag;
}

bool is_table(const engine::Value& value) { return std::holds_alternative<engine::Table>(value.data); }

bool is_name_of_table(const std::string& key) { return std::ranges::find(table_names(), key) != table_names().end(); }

/// Merges [nodes] or [models], where false removes and an override must not create.
class NamedTables {
 public:
  NamedTables(std::string header, engine::Table& under, bool is_override, std::vector<engine::Name>& removed, Problems& problems)
      : header_(std::move(header)), under_(under), is_override_(is_override), removed_(removed), problems_(problems) {}

  void merge(engine::Entry&& over) {
    const engine::Entry* old = find_entry(under_, over.key);
    if (old == nullptr && is_override_) {
      unknown("nothing-to-override", over, "no " + kind_ + " is named " + sluice::quoted(over.key));
    } else if (old == nullptr && is_false(over.value)) {
      unknown("nothing-to-remove", over,
              "no inherited " + kind_ + " is named " + sluice::quoted(over.key) + ", so there is none to remove");
    } else if (is_false(over.value)) {
      removed_.push_back({header_ + "." + over.key, over.key_where});
      under_.entries.erase(under_.entries.begin() + (old - under_.entries.data()));
    } else if (old != nullptr && is_table(old->value) && !is_table(over.value)) {
      problems_.push_back(named_not_a_table(over, kind_, header_));
    } else {
      merge_entry(under_, std::move(over));
    }
  }

 private:
  void unknown(const char* problem_kind, const engine::Entry& over, std::string message) {
    std::vector<std::string> names;
    for (const engine::Entry& entry : under_.entries) names.push_back(entry.key);
    const std::string near = did_you_mean(over.key, names);
    Problem problem{
        .kind = problem_kind, .where = over.key_where, .message = std::move(message), .caret = {}, .notes = {}, .help = {}};
    if (!near.empty()) {
      problem.caret = "did you mean " + near + "?";
    } else if (!names.empty()) {
      problem.notes.push_back("there are: " + join(names, ", "));
    }
    problems_.push_back(std::move(problem));
  }

  const std::string header_;
  const std::string kind_ = header_ == "nodes" ? "node" : "model";
  engine::Table& under_;
  const bool is_override_;
  std::vector<engine::Name>& removed_;
  Problems& problems_;
};

// [nodes] or [models] of `root`, made when it is not there yet; null when something else has that name.
engine::Table* named_tables_of(engine::Table& root, const engine::Entry& over) {
  engine::Entry* old = find_entry(root, over.key);
  if (old != nullptr) return std::get_if<engine::Table>(&old->value.data);
  const engine::Table& table = std::get<engine::Table>(over.value.data);
  root.entries.push_back(
      {over.key, over.key_where, {engine::Table{.entries = {}, .where = table.where}, over.value.where, over.value.base}});
  return &std::get<engine::Table>(root.entries.back().value.data);
}

void merge_top_level(Merged& merged, engine::Entry&& over, bool is_override, Problems& problems) {
  const engine::Entry* old = merged.root.find(over.key);
  if (old != nullptr && is_name_of_table(over.key) && is_table(old->value) && !is_table(over.value)) {
    const bool of_names = over.key == "nodes" || over.key == "models" || over.key == "devices";
    problems.push_back(not_a_table(over, over.key, over.key, of_names ? over.key.substr(0, over.key.size() - 1) : std::string()));
    return;
  }
  auto* table = std::get_if<engine::Table>(&over.value.data);
  engine::Table* under = nullptr;
  if (table != nullptr && (over.key == "nodes" || over.key == "models")) under = named_tables_of(merged.root, over);
  if (under == nullptr) {
    merge_entry(merged.root, std::move(over));
    return;
  }
  NamedTables named(over.key, *under, is_override, merged.removed, problems);
  for (engine::Entry& entry : table->entries) named.merge(std::move(entry));
}

// "a.b.c" for the entry whose value is a table with one entry, and so on.
std::string path_of(const engine::Entry& entry) {
  const auto* inner = std::get_if<engine::Table>(&entry.value.data);
  return inner == nullptr ? entry.key : entry.key + "." + path_of(inner->entries.front());
}

// False: nobody has set it.
bool remove_key(engine::Table& under, const engine::Entry& over) {
  engine::Entry* old = find_entry(under, over.key);
  if (old == nullptr) return false;
  if (const auto* inner = std::get_if<engine::Table>(&over.value.data)) {
    auto* table = std::get_if<engine::Table>(&old->value.data);
    return table != nullptr && remove_key(*table, inner->entries.front());
  }
  under.entries.erase(under.entries.begin() + (old - under.entries.data()));
  return true;
}

void remove_or_say(Merged& merged, const engine::Entry& over, Problems& problems) {
  const std::string path = path_of(over);
  if (remove_key(merged.root, over)) return merged.removed.push_back({path, over.key_where});
  problems.push_back({.kind = "nothing-to-remove",
                      .where = over.key_where,
                      .message = "no layer sets " + path + ", so there is nothing to remove",
                      .caret = {},
                      .notes = {},
                      .help = "--set KEY= removes a key; an empty text is --set KEY='\"\"'"});
}

}  // namespace

Merged merge_layers(std::vector<Layer> layers, Problems& problems) {
  Merged merged;
  if (!layers.empty()) merged.root.where = layers.front().root.where;
  for (Layer& layer : layers) {
    if (!layer.is_override) merged.root.where = layer.root.where;  // the file that the user named comes last
    if (layer.removes) {
      remove_or_say(merged, layer.root.entries.front(), problems);
      continue;
    }
    for (engine::Entry& entry : layer.root.entries) merge_top_level(merged, std::move(entry), layer.is_override, problems);
  }
  return merged;
}

}  // namespace sluice::dsl
