#include "text/tokenizer/metaspace.h"

#include "base/text/strings.h"
#include "text/tokenizer/tokenizer_json.h"
#include "text/unicode/utf8.h"

namespace sluice::text {
namespace {

PrependScheme read_scheme(const JsonPart& part) {
  const std::string& name = part.string();
  if (name == "always") return PrependScheme::kAlways;
  if (name == "first") return PrependScheme::kFirst;
  if (name == "never") return PrependScheme::kNever;
  part.fail_unsupported("prepend_scheme " + sluice::quoted(name), "always, first, never");
}

}  // namespace

MetaspaceSettings MetaspaceSettings::read(const JsonPart& part) {
  MetaspaceSettings settings;
  settings.replacement = part.at("replacement").string();
  if (count_code_points(settings.replacement) != 1) part.at("replacement").fail("one character was expected here");
  if (part.has("prepend_scheme")) settings.prepend = read_scheme(part.at("prepend_scheme"));
  if (!part.boolean_or("add_prefix_space", true)) {
    if (part.has("prepend_scheme") && settings.prepend != PrependScheme::kNever) {
      part.at("add_prefix_space").fail("false contradicts prepend_scheme, which is not \"never\"");
    }
    settings.prepend = PrependScheme::kNever;
  }
  settings.split = part.boolean_or("split", true);
  return settings;
}

MetaspaceStep::MetaspaceStep(const JsonPart& part)
    : settings_(MetaspaceSettings::read(part)),
      splitter_(Matcher::literal(settings_.replacement, part.place()), Splitter::Behavior::kMergedWithNext) {}

void MetaspaceStep::apply(Piece piece, PieceSink sink) const {
  const bool wanted =
      settings_.prepend == PrependScheme::kAlways || (settings_.prepend == PrependScheme::kFirst && piece.is_first);
  const bool has_prefix = piece.text.starts_with(' ') || piece.text.starts_with(settings_.replacement);
  std::string changed = wanted && !has_prefix ? settings_.replacement : "";
  for (size_t begin = 0; begin <= piece.text.size();) {
    const size_t blank = piece.text.find(' ', begin);
    changed += piece.text.substr(begin, blank - begin);
    if (blank == std::string_view::npos) break;
    changed += settings_.replacement;
    begin = blank + 1;
  }
  const Piece whole{changed, piece.is_first};
  settings_.split ? splitter_.split(whole, false, sink) : sink(whole);
}

}  // namespace sluice::text
