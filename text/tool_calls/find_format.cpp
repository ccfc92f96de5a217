#include "text/tool_calls/find_format.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/text/strings.h"
#include "text/tool_calls/call_marks.h"
#include "text/tool_calls/probe.h"

namespace sluice::text {
namespace {

using Call = TemplateProbe::Call;

constexpr size_t kAbsent = std::string_view::npos;

// Calls that no template writes by itself.
const std::string kName = "sluice_probe_tool", kOtherName = "sluice_probe_second";
const std::string kKey = "sluice_probe_key", kOtherKey = "sluice_probe_more";
const std::string kValue = "sluice_probe_value";
const std::string kOddText = "sluice_\"probe\"_'odd'_\\text";  // no two ways to write a string leave it as it is
constexpr int64_t kNumber = 2718281, kOtherNumber = 3141592;

Json probe_arguments() { return {{kKey, kValue}}; }

bool is_probe_arguments(const Json& value) {
  if (value.is_object()) return value == probe_arguments();
  return value.is_string() && value.get_ref<const std::string&>().find(kValue) != std::string::npos;
}

// The keys of a call that is JSON.
bool find_keys(const Json& value, ToolCallFormat& format) {
  const Json& one = value.is_array() && value.size() == 1 ? value.front() : value;
  if (!one.is_object()) return false;
  const Json& call = one.contains("function") && one["function"].is_object() ? one["function"] : one;
  bool has_name = false, has_arguments = false;
  for (const auto& [key, entry] : call.items()) {
    if (entry == kName) format.name_key = key, has_name = true;
    if (is_probe_arguments(entry)) format.arguments_key = key, has_arguments = true;
  }
  return has_name && has_arguments;
}

bool reads_probe(const ToolCallFormat& format, std::string_view said) {
  const ParsedTurn turn = format.parse(said);
  return turn.text.empty() && turn.calls.size() == 1 && turn.calls.front().fault.empty() && turn.calls.front().name == kName &&
         turn.calls.front().arguments == probe_arguments();
}

// Of several marks before a call the last is enough: others may hold what a model has to say first.
ToolCallFormat with_last_mark(ToolCallFormat format) {
  const size_t last = format.open.find_last_of("<[");
  if (last != std::string::npos && call_marks::is_distinct(std::string_view(format.open).substr(last)))
    format.open.erase(0, last);
  return format;
}

// JSON that holds the call, from `begin` on, as long as it can be.
std::optional<ToolCallFormat> format_from(std::string_view said, size_t begin, size_t value) {
  for (size_t end = said.find_last_of("}]"); end != std::string_view::npos && end > value;
       end = said.find_last_of("}]", end - 1)) {
    Json json;
    try {
      json = parse_json(said.substr(begin, end + 1 - begin), "call");
    } catch (const UserError&) {
      continue;
    }
    ToolCallFormat format{.open = std::string(trim(said.substr(0, begin))), .close = std::string(trim(said.substr(end + 1)))};
    const bool is_between_marks = !format.open.empty() || format.close.empty();
    if (is_between_marks && find_keys(json, format) && reads_probe(format, said)) return with_last_mark(std::move(format));
  }
  return std::nullopt;
}

std::optional<ToolCallFormat> find_objects(std::string_view said) {
  const size_t name = said.find(kName), value = said.rfind(kValue);
  if (name == kAbsent || value == kAbsent) return std::nullopt;
  for (size_t begin = said.find_first_of("{["); begin < name; begin = said.find_first_of("{[", begin + 1)) {
    if (auto format = format_from(said, begin, value)) return format;
  }
  return std::nullopt;
}

// `text` as a mark: what it says of the call becomes holes.
std::string as_mark(std::string_view text, std::string_view name) {
  std::string mark(text);
  const auto put = [&](const std::string& what, char hole) {
    for (size_t at = mark.find(what); !what.empty() && at != std::string::npos; at = mark.find(what, at))
      mark.replace(at, what.size(), 1, hole);
  };
  put(std::string(name), call_marks::kName);
  for (const size_t index : {0, 1}) put(TemplateProbe::id(index), call_marks::kId);
  for (const std::string& key : {kKey, kOtherKey}) put(key, call_marks::kKey);
  return mark;
}

// Learns calls whose name and arguments stand apart, by what changes from one probe to the next.
class NameProbe {
 public:
  NameProbe(const TemplateProbe& probe, bool as_text, const ThinkingMarks& thinking)
      : probe_(probe), as_text_(as_text), thinking_(thinking) {}

