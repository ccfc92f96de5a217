#include "text/tool_calls/call_by_name.h"

#include <algorithm>
#include <cctype>
#include <initializer_list>
#include <optional>

#include "base/error.h"
#include "base/text/strings.h"
#include "text/tool_calls/call_json.h"
#include "text/tool_calls/call_marks.h"
#include "text/tool_calls/call_value.h"

namespace sluice::text {
namespace {

using call_marks::Holes;
using call_marks::Place;

constexpr size_t kNone = std::string_view::npos;
constexpr size_t kLongestName = 256;

bool is_name_character(char c) {
  return static_cast<unsigned char>(c) > ' ' && std::string_view("<>(){}[]\"',=").find(c) == std::string_view::npos;
}

bool is_name(std::string_view name) {
  return !name.empty() && name.size() <= kLongestName && is_utf8(name) && std::ranges::all_of(name, is_name_character);
}

// What a mark is followed by.
enum class Then : uint8_t { kNothing, kKey, kCall, kEnd, kArguments, kValue, kText };

struct Option {
  std::string_view mark;
  Then meaning = Then::kNothing;
};

struct Found {
  Place place;
  Then meaning = Then::kNothing;
};

// The option that stands first; of several in one place the longest. Empty marks stand nowhere.
Found first_of(std::initializer_list<Option> options, std::string_view text, size_t from, const Holes& holes) {
  Found first;
  for (const Option& option : options) {
    if (option.mark.empty()) continue;
    // What stands further after need not be looked for.
    const size_t slack = option.mark.size() + 256;
    const std::string_view near = first.place.is_there() ? text.substr(0, first.place.end + slack) : text;
    const Place place = call_marks::find_mark(option.mark, near, from, holes);
    if (!place.is_there()) continue;
    const bool is_better = place.begin < first.place.begin || (place.begin == first.place.begin && place.end > first.place.end);
    if (!first.place.is_there() || is_better) first = {place, option.meaning};
  }
  return first;
}

// functions.f:0 -> f
std::string_view name_in_id(std::string_view id) {
  if (id.starts_with("functions.")) id.remove_prefix(10);
  const size_t colon = id.rfind(':');
  if (colon != kNone && colon + 1 < id.size() && id.find_first_not_of("0123456789", colon + 1) == kNone) id = id.substr(0, colon);
  return id;
}

// The JSON schema of the arguments of a tool, or null.
const Json& parameters_of(const std::string& tool, const Json& tools) {
  static const Json none;
  if (!tools.is_array()) return none;
  for (const Json& one : tools) {
    if (!one.is_object()) continue;
    const auto inner = one.find("function");
    const Json& function = inner != one.end() && inner->is_object() ? *inner : one;
    const auto name = function.find("name"), parameters = function.find("parameters");
    if (name != function.end() && *name == tool) return parameters != function.end() ? *parameters : none;
  }
  return none;
}

const Json& schema_of(const std::string& key, const Json& parameters) {
  static const Json none;
  if (!parameters.is_object()) return none;
  if (const auto properties = parameters.find("properties"); properties != parameters.end() && properties->is_object()) {
    if (const auto found = properties->find(key); found != properties->end()) return *found;
  }
  const auto more = parameters.find("additionalProperties");
  return more != parameters.end() && more->is_object() ? *more : none;
}

// One run over calls that stand beside each other.
class Reader {
 public:
  Reader(const CallByName& format, std::string_view text, size_t at, std::string_view close, const Json& tools)
      : format_(format), text_(text), at_(at), close_(close), tools_(tools) {}

  // Reads a call; whether another one follows.
  bool read(ToolCall& call) {
    if (format_.has_keys) return read_name(call) && read_keys(call);
    return read_name(call) && read_object(call);
  }

  bool goes_on() const { return goes_on_; }
  size_t at() const { return at_; }

  // Where the name ends and its arguments begin.
  bool read_name(ToolCall& call) {
    Found found = format_.has_keys ? after_name_of_keys() : after_name_of_object();
    const std::string_view written = text_.substr(at_, found.place.begin == kNone ? kNone : found.place.begin - at_);
    std::string_view name = trim(written);
    if (found.meaning == Then::kNothing) {
      fail(call, "the name of the call is not followed by " + call_marks::shown(format_.arguments_open));
      return false;
    }
    if (format_.name_is_id) {
      call.id = name;
      name = name_in_id(name);
    } else {
      call.id = found.place.id;
    }
    if (!is_name(name)) {
      fail(call, "the call has no name before " + call_marks::shown(format_.arguments_open));
      return false;
    }
    call.name = name;
    at_ = found.place.end;
    ends_after_name_ = found.meaning != Then::kArguments;
    goes_on_ = found.meaning == Then::kCall;
    return true;
  }

 private:
  void fail(ToolCall& call, std::string why) const { call.fault = std::move(why); }

