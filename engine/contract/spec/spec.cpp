#include "engine/contract/spec/spec.h"

#include "base/text/strings.h"

namespace sluice::engine {
namespace {

template <class... Fs>
struct Overloaded : Fs... {
  using Fs::operator()...;
};
template <class... Fs>
Overloaded(Fs...) -> Overloaded<Fs...>;

}  // namespace

const Entry* Table::find(std::string_view key) const {
  for (const Entry& entry : entries) {
    if (entry.key == key) return &entry;
  }
  return nullptr;
}

std::string kind_name(const Value& value) {
  return std::visit(Overloaded{[](bool) { return "a boolean"; }, [](int64_t) { return "an integer"; },
                               [](double) { return "a number"; }, [](const std::string&) { return "a string"; },
                               [](const Array&) { return "an array"; }, [](const Table&) { return "a table"; }},
                    value.data);
}

std::string toml_text(const Value& value) {
  const auto array_text = [](const Array& array) {
    std::vector<std::string> parts;
    for (const Value& element : array) parts.push_back(toml_text(element));
    return "[" + join(parts, ", ") + "]";
  };
  const auto table_text = [](const Table& table) {
    std::vector<std::string> parts;
    for (const Entry& entry : table.entries) parts.push_back(entry.key + " = " + toml_text(entry.value));
    return parts.empty() ? std::string("{}") : "{ " + join(parts, ", ") + " }";
  };
  return std::visit(Overloaded{[](bool b) { return std::string(b ? "true" : "false"); },
                               [](int64_t i) { return std::to_string(i); }, [](double d) { return real_text(d); },
                               [](const std::string& s) { return sluice::quoted(s); }, array_text, table_text},
                    value.data);
}

}  // namespace sluice::engine
