#include "text/tool_calls/call_value.h"

#include <algorithm>
#include <cctype>
#include <set>

#include "base/error.h"
#include "base/text/strings.h"
#include "text/tool_calls/call_marks.h"
#include "text/unicode/utf8.h"

namespace sluice::text {
namespace {

constexpr int kDeepest = 64;

std::optional<Json> parsed(std::string_view text) {
  try {
    return parse_json(text, "value");
  } catch (const UserError&) {
    return std::nullopt;
  }
}

// Recursive descent over one value.
class ValueReader {
 public:
  ValueReader(std::string_view text, size_t at, std::string_view quote) : text_(text), at_(at), quote_(quote) {}

  size_t at() const { return at_; }

  std::optional<Json> value(int depth) {
    skip_blanks();
    if (depth > kDeepest || at_ >= text_.size()) return std::nullopt;
    if (!quote_.empty() && text_.substr(at_).starts_with(quote_)) return marked();
    const char c = text_[at_];
    if (c == '"' || c == '\'') return string();
    if (c == '[') return list(']', depth);
    if (c == '(') return list(')', depth);
    if (c == '{') return object(depth);
    return word();
  }

 private:
  void skip_blanks() {
    while (at_ < text_.size() && call_marks::is_blank(text_[at_])) ++at_;
  }

  bool take(char c) {
    skip_blanks();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  std::optional<Json> marked() {
    const size_t begin = at_ + quote_.size(), end = text_.find(quote_, begin);
    if (end == std::string_view::npos) return std::nullopt;
    at_ = end + quote_.size();
    return Json(std::string(text_.substr(begin, end - begin)));
  }

  std::optional<Json> string() {
    const char quote = text_[at_++];
    std::string result;
    for (; at_ < text_.size(); ++at_) {
      if (text_[at_] == quote) {
        ++at_;
        return Json(std::move(result));
      }
      if (text_[at_] != '\\')
        result += text_[at_];
      else if (++at_ >= text_.size() || !escape(result))
        return std::nullopt;
    }
    return std::nullopt;
  }

  // Of the character after a backslash; as in Python one that means nothing stays with its backslash.
  bool escape(std::string& result) {
    static constexpr std::string_view kNames = "nrtbf\\'\"/", kMeant = "\n\r\t\b\f\\'\"/";
    const char c = text_[at_];
    if (const size_t found = kNames.find(c); found != std::string_view::npos) {
      result += kMeant[found];
      return true;
    }
    const size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    if (digits > 0) return code_point(digits, result);
    result += '\\';
    result += c;
    return true;
  }

  bool code_point(size_t digits, std::string& result) {
    auto code = hex(digits);
    if (!code) return false;
    constexpr char32_t kHigh = 0xD800, kLow = 0xDC00, kEnd = 0xE000, kReplacement = 0xFFFD, kMost = 0x10FFFF;
    if (*code >= kHigh && *code < kLow && text_.substr(at_ + 1).starts_with("\\u")) {
      const size_t back = at_;
      at_ += 2;
      const auto low = hex(4);
      if (low && *low >= kLow && *low < kEnd)
        code = 0x10000 + ((*code - kHigh) << 10) + (*low - kLow);
      else
        at_ = back;
    }
    append_utf8((*code >= kHigh && *code < kEnd) || *code > kMost ? kReplacement : *code, result);
    return true;
  }

  // Leaves at_ on the last digit.
  std::optional<char32_t> hex(size_t digits) {
    char32_t code = 0;
    for (size_t i = 0; i < digits; ++i) {
      if (++at_ >= text_.size() || std::isxdigit(static_cast<unsigned char>(text_[at_])) == 0) return std::nullopt;
      const char c = text_[at_];
      code = code * 16 + static_cast<char32_t>(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
    }
    return code;
  }

  std::optional<Json> list(char close, int depth) {
    ++at_;
    Json items = Json::array();
    while (!take(close)) {
      if (!items.empty() && !take(',')) return std::nullopt;
      if (!items.empty() && take(close)) break;
      auto item = value(depth + 1);
      if (!item) return std::nullopt;
      items.push_back(std::move(*item));
    }
    return items;
  }

  std::optional<Json> object(int depth) {
    ++at_;
    Json entries = Json::object();
    constexpr size_t kMostKeys = 4096;  // ordered objects are searched from the first key to the last
    while (!take('}')) {
      if (!entries.empty() && !take(',')) return std::nullopt;
      if (!entries.empty() && take('}')) break;
      const auto key = this->key();
      if (!key || !take(':') || entries.size() >= kMostKeys) return std::nullopt;
      auto item = value(depth + 1);
      if (!item) return std::nullopt;
      entries[*key] = std::move(*item);
    }
    return entries;
  }

  std::optional<std::string> key() {
    skip_blanks();
    if (at_ >= text_.size()) return std::nullopt;
    if (text_[at_] == '"' || text_[at_] == '\'' || (!quote_.empty() && text_.substr(at_).starts_with(quote_))) {
      const auto string = value(kDeepest);
      return string ? std::optional(string->get<std::string>()) : std::nullopt;
    }
    const size_t end = text_.find_first_of(":,{}[]\"'\n", at_);
    if (end == std::string_view::npos || trim(text_.substr(at_, end - at_)).empty()) return std::nullopt;
    std::string name(trim(text_.substr(at_, end - at_)));
    at_ = end;
    return name;
  }

  // A number, or a name for true, false or nothing.
  std::optional<Json> word() {
    size_t end = at_;
    while (end < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[end])) != 0 || text_[end] == '.' ||
                                  text_[end] == '+' || text_[end] == '-'))
      ++end;
    const std::string_view word = text_.substr(at_, end - at_);
    std::optional<Json> value;
    if (word == "True" || word == "true")
      value = true;
    else if (word == "False" || word == "false")
      value = false;
    else if (word == "None" || word == "null")
      value = Json();
    else if (!word.empty() && (word[0] == '-' || std::isdigit(static_cast<unsigned char>(word[0])) != 0))
      value = parsed(word);
    if (value) at_ = end;
    return value;
  }