  // The text up to where a name or a key has ended, and the mark after it: what is further away need not be looked for.
  std::string_view near() const {
    const size_t marks = format_.arguments_open.size() + format_.none.size() + format_.none_between.size() +
                         format_.value_open.size() + format_.text_open.size();
    constexpr size_t kBlanks = 1024;  // and an id
    return text_.substr(0, at_ + kLongestName + marks + kBlanks);
  }

  Found after_name_of_keys() const {
    // The name may stand in the marks once more: as far as it can be told, it is what stands before the mark's first part.
    const std::string_view name = first_word();
    return first_of({{format_.arguments_open, Then::kArguments}, {format_.none_between, Then::kCall}, {format_.none, Then::kEnd}},
                    near(), at_, {.name = name, .key = {}});
  }

  Found after_name_of_object() const {
    const std::string_view mark = trim(format_.arguments_open);
    if (mark.empty()) return at_brace(near().find('{', at_));
    Place place = call_marks::find_mark(format_.arguments_open, near(), at_, {.name = first_word(), .key = {}});
    if (place.is_there() && is_name(trim(text_.substr(at_, place.begin - at_)))) return {place, Then::kArguments};
    // A model may write more between the name and the last mark: <|constrain|>.
    const size_t open = mark.find_last_of("<[");
    const size_t word = at_ + first_word().size();
    if (open == kNone || word == at_) return {place, place.is_there() ? Then::kArguments : Then::kNothing};
    const Place last = call_marks::find_mark(mark.substr(open), near(), word);
    const bool is_near = last.is_there() && text_.substr(word, last.begin - word).find_first_of("{\n") == kNone;
    if (!is_near) return {place, place.is_there() ? Then::kArguments : Then::kNothing};
    return {{.begin = word, .end = last.end}, Then::kArguments};
  }

  Found at_brace(size_t brace) const {
    if (brace == kNone) return {};
    return {{.begin = brace, .end = brace}, Then::kArguments};
  }

  std::string_view first_word() const {
    size_t end = at_;
    while (end < text_.size() && end - at_ < kLongestName && is_name_character(text_[end])) ++end;
    return text_.substr(at_, end - at_);
  }

  bool read_object(ToolCall& call) {
    while (at_ < text_.size() && call_marks::is_blank(text_[at_])) ++at_;
    if (at_ >= text_.size() || (text_[at_] != '{' && text_[at_] != '[')) {
      fail(call, "the arguments of the call are no JSON object");
      return false;
    }
    const size_t end = end_of_json(text_, at_);
    const Holes holes{.name = call.name, .key = {}};
    if (end != kNone && ends_at(end, holes)) {
      const std::string_view json = text_.substr(at_, end - at_);
      at_ = after_;
      read_arguments(json, call);
      return goes_on_;
    }
    // The text of the arguments is damaged, or its end is.
    const size_t cut = std::min(find_outside_strings(text_.substr(at_), trim(format_.between)),
                                find_outside_strings(text_.substr(at_), trim(close_)));
    if (end != kNone && cut == kNone) {
      fail(call, "the call does not end with " + call_marks::shown(close_));
      return false;
    }
    read_arguments(text_.substr(at_, cut), call);
    if (call.fault.empty()) fail(call, "the call does not end with " + call_marks::shown(close_));
    return false;
  }

  // Whether a call may end at `end`, where its arguments do. Then after_ is where reading goes on.
  bool ends_at(size_t end, const Holes& holes) {
    after_ = end;
    goes_on_ = false;
    const Place closed = call_marks::mark_at(close_, text_, end, holes);
    const Place next = format_.between.empty() ? Place{} : call_marks::mark_at(format_.between, text_, end, holes);
    const bool is_next = next.is_there() && (!closed.is_there() || next.end > closed.end);
    if (is_next || closed.is_there()) {
      after_ = is_next ? next.end : closed.end;
      goes_on_ = is_next && !trim(text_.substr(after_)).empty();
      return true;
    }
    if (trim(close_).empty()) return true;
    const Place cut = cut_close(close_, format_.next, end, holes);
    if (!cut.is_there() || !trim(text_.substr(end, cut.begin - end)).empty()) return false;
    after_ = text_.size();
    return true;
  }

  // The end of the calls where the turn breaks off in it, unless another argument might have followed there.
  Place cut_close(std::string_view close, std::string_view next, size_t from, const Holes& holes) const {
    const Place cut = call_marks::find_cut_mark(close, text_, from, holes);
    const bool may_go_on =
        cut.is_there() && format_.has_keys && call_marks::find_cut_mark(next, text_, cut.begin, holes).begin == cut.begin;
    return may_go_on ? Place{} : cut;
  }

