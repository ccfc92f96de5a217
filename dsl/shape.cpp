#include "dsl/shape.h"

#include <algorithm>

#include "base/device_name.h"
#include "base/text/strings.h"
#include "engine/contract/spec/node_keys.h"

namespace sluice::dsl {
namespace {

using engine::Array;
using engine::Entry;
using engine::Name;
using engine::Table;
using engine::Value;

bool is_device_name(std::string_view text) { return sluice::device_name(text).has_value(); }

// [nodes.x] is pointed at as a whole; x = { ... } and x.type = ... by their key.
SourceSpan place_of(const Entry& entry) {
  const auto* table = std::get_if<Table>(&entry.value.data);
  const bool has_header = table != nullptr && table->where.known() && table->where.line == entry.key_where.line &&
                          table->where.source == entry.key_where.source && table->where.column < entry.key_where.column;
  return has_header ? table->where : entry.key_where;
}

/// Takes the merged tree apart, collecting problems.
class Shaper {
 public:
  explicit Shaper(Problems& problems) : problems_(problems) {}

  engine::PipelineSpec pipeline(Table&& root) {
    engine::PipelineSpec spec;
    spec.where = root.where;
    for (Entry& entry : root.entries) {
      if (entry.key == "pipeline")
        spec.pipeline = settings(std::move(entry));
      else if (entry.key == "budget")
        spec.budget = settings(std::move(entry));
      else if (entry.key == "schedule")
        spec.schedule = settings(std::move(entry));
      else if (entry.key == "runtime")
        spec.runtime = settings(std::move(entry));
      else if (entry.key == "checkpoint")
        spec.checkpoint = settings(std::move(entry));
      else if (entry.key == "log")
        spec.log = settings(std::move(entry));
      else if (entry.key == "cluster")
        spec.cluster = cluster(std::move(entry), spec.roles);
      else if (entry.key == "devices")
        spec.devices = devices(std::move(entry));
      else if (entry.key == "plugins")
        spec.plugins = plugins(entry, spec.plugins_base);
      else if (entry.key == "models")
        spec.models = models(std::move(entry));
      else if (entry.key == "nodes")
        spec.nodes = nodes(std::move(entry));
    }
    return spec;
  }

 private:
  void problem(const char* kind, const SourceSpan& where, std::string message, std::string caret, std::string help = {}) {
    problems_.push_back({.kind = kind,
                         .where = where,
                         .message = std::move(message),
                         .caret = std::move(caret),
                         .notes = {},
                         .help = std::move(help)});
  }

  Table settings(Entry&& entry) {
    if (auto* table = std::get_if<Table>(&entry.value.data)) return std::move(*table);
    problems_.push_back(not_a_table(entry, entry.key, entry.key));
    return {};
  }

  // Without its roles, which have tables of their own.
  Table cluster(Entry&& entry, std::vector<engine::RoleSpec>& roles) {
    Table table = settings(std::move(entry));
    const auto found = std::ranges::find(table.entries, "roles", &Entry::key);
    if (found == table.entries.end()) return table;
    for (Entry& role : named_tables(*found, {"role", "cluster.roles"}))
      roles.push_back({{role.key, place_of(role)}, std::move(std::get<Table>(role.value.data))});
    table.entries.erase(found);
    return table;
  }

  std::vector<engine::DeviceSpec> devices(Entry&& entry) {
    std::vector<engine::DeviceSpec> devices;
    for (Entry& device : named_tables(entry, {"device", "devices", is_device_name, "a kind and a number, as \"cuda:0\""}))
      devices.push_back({{device.key, place_of(device)}, std::move(std::get<Table>(device.value.data))});
    return devices;
  }

  std::vector<Name> plugins(const Entry& entry, std::string& base) {
    base = entry.value.base;
    return names(entry.value, "plugins", "libmy_nodes.so");
  }

  std::vector<engine::ModelSpec> models(Entry&& entry) {
    std::vector<engine::ModelSpec> models;
    for (Entry& model : named_tables(entry, {"model", "models"})) {
      models.push_back({{model.key, place_of(model)}, std::move(std::get<Table>(model.value.data))});
    }
    return models;
  }

  std::vector<engine::NodeSpec> nodes(Entry&& entry) {
    std::vector<engine::NodeSpec> nodes;
    for (Entry& node : named_tables(entry, {"node", "nodes"})) nodes.push_back(this->node(std::move(node)));
    return nodes;
  }

  struct NamedTables {
    std::string kind;
    std::string header;  // what their headers begin with
    bool (*is_allowed)(std::string_view name) = is_name;
    std::string allowed = "letters, digits, _ and -, beginning with a letter or _";
  };

