#include "text/oniguruma.h"

#include <oniguruma.h>

#include <algorithm>
#include <climits>

#include "base/error.h"

namespace sluice::text {
namespace {

// Oniguruma's default is 10 million steps a match whatever the text. A run of n blanks honestly needs n: the limit grows with
// the text.
constexpr unsigned long kLeastSteps = 10'000'000;
constexpr unsigned long kStepsPerByte = 16;

void initialize_once() {
  static const int status = [] {
    OnigEncoding encodings[] = {ONIG_ENCODING_UTF8};
    return onig_initialize(encodings, 1);
  }();
  SLUICE_CHECK(status == ONIG_NORMAL, "Oniguruma did not initialise");
}

std::string reason(int code, OnigErrorInfo* info = nullptr) {
  OnigUChar text[ONIG_MAX_ERROR_MESSAGE_LEN];
  const int length = info ? onig_error_code_to_str(text, code, info) : onig_error_code_to_str(text, code);
  return {reinterpret_cast<const char*>(text), static_cast<size_t>(std::max(length, 0))};
}

const OnigUChar* bytes_of(std::string_view text) { return reinterpret_cast<const OnigUChar*>(text.data()); }

size_t code_point_length(char lead) {
  const auto byte = static_cast<unsigned char>(lead);
  return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

// What one pass over one text needs: the match region and the limit of steps.
class Search {
 public:
  Search(regex_t* regex, std::string_view text)
      : regex_(regex), text_(text), region_(onig_region_new(), Free{}), limits_(onig_new_match_param(), Free{}) {
    onig_initialize_match_param(limits_.get());
    onig_set_retry_limit_in_match_of_match_param(limits_.get(),
                                                 std::max<unsigned long>(kLeastSteps, kStepsPerByte * text.size()));
  }

  // ONIG_MISMATCH, another error code, or the start of the match.
  int from(size_t start) {
    const OnigUChar* begin = bytes_of(text_);
    const OnigUChar* end = begin + text_.size();
    return onig_search_with_param(regex_, begin, end, begin + start, end, region_.get(), ONIG_OPTION_NONE, limits_.get());
  }

  Regex::Match match() const { return {static_cast<size_t>(region_->beg[0]), static_cast<size_t>(region_->end[0])}; }

  Regex::Match capture() const {
    if (region_->num_regs < 2 || region_->beg[1] < 0) return match();
    return {static_cast<size_t>(region_->beg[1]), static_cast<size_t>(region_->end[1])};
  }

 private:
  struct Free {
    void operator()(OnigRegion* region) const { onig_region_free(region, 1); }
    void operator()(OnigMatchParam* limits) const { onig_free_match_param(limits); }
  };
  regex_t* regex_;
  std::string_view text_;
  std::unique_ptr<OnigRegion, Free> region_;
  std::unique_ptr<OnigMatchParam, Free> limits_;
};

}  // namespace

void Regex::Free::operator()(re_pattern_buffer* regex) const { onig_free(regex); }

Regex::Regex(std::string_view pattern, const std::string& where) : where_(where) {
  initialize_once();
  regex_t* regex = nullptr;
  OnigErrorInfo info;
  const int status = onig_new(&regex, bytes_of(pattern), bytes_of(pattern) + pattern.size(), ONIG_OPTION_NONE, ONIG_ENCODING_UTF8,
                              ONIG_SYNTAX_DEFAULT, &info);
  if (status != ONIG_NORMAL) throw UserError(where + ": the regular expression is not valid: " + reason(status, &info));
  regex_.reset(regex);
}

std::string Regex::escape(std::string_view text) {
  constexpr std::string_view kSpecial = "\\.+*?()|[]{}^$#&-~/";
  std::string pattern;
  for (const char c : text) {
    if (kSpecial.find(c) != std::string_view::npos) pattern += '\\';
    pattern += c;
  }
  return pattern;
}

std::vector<Regex::Match> Regex::find_all(std::string_view text) const { return find_all(text, false); }

std::vector<Regex::Match> Regex::find_all_captures(std::string_view text) const { return find_all(text, true); }

std::vector<Regex::Match> Regex::find_all(std::string_view text, bool captures) const {
  SLUICE_CHECK(text.size() < INT_MAX, "text too long for Oniguruma");
  std::vector<Match> matches;
  size_t last_end = std::string_view::npos;  // of the previous match
  Search search(regex_.get(), text);
  for (size_t start = 0; start <= text.size();) {
    const int status = search.from(start);
    if (status == ONIG_MISMATCH) break;
    if (status < 0) throw UserError(where_ + ": the regular expression gave up on a text: " + reason(status));
    const Match match = search.match();
    const bool touches = match.begin == match.end && last_end == match.end;
    if (touches) {
      start = match.end + (match.end < text.size() ? code_point_length(text[match.end]) : 1);
    } else {
      matches.push_back(captures ? search.capture() : match);
      last_end = match.end;
      start = match.end;
    }
  }
  return matches;
}

bool is_word_character(char32_t code_point) { return ONIGENC_IS_CODE_WORD(ONIG_ENCODING_UTF8, code_point); }

bool is_white_space(char32_t code_point) { return ONIGENC_IS_CODE_SPACE(ONIG_ENCODING_UTF8, code_point); }

}  // namespace sluice::text