  std::optional<ToolCallFormat> learn() {
    const auto one = said({{kName, probe_arguments()}});
    if (!one || one->find(kValue) == std::string::npos) return std::nullopt;
    name_ = kName;
    if (one->find(kName) == std::string::npos) {
      name_ = TemplateProbe::id(0);
      calls_.name_is_id = true;
    }
    const std::string_view text = *one;
    const size_t name = text.find(name_);
    if (name == kAbsent || text.find(kKey, name) == kAbsent || text.find(kValue, name) == kAbsent) return std::nullopt;
    format_.open = trim_front(as_mark(text.substr(0, name), name_));
    const size_t behind = name + name_.size();
    if (!learn_object(text, behind) && !learn_keys(text, behind)) return std::nullopt;
    format_.by_name = calls_;
    if (reads(text)) return format_;
    return std::nullopt;
  }

 private:
  std::optional<std::string> said(const std::vector<Call>& calls) const { return probe_.said(calls, as_text_, thinking_); }

  static std::string trim_front(const std::string& text) {
    const size_t begin = text.find_first_not_of(" \t\r\n");
    return begin == std::string::npos ? std::string() : text.substr(begin);
  }
  static std::string trim_back(const std::string& text) { return text.substr(0, text.find_last_not_of(" \t\r\n") + 1); }

  std::string second_name() const { return calls_.name_is_id ? TemplateProbe::id(1) : kOtherName; }

  // The text from the first place of `from` after `at` to that of `to`; nothing: one of them is not there.
  static std::optional<std::string> between(std::string_view text, size_t at, std::string_view from, std::string_view to) {
    const size_t begin = text.find(from, at);
    if (begin == kAbsent) return std::nullopt;
    const size_t end = text.find(to, begin + from.size());
    if (end == kAbsent) return std::nullopt;
    return std::string(text.substr(begin + from.size(), end - begin - from.size()));
  }

  bool reads(std::string_view said) const {
    const ParsedTurn turn = format_.parse(said);
    if (turn.calls.size() != 1 || !turn.calls.front().fault.empty()) return false;
    const ToolCall& call = turn.calls.front();
    return call.name == name_ && call.arguments == probe_arguments();
  }

  bool learn_object(std::string_view text, size_t behind) {
    const size_t value = text.find(kValue, behind);
    for (size_t begin = text.find('{', behind); begin < value; begin = text.find('{', begin + 1)) {
      const size_t end = end_of_json(text, begin);
      if (end == kAbsent) continue;
      try {
        if (!is_probe_arguments(parse_json(text.substr(begin, end - begin), "call"))) continue;
      } catch (const UserError&) {
        continue;
      }
      calls_.arguments_open = as_mark(text.substr(behind, begin - behind), name_);
      format_.close = trim_back(as_mark(text.substr(end), name_));
      const auto two = said({{kName, probe_arguments()}, {kOtherName, probe_arguments()}});
      const size_t first = two ? two->find(name_) : kAbsent;
      const size_t brace = first == kAbsent ? kAbsent : two->find(text.substr(begin, end - begin), first);
      if (brace == kAbsent) return true;
      const size_t ended = brace + (end - begin), second = two->find(second_name(), ended);
      if (second != kAbsent) calls_.between = as_mark(std::string_view(*two).substr(ended, second - ended), name_);
      return true;
    }
    return false;
  }

