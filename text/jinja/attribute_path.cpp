#include "text/jinja/attribute_path.h"

#include <algorithm>

#include "base/text/strings.h"
#include "text/jinja/attributes.h"
#include "text/jinja/convert.h"
#include "text/jinja/unicode.h"

namespace sluice::text::jinja {

AttributePath::AttributePath(Sandbox& sandbox, const Value& attribute) {
  if (attribute.is_missing() || attribute.is_none()) return;
  if (!attribute.is_string()) {
    parts_.push_back(attribute);
    return;
  }
  sandbox.work(attribute.text().size());
  for (const std::string& part : split(attribute.text(), '.')) {
    sandbox.spend();
    const bool number = !part.empty() && std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (!number) {
      parts_.push_back(make_string(sandbox, part));
    } else if (const auto value = parse_integer(part, 10)) {
      parts_.push_back(Value::integer(*value));
    } else {
      throw Failure("an integer leaves the range of 64 bits");
    }
  }
}

Value AttributePath::of(Sandbox& sandbox, const Value& element, const Value& otherwise) const {
  Value value = element;
  for (const Value& part : parts_) {
    sandbox.spend();
    value = get_item(sandbox, value, part);
    if (value.is_undefined() && !otherwise.is_missing() && !otherwise.is_none()) value = otherwise;
  }
  return value;
}

Value comparison_key(Sandbox& sandbox, const Value& value, bool case_sensitive) {
  if (case_sensitive || !value.is_string()) return value;
  return make_string(sandbox, unicode::lower(value.text()));
}

}  // namespace sluice::text::jinja
