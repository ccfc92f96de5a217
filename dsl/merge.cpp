// merge_layers: several trees of keys become one.
#include "base/strings.h"
#include "dsl/layers.h"

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

/// Merges [nodes] or [models], where false removes and an override must not create.
class NamedTables {
 public:
  NamedTables(const std::string& kind, engine::Table& under, bool is_override, Problems& problems)
      : kind_(kind), under_(under), is_override_(is_override), problems_(problems) {}

  void merge(engine::Entry&& over) {
    const engine::Entry* old = find_entry(under_, over.key);
    if (old == nullptr && is_override_) {
      unknown("nothing-to-override", over, "no " + kind_ + " is named " + sluice::quoted(over.key));
    } else if (old == nullptr && is_false(over.value)) {
      unknown("nothing-to-remove", over,
              "no inherited " + kind_ + " is named " + sluice::quoted(over.key) + ", so there is none to remove");
    } else if (is_false(over.value)) {
      under_.entries.erase(under_.entries.begin() + (old - under_.entries.data()));
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

  std::string kind_;
  engine::Table& under_;
  bool is_override_;
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

void merge_top_level(engine::Table& root, engine::Entry&& over, bool is_override, Problems& problems) {
  auto* table = std::get_if<engine::Table>(&over.value.data);
  engine::Table* under = nullptr;
  if (table != nullptr && (over.key == "nodes" || over.key == "models")) under = named_tables_of(root, over);
  if (under == nullptr) {
    merge_entry(root, std::move(over));
    return;
  }
  NamedTables named(over.key == "nodes" ? "node" : "model", *under, is_override, problems);
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

void remove_or_say(engine::Table& root, const engine::Entry& over, Problems& problems) {
  if (remove_key(root, over)) return;
  problems.push_back({.kind = "nothing-to-remove",
                      .where = over.key_where,
                      .message = "no layer sets " + path_of(over) + ", so there is nothing to remove",
                      .caret = {},
                      .notes = {},
                      .help = "--set KEY= removes a key; an empty text is --set KEY='\"\"'"});
}

}  // namespace

engine::Table merge_layers(std::vector<Layer> layers, Problems& problems) {
  engine::Table merged;
  if (!layers.empty()) merged.where = layers.front().root.where;
  for (Layer& layer : layers) {
    if (!layer.is_override) merged.where = layer.root.where;  // the file that the user named comes last
    if (layer.removes) {
      remove_or_say(merged, layer.root.entries.front(), problems);
      continue;
    }
    for (engine::Entry& entry : layer.root.entries) merge_top_level(merged, std::move(entry), layer.is_override, problems);
  }
  return merged;
}

}  // namespace sluice::dsl