  bool learn_keys(std::string_view text, size_t behind) {
    const size_t key = text.find(kKey, behind), value = text.find(kValue, key);
    if (key == kAbsent || value == kAbsent) return false;
    calls_.has_keys = true;
    calls_.arguments_open = as_mark(text.substr(behind, key - behind), name_);
    const std::string before_text = as_mark(text.substr(key + kKey.size(), value - key - kKey.size()), name_);
    const std::string behind_text = as_mark(text.substr(value + kValue.size()), name_);
    learn_numbers(before_text, behind_text);
    learn_texts(before_text, behind_text);
    learn_without_arguments();
    format_.close = trim_back(format_.close);
    return true;
  }

  // What stands around values that are no strings: what is more around strings belongs to these.
  void learn_numbers(const std::string& before_text, const std::string& behind_text) {
    const std::string number = std::to_string(kNumber), other = std::to_string(kOtherNumber);
    calls_.value_open = before_text;
    format_.close = behind_text;
    const Json one = {{kKey, kNumber}}, two = {{kKey, kNumber}, {kOtherKey, kOtherNumber}};
    if (const auto text = said({{kName, one}})) {
      const size_t at = text->find(number);
      const auto open = between(*text, 0, kKey, number);
      if (open && at != kAbsent) {
        calls_.value_open = as_mark(*open, name_);
        format_.close = as_mark(std::string_view(*text).substr(at + number.size()), name_);
      }
    }
    if (const auto text = said({{kName, two}})) {
      if (const auto next = between(*text, 0, number, kOtherKey)) calls_.next = as_mark(*next, name_);
    }
    if (const auto text = said({{kName, one}, {kOtherName, {{kKey, kOtherNumber}}}})) {
      if (const auto next = between(*text, 0, number, second_name())) calls_.between = as_mark(*next, name_);
    }
  }

  void learn_texts(const std::string& before_text, const std::string& behind_text) {
    const auto odd = said({{kName, {{kKey, kOddText}}}});
    const bool is_plain = odd && odd->find(kOddText) != std::string::npos;
    const bool has_marks = before_text != calls_.value_open;
    const std::string close =
        behind_text.ends_with(format_.close) ? behind_text.substr(0, behind_text.size() - format_.close.size()) : std::string();
    if (!has_marks && close.empty()) return;
    calls_.texts = is_plain ? CallTexts::kMarked : CallTexts::kLiteral;
    if (!is_plain) return;
    calls_.text_open = before_text;
    calls_.text_close = close;
  }

  void learn_without_arguments() {
    if (const auto text = said({{kName, Json::object()}})) {
      if (const size_t at = text->find(name_); at != kAbsent)
        calls_.none = trim_back(as_mark(std::string_view(*text).substr(at + name_.size()), name_));
    }
    if (const auto text = said({{kName, Json::object()}, {kOtherName, Json::object()}})) {
      if (const auto next = between(*text, 0, name_, second_name())) calls_.none_between = as_mark(*next, name_);
    }
  }

  const TemplateProbe& probe_;
  const bool as_text_;
  const ThinkingMarks thinking_;
  std::string name_;  // what stands in its place
  ToolCallFormat format_;
  CallByName calls_;
};

std::optional<ToolCallFormat> find(const TemplateProbe& probe, bool as_text, const ThinkingMarks& thinking) {
  const auto said = probe.said({{kName, probe_arguments()}}, as_text, thinking);
  if (!said) return std::nullopt;
  auto format = find_objects(*said);
  if (!format) format = NameProbe(probe, as_text, thinking).learn();
  if (!format) return std::nullopt;
  format->thinking = thinking;
  format->wants_text = as_text;
  return format;
}

}  // namespace

std::optional<ToolCallFormat> find_tool_call_format(const ChatTemplate& chat, const Json& variables) {
  const TemplateProbe probe(chat, variables);
  const ThinkingMarks thinking = probe.thinking();
  for (const bool as_text : {false, true}) {
    if (auto format = find(probe, as_text, thinking)) return format;
  }
  return std::nullopt;
}

ThinkingMarks find_thinking_marks(const ChatTemplate& chat, const Json& variables) {
  return TemplateProbe(chat, variables).thinking();
}

}  // namespace sluice::text