  // The entries of [nodes] and the like that are tables.
  std::vector<Entry> named_tables(Entry& entry, const NamedTables& named_as) {
    const auto& [kind, header, is_allowed, allowed] = named_as;
    auto* table = std::get_if<Table>(&entry.value.data);
    if (table == nullptr) {
      problems_.push_back(not_a_table(entry, entry.key, header, kind));
      return {};
    }
    std::vector<Entry> tables;
    for (Entry& named : table->entries) {
      if (!is_allowed(named.key))
        problem("bad-name", named.key_where, sluice::quoted(named.key) + " cannot be the name of a " + kind, allowed);
      if (std::holds_alternative<Table>(named.value.data)) {
        tables.push_back(std::move(named));
      } else {
        problems_.push_back(named_not_a_table(named, kind, header));
      }
    }
    return tables;
  }

  engine::NodeSpec node(Entry&& entry) {
    engine::NodeSpec node;
    node.name = {entry.key, place_of(entry)};
    Table& table = std::get<Table>(entry.value.data);
    node.params.where = table.where;
    const bool has_type = table.find("type") != nullptr;
    for (Entry& key : table.entries) {
      const engine::NodeKey* of_every_node = engine::find_node_key(key.key);
      if (of_every_node == nullptr)
        node.params.entries.push_back(std::move(key));
      else
        read_key(key, *of_every_node, node);
    }
    if (!has_type) missing_type(node);
    return node;
  }

  void read_key(const Entry& entry, const engine::NodeKey& key, engine::NodeSpec& node) {
    const std::string what = key.name + " of node '" + node.name.text + "'";
    if (key.text != nullptr)
      node.*key.text = text(entry.value, what, key.example);
    else
      node.*key.names = names(entry.value, what, key.example);
  }

  void missing_type(const engine::NodeSpec& node) {
    std::vector<std::string> written;
    for (const Entry& entry : node.params.entries) written.push_back(entry.key);
    const std::string near = did_you_mean("type", written);
    problem("node-without-type", node.name.where, "node '" + node.name.text + "' has no type", "write type = \"...\" below it",
            near.empty() ? "" : "did you mean type where it says " + near + "?");
  }

  Name text(const Value& value, const std::string& what, const std::string& example) {
    const auto* text = std::get_if<std::string>(&value.data);
    if (text == nullptr) {
      problem("wrong-type", value.where, what + " must be a string, not " + engine::kind_name(value),
              "write it like " + sluice::quoted(example));
      return {"", value.where};
    }
    if (text->empty()) problem("empty-text", value.where, what + " is empty", "write it like " + sluice::quoted(example));
    return {*text, value.where};
  }

  std::vector<Name> names(const Value& value, const std::string& what, const std::string& example) {
    const auto* array = std::get_if<Array>(&value.data);
    if (array == nullptr) {
      const auto* single = std::get_if<std::string>(&value.data);
      const bool is_name = single != nullptr && !single->empty();
      problem("wrong-type", value.where, what + " must be an array of strings, not " + engine::kind_name(value),
              "write [" + sluice::quoted(is_name ? *single : example) + "]");
      return is_name ? std::vector<Name>{{*single, value.where}} : std::vector<Name>{};  // what was meant is clear
    }
    std::vector<Name> names;
    for (const Value& element : *array) {
      Name name = text(element, "an element of " + what, example);
      if (name.text.empty()) continue;
      const bool twice = std::any_of(names.begin(), names.end(), [&](const Name& other) { return other.text == name.text; });
      if (twice) {
        problem("written-twice", name.where, sluice::quoted(name.text) + " is written twice in " + what, "remove this one");
      } else {
        names.push_back(std::move(name));
      }
    }
    return names;
  }

  Problems& problems_;
};

}  // namespace

bool is_name(std::string_view text) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  const auto inner = [&](char c) { return letter(c) || (c >= '0' && c <= '9') || c == '-'; };
  return !text.empty() && letter(text.front()) && std::all_of(text.begin(), text.end(), inner);
}

// On the command line a key has its whole path, so that no header says where it belongs.
Problem not_a_table(const Entry& entry, const std::string& what, const std::string& path, const std::string& below) {
  const bool typed = entry.key_where.known() && entry.key_where.source->typed;
  const std::string keys = below.empty() ? path : path + ".NAME", its = below.empty() ? "its keys" : "the keys of a " + below;
  return {.kind = "wrong-type",
          .where = entry.key_where,
          .message = what + " is a table, not " + engine::kind_name(entry.value),
          .caret = below.empty() ? "write its keys below [" + path + "]" : "write each " + below + " as a table [" + keys + "]",
          .notes = {},
          .help = typed ? "--set " + keys + ".KEY=VALUE sets one of " + its : std::string()};
}

Problem named_not_a_table(const Entry& entry, const std::string& kind, const std::string& header) {
  const std::string path = header + "." + entry.key;
  Problem problem = not_a_table(entry, kind + " '" + entry.key + "'", path);
  if (!problem.help.empty()) problem.help += ", and --set " + path + "= removes the " + kind;
  return problem;
}

engine::PipelineSpec shape_pipeline(Table root, Problems& problems) { return Shaper(problems).pipeline(std::move(root)); }

}  // namespace sluice::dsl
