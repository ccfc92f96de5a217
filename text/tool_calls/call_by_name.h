#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json/json.h"
#include "text/tool_calls/tool_call.h"

namespace sluice::text {

/// How strings stand among the values of arguments that are written one by one.
enum class CallTexts : uint8_t {
  kPlain,    // as they are, like every other value: what a value is, the tool's schema tells
  kMarked,   // as they are, between marks of their own; other values as JSON or Python write them
  kLiteral,  // as JSON or Python write them
};

/// A call whose name and arguments stand apart, each mark as in text/tool_calls/call_marks.h:
///
///   f[ARGS]{"a": 1}                                              arguments as a JSON object
///   f>\n<parameter=a>\n1\n</parameter>\n</function>              key and value each
///   f(a=1, b='x')
struct CallByName {
  std::string arguments_open;  // from the name to the object, or to the first key
  std::string between;         // from the end of a call to the name of the next; empty: each call has marks of its own
  bool name_is_id = false;     // the id stands in the place of the name, which is part of it: functions.f:0

  bool has_keys = false;  // key and value each; the rest is about them
  CallTexts texts = CallTexts::kPlain;
  std::string value_open;             // from a key to its value
  std::string text_open, text_close;  // kMarked: from a key to a string; what stands after it
  std::string next;                   // from a value to the next key
  std::string none, none_between;     // from the name of a call without arguments to its end; to the name of the next call

  bool operator==(const CallByName&) const = default;

  /// Reads the calls that stand from `at` on, where the first one's name begins, up to `close`: the end of the last. Gives where
  /// it has stopped. A call that is malformed is the last, with its fault. `tools`: the schemas of the tools, or null.
  size_t read(std::string_view text, size_t at, std::string_view close, const Json& tools, std::vector<ToolCall>& calls) const;

  /// Whether a name and what follows it stand at `at`: for a turn that may also be a text.
  bool begins_at(std::string_view text, size_t at) const;
};

}  // namespace sluice::text
