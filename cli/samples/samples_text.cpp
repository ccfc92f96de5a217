#include "cli/samples/samples_text.h"

#include <algorithm>
#include <cstdio>

#include "base/text/printable.h"
#include "base/text/strings.h"
#include "cli/samples/sample_choice.h"
#include "cli/terminal/ink.h"

namespace sluice::cli {
namespace {

using ColouredTexts = std::vector<ColouredText>;

bool is_place(const std::string& name) { return name == "iteration" || name == "group" || name == "sample"; }

std::string number_text(const Json& value) {
  if (value.is_number_integer()) return value.dump();
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value.get<double>());
  return text;
}

std::string made_safe(const std::string& text, const SampleStyle& style) { return style.escaped ? printable(text) : text; }

std::string places_and_numbers(const Json& sample, const SampleStyle& style) {
  std::vector<std::string> places, numbers;
  for (const auto& [name, value] : sample.items()) {
    if (value.is_number()) (is_place(name) ? places : numbers).push_back(made_safe(name, style) + " " + number_text(value));
  }
  if (const auto length = sampled_length(sample); length && !sample.contains("length"))
    numbers.push_back("length " + plural(static_cast<int64_t>(length->count), length->unit));
  return inked(join(places, ", "), Ink::kBold, style.colour) + (numbers.empty() ? "" : "   " + join(numbers, "   ")) + "\n";
}

std::string painted(const std::string& text, int background, bool colour) {
  if (!colour || background == 0 || text.empty()) return text;
  return "\033[38;5;16;48;5;" + std::to_string(background) + "m" + text + "\033[0m";
}

// Under its name; further lines of it begin where its first one does.
std::string named_text(const std::string& name, const ColouredTexts& parts, size_t width, const SampleStyle& style) {
  std::string lines = "  " + inked(padded(name, width), Ink::kDim, style.colour) + "  ";
  const std::string margin = "\n" + std::string(width + 4, ' ');
  for (const ColouredText& part : parts) {
    bool first = true;
    for (const std::string& line : split(part.text, '\n')) {
      lines += (first ? "" : margin) + painted(made_safe(line, style), part.background, style.colour);
      first = false;
    }
  }
  return lines + "\n";
}

}  // namespace

std::string sample_text(const Json& sample, const SampleStyle& style) {
  std::vector<std::pair<std::string, ColouredTexts>> texts;
  for (const auto& [name, value] : sample.items()) {
    if (value.is_string()) texts.push_back({made_safe(name, style), {{value.get<std::string>()}}});
  }
  if (style.colour && style.measure != nullptr && style.tokenizer != nullptr) {
    if (auto tokens = coloured_tokens(sample, *style.measure, *style.tokenizer)) {
      const auto response = std::ranges::find(texts, "response", &std::pair<std::string, ColouredTexts>::first);
      if (response == texts.end())
        texts.push_back({"response", std::move(*tokens)});
      else
        response->second = std::move(*tokens);
    }
  }
  size_t width = 0;
  for (const auto& [name, parts] : texts) width = std::max(width, name.size());
  std::string text = places_and_numbers(sample, style);
  for (const auto& [name, parts] : texts) text += named_text(name, parts, width, style);
  return text;
}

}  // namespace sluice::cli
