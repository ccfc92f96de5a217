#include "text/jinja/json_text.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "text/jinja/convert.h"
#include "text/jinja/operators.h"
#include "text/jinja/unicode.h"
#include "text/unicode/utf8.h"

namespace sluice::text::jinja {
namespace {

class Writer {
 public:
  Writer(Sandbox& sandbox, const JsonStyle& style) : sandbox_(sandbox), style_(style) {}

  void write(const Value& value) {
    const Nesting nesting(sandbox_);
    sandbox_.spend();
    sandbox_.expect(out.size());
    switch (value.kind()) {
      case Kind::kNone:
        out += "null";
        return;
      case Kind::kBool:
        out += value.as_bool() ? "true" : "false";
        return;
      case Kind::kInt:
        out += std::to_string(value.as_integer());
        return;
      case Kind::kFloat:
        out += number(value.as_real());
        return;
      case Kind::kString:
        write_string(value.text());
        return;
      case Kind::kList:
      case Kind::kTuple:
        write_list(value.items());
        return;
      case Kind::kDict:
        write_dict(value.as<Dict>());
        return;
      default:
        break;
    }
    must_be_defined(value);
    throw Failure("tojson has no form for " + with_article(value));
  }

  std::string out;

 private:
  static std::string number(double value) {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
    return repr_of(value);
  }

  void write_unit(unsigned unit) {
    char escape[16];
    std::snprintf(escape, sizeof escape, "\\u%04x", unit);
    out += escape;
  }

  void write_character(char32_t c) {
    switch (c) {
      case '"':
        out += "\\\"";
        return;
      case '\\':
        out += "\\\\";
        return;
      case '\n':
        out += "\\n";
        return;
      case '\r':
        out += "\\r";
        return;
      case '\t':
        out += "\\t";
        return;
      case '\f':
        out += "\\f";
        return;
      case '\b':
        out += "\\b";
        return;
      default:
        break;
    }
    if (c < 0x20 || (style_.ensure_ascii && c >= 0x7F && c < 0x10000)) {
      write_unit(c);
    } else if (style_.ensure_ascii && c >= 0x10000) {
      write_unit(0xD800 + ((c - 0x10000) >> 10));
      write_unit(0xDC00 + ((c - 0x10000) & 0x3FF));
    } else {
      append_utf8(c, out);
    }
  }

  void write_string(std::string_view text) {
    sandbox_.work(text.size());
    out += '"';
    for (size_t i = 0; i < text.size();) write_character(unicode::next(text, i));
    out += '"';
  }

  void new_line() {
    if (!style_.indented) return;
    sandbox_.expect(style_.indent.size() * levels_);
    sandbox_.work(style_.indent.size() * levels_);
    out += '\n';
    for (size_t i = 0; i < levels_; ++i) out += style_.indent;
  }

  void write_list(const std::vector<Value>& items) {
    if (items.empty()) {
      out += "[]";
      return;
    }
    out += '[';
    ++levels_;
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) out += style_.item_separator;
      new_line();
      write(items[i]);
    }
    --levels_;
    new_line();
    out += ']';
  }

  void write_key(const Value& key) {
    if (key.is_string()) return write_string(key.text());
    if (!key.is_number() && !key.is_none()) throw Failure("tojson has no form for a key that is " + with_article(key));
    out += '"';
    write(key);
    out += '"';
  }

  void write_dict(const Dict& dict) {
    if (dict.size() == 0) {
      out += "{}";
      return;
    }
    std::vector<const Dict::Entry*> entries;
    for (const auto& entry : dict.entries()) entries.push_back(&entry);
    if (style_.sort_keys) {
      std::stable_sort(entries.begin(), entries.end(),
                       [&](const auto* a, const auto* b) { return less(sandbox_, a->first, b->first); });
    }
    out += '{';
    ++levels_;
    bool first = true;
    for (const auto* entry : entries) {
      if (!first) out += style_.item_separator;
      first = false;
      new_line();
      write_key(entry->first);
      out += style_.key_separator;
      write(entry->second);
    }
    --levels_;
    new_line();
    out += '}';
  }

  Sandbox& sandbox_;
  const JsonStyle& style_;
  size_t levels_ = 0;
};

}  // namespace

std::string json_text(Sandbox& sandbox, const Value& value, const JsonStyle& style) {
  Writer writer(sandbox, style);
  writer.write(value);
  return std::move(writer.out);
}

}  // namespace sluice::text::jinja