  const std::string_view text_;
  size_t at_;
  const std::string_view quote_;
};

// What a reference "#/$defs/..." of the schema stands for.
const Json& resolved(const Json& schema, const Json& root) {
  const Json* found = &schema;
  for (int depth = 0; depth < 8 && found->is_object() && found->contains("$ref"); ++depth) {
    const Json& reference = (*found)["$ref"];
    if (!reference.is_string() || !reference.get_ref<const std::string&>().starts_with("#/")) return schema;
    try {
      found = &root.at(Json::json_pointer(reference.get<std::string>().substr(1)));
    } catch (const Json::exception&) {
      return schema;
    }
  }
  return *found;
}

std::string schema_type_of(const Json& value) {
  if (value.is_string()) return "string";
  if (value.is_boolean()) return "boolean";
  if (value.is_number_integer()) return "integer";
  if (value.is_number()) return "number";
  if (value.is_array()) return "array";
  return value.is_object() ? "object" : "null";
}

void add_types(const Json& schema, const Json& root, int depth, std::set<std::string>& types) {
  const Json& meant = resolved(schema, root);
  if (!meant.is_object() || depth > 8) return;
  const auto add = [&](const Json& type) {
    if (type.is_string()) types.insert(type.get<std::string>());
  };
  if (const auto type = meant.find("type"); type != meant.end()) {
    if (type->is_array()) std::ranges::for_each(*type, add);
    return add(*type);
  }
  if (const auto one = meant.find("const"); one != meant.end()) types.insert(schema_type_of(*one));
  if (const auto some = meant.find("enum"); some != meant.end() && some->is_array())
    for (const Json& value : *some) types.insert(schema_type_of(value));
  for (const char* choice : {"anyOf", "oneOf", "allOf"}) {
    const auto parts = meant.find(choice);
    if (parts == meant.end() || !parts->is_array()) continue;
    for (const Json& part : *parts) add_types(part, root, depth + 1, types);
  }
}

bool is_of(const Json& value, const std::set<std::string>& types) {
  const std::string type = schema_type_of(value);
  return types.contains(type) || (type == "integer" && types.contains("number"));
}

// A whole number that was written as a real one.
Json as_integer_if_meant(Json value, const std::set<std::string>& types) {
  if (!value.is_number_float() || types.contains("number") || !types.contains("integer")) return value;
  const auto real = value.get<double>();
  constexpr double kExact = 9007199254740992.0;
  if (real < -kExact || real > kExact || real != static_cast<double>(static_cast<int64_t>(real))) return value;
  return static_cast<int64_t>(real);
}

}  // namespace

std::optional<Json> read_call_value(std::string_view text, size_t& at, std::string_view quote) {
  ValueReader reader(text, at, quote);
  auto value = reader.value(0);
  if (!value || !is_utf8(text.substr(at, reader.at() - at))) return std::nullopt;
  at = reader.at();
  return value;
}

Json typed_call_value(std::string_view raw, const Json& schema, const Json& root) {
  std::set<std::string> types;
  add_types(schema, root, 0, types);
  const std::string_view text = trim(raw);
  const Json as_text = std::string(raw);
  if (types.empty()) {
    const auto value = parsed(text);
    return value && !value->is_string() ? *value : as_text;
  }
  if (types.contains("string") && !(text == "null" && types.contains("null"))) return as_text;
  size_t end = 0;
  auto value = parsed(text);
  if (!value) value = read_call_value(text, end);
  if (!value || (end > 0 && end < text.size())) return as_text;
  *value = as_integer_if_meant(std::move(*value), types);
  return is_of(*value, types) ? *value : as_text;
}

}  // namespace sluice::text