  void read_arguments(std::string_view json, ToolCall& call) const {
    try {
      Json arguments = parse_json(trim(json), "call");
      if (arguments.is_object())
        call.arguments = std::move(arguments);
      else
        fail(call, "the arguments of the call are no object");
    } catch (const UserError& error) {
      fail(call, "the arguments of the call are no JSON: " + reason_of(error));
    }
  }

  bool read_keys(ToolCall& call) {
    if (ends_after_name_) return goes_on_;
    const Json& parameters = parameters_of(call.name, tools_);
    constexpr size_t kMostKeys = 4096;
    for (Then meaning = Then::kKey; meaning == Then::kKey;) {
      const Found found = first_of({{format_.value_open, Then::kValue}, {format_.text_open, Then::kText}}, near(), at_, {});
      const std::string key(trim(text_.substr(at_, found.place.begin == kNone ? 0 : found.place.begin - at_)));
      const bool is_key = found.meaning != Then::kNothing && !key.empty() && key.size() <= kLongestName &&
                          key.find('\n') == std::string::npos && is_utf8(key);
      if (!is_key || call.arguments.size() >= kMostKeys) {
        fail(call, "no argument of the call stands before " + call_marks::shown(format_.value_open));
        return false;
      }
      at_ = found.place.end;
      const Holes holes{.name = call.name, .key = key};
      meaning = found.meaning == Then::kText || format_.texts == CallTexts::kPlain
                    ? read_text(call, key, holes, schema_of(key, parameters), parameters)
                    : read_literal(call, key, holes);
    }
    return call.fault.empty() && goes_on_;
  }

  // Each gives what follows, and Then::kEnd for a fault.
  Then read_text(ToolCall& call, const std::string& key, const Holes& holes, const Json& schema, const Json& parameters) {
    const bool is_marked = format_.texts == CallTexts::kMarked;
    const std::string behind = is_marked ? format_.text_close : std::string();
    const std::string next = behind + format_.next, between = format_.between.empty() ? "" : behind + format_.between;
    const std::string close = behind + std::string(close_);
    Found found = first_of({{next, Then::kKey}, {between, Then::kCall}, {close, Then::kEnd}}, text_, at_, holes);
    if (found.meaning == Then::kNothing) {
      const Place cut = cut_close(close, next, at_, holes);
      if (cut.is_there()) found = {cut, Then::kEnd};
    }
    if (found.meaning == Then::kNothing && trim(close).empty())
      found = {{.begin = text_.size(), .end = text_.size()}, Then::kEnd};
    if (found.meaning == Then::kNothing) {
      fail(call, sluice::quoted(key) + " of the call does not end with " + call_marks::shown(close));
      return Then::kEnd;
    }
    const std::string_view raw = text_.substr(at_, found.place.begin - at_);
    if (!is_utf8(raw)) {
      fail(call, sluice::quoted(key) + " of the call is no UTF-8");
      return Then::kEnd;
    }
    call.arguments[key] = is_marked ? Json(std::string(raw)) : typed_call_value(raw, schema, parameters);
    at_ = found.place.end;
    goes_on_ = found.meaning == Then::kCall;
    return found.meaning;
  }

  Then read_literal(ToolCall& call, const std::string& key, const Holes& holes) {
    auto value = read_call_value(text_, at_, quote());
    if (!value) {
      fail(call, sluice::quoted(key) + " of the call is no value");
      return Then::kEnd;
    }
    call.arguments[key] = std::move(*value);
    if (const Place place = call_marks::mark_at(format_.next, text_, at_, holes); place.is_there() && !format_.next.empty()) {
      at_ = place.end;
      return Then::kKey;
    }
    if (!ends_at(at_, holes)) fail(call, "the call does not end with " + call_marks::shown(close_));
    at_ = after_;
    return Then::kEnd;
  }

  // The mark around strings, if it is one.
  std::string_view quote() const {
    const std::string_view open = format_.text_open;
    if (!open.starts_with(format_.value_open)) return {};
    const std::string_view quote = open.substr(format_.value_open.size());
    return quote.size() > 1 && quote == format_.text_close ? quote : std::string_view();
  }

  const CallByName& format_;
  const std::string_view text_;
  size_t at_;
  const std::string_view close_;
  const Json& tools_;
  bool ends_after_name_ = false;
  bool goes_on_ = false;
  size_t after_ = 0;
};

}  // namespace

size_t CallByName::read(std::string_view text, size_t at, std::string_view close, const Json& tools,
                        std::vector<ToolCall>& calls) const {
  Reader reader(*this, text, at, close, tools);
  for (bool goes_on = true; goes_on && calls.size() <= kMostCallsOfTurn;) {
    goes_on = reader.read(calls.emplace_back());
    if (!calls.back().fault.empty()) break;
  }
  return reader.at();
}

bool CallByName::begins_at(std::string_view text, size_t at) const {
  static const Json no_tools;
  ToolCall call;
  Reader reader(*this, text, at, {}, no_tools);
  return reader.read_name(call);
}

}  // namespace sluice::text
