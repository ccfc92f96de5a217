#include "text/jinja/value.h"

#include <algorithm>
#include <functional>

#include "text/jinja/operators.h"
#include "text/jinja/unicode.h"

namespace sluice::text::jinja {

std::string_view Value::text() const { return as<String>().text; }
const std::vector<Value>& Value::items() const { return as<List>().items; }

String::String(std::string bytes, bool is_markup) : text(std::move(bytes)), length(unicode::length(text)), markup(is_markup) {}

namespace {

constexpr size_t kSmall = 8;  // up to here a search from the front is faster
constexpr size_t kAbsent = static_cast<size_t>(-1);

}  // namespace

size_t Dict::position(Sandbox& sandbox, const Value& key, uint64_t hash) const {
  if (entries_.size() <= kSmall) {
    for (size_t i = 0; i < entries_.size(); ++i) {
      if (equal(sandbox, entries_[i].first, key)) return i;
    }
    return kAbsent;
  }
  const auto [begin, end] = index_.equal_range(hash);
  for (auto candidate = begin; candidate != end; ++candidate) {
    if (equal(sandbox, entries_[candidate->second].first, key)) return candidate->second;
  }
  return kAbsent;
}

const Value* Dict::find(Sandbox& sandbox, const Value& key) const {
  const size_t found = position(sandbox, key, hash_of(sandbox, key));
  return found == kAbsent ? nullptr : &entries_[found].second;
}

const Value* Dict::find(Sandbox& sandbox, std::string_view key) const {
  const auto holds = [&](const Entry& entry) { return entry.first.is_string() && entry.first.text() == key; };
  sandbox.work(key.size());
  if (entries_.size() <= kSmall) {
    const auto found = std::find_if(entries_.begin(), entries_.end(), holds);
    return found == entries_.end() ? nullptr : &found->second;
  }
  const auto [begin, end] = index_.equal_range(std::hash<std::string_view>()(key));
  const auto found = std::find_if(begin, end, [&](const auto& candidate) { return holds(entries_[candidate.second]); });
  return found == end ? nullptr : &entries_[found->second].second;
}

void Dict::index_all(Sandbox& sandbox) {
  for (size_t i = 0; i < entries_.size(); ++i) index_.emplace(hash_of(sandbox, entries_[i].first), i);
}

void Dict::set(Sandbox& sandbox, const Value& key, Value value) {
  constexpr size_t kEntry = sizeof(Entry) * 2 + 64;  // room to grow, and the index
  const uint64_t hash = hash_of(sandbox, key);
  const size_t found = position(sandbox, key, hash);
  if (found != kAbsent) {
    entries_[found].second = std::move(value);
    return;
  }
  sandbox.grow(*this, kEntry);
  entries_.emplace_back(key, std::move(value));
  if (entries_.size() == kSmall + 1) {
    index_all(sandbox);
  } else if (entries_.size() > kSmall) {
    index_.emplace(hash, entries_.size() - 1);
  }
}

Value make_undefined(Sandbox& sandbox, std::string message) { return Value::make<Undefined>(sandbox, std::move(message)); }

Value make_string(Sandbox& sandbox, std::string text, bool markup) {
  sandbox.work(text.size());
  return Value::make<String>(sandbox, std::move(text), markup);
}

Value make_list(Sandbox& sandbox, std::vector<Value> items) { return Value::make<List>(sandbox, Kind::kList, std::move(items)); }

Value make_tuple(Sandbox& sandbox, std::vector<Value> items) {
  return Value::make<List>(sandbox, Kind::kTuple, std::move(items));
}

Value make_pair(Sandbox& sandbox, const Value& first, const Value& second) { return make_tuple(sandbox, {first, second}); }

Value make_dict(Sandbox& sandbox) { return Value::make<Dict>(sandbox); }

std::string type_name(const Value& value) {
  switch (value.kind()) {
    case Kind::kMissing:
    case Kind::kUndefined:
      return "Undefined";
    case Kind::kNone:
      return "NoneType";
    case Kind::kBool:
      return "bool";
    case Kind::kInt:
      return "int";
    case Kind::kFloat:
      return "float";
    case Kind::kString:
      return value.as<String>().markup ? "Markup" : "str";
    case Kind::kList:
      return "list";
    case Kind::kTuple:
      return "tuple";
    case Kind::kDict:
      return "dict";
    case Kind::kDictView:
      return "dict view";
    case Kind::kRange:
      return "range";
    case Kind::kIterator:
      return value.as<Iterator>().name;
    case Kind::kNamespace:
      return "Namespace";
    case Kind::kLoop:
      return "LoopContext";
    case Kind::kCallable:
      return "function";
    case Kind::kCycler:
      return "Cycler";
    case Kind::kActivation:
      break;
  }
  return "value";
}

std::string with_article(const Value& value) {
  const std::string name = type_name(value);
  return (name == "int" || name == "Undefined" ? "an " : "a ") + name;
}

}  // namespace sluice::text::jinja
