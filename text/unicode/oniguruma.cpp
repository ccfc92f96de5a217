#include "text/unicode/oniguruma.h"

#include <oniguruma.h>

#include <algorithm>
#include <climits>

#include "base/error.h"
#include "text/unicode/utf8.h"

namespace sluice::text {
namespace {

// Steps back that the searches in one text may take together. A run of n blanks honestly needs n: the budget grows with the text.
constexpr size_t kLeastSteps = 10'000'000;
constexpr size_t kStepsPerByte = 64;
// Oniguruma does not tell how many steps a search took. So it gets few, and when it gives up, those are paid for and it gets
// more.
constexpr size_t kFreeSteps = 256;
constexpr size_t kMoreSteps = 16;

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

bool gave_up(int status) { return status == ONIGERR_RETRY_LIMIT_IN_MATCH_OVER || status == ONIGERR_RETRY_LIMIT_IN_SEARCH_OVER; }

// What one pass over one text needs: the match region and the budget of steps.
class Search {
 public:
  Search(regex_t* regex, std::string_view text)
      : regex_(regex),
        text_(text),
        region_(onig_region_new(), Free{}),
        limits_(onig_new_match_param(), Free{}),
        budget_(kLeastSteps + kStepsPerByte * text.size()) {
    onig_initialize_match_param(limits_.get());
    allow(kFreeSteps);
  }

  // ONIG_MISMATCH, another error code, or the start of the match.
  int from(size_t start) {
    int status = search(start);
    if (!gave_up(status)) return status;
    for (size_t steps = kFreeSteps; gave_up(status) && steps <= budget_;) {
      budget_ -= steps;
      steps *= kMoreSteps;
      allow(steps);
      status = search(start);
    }
    allow(kFreeSteps);
    return status;
  }

  Regex::Match match() const { return {static_cast<size_t>(region_->beg[0]), static_cast<size_t>(region_->end[0])}; }

  Regex::Match capture() const {
    if (region_->num_regs < 2 || region_->beg[1] < 0) return match();
    return {static_cast<size_t>(region_->beg[1]), static_cast<size_t>(region_->end[1])};
  }

 private:
  void allow(size_t steps) {
    onig_set_retry_limit_in_match_of_match_param(limits_.get(), steps);
    onig_set_retry_limit_in_search_of_match_param(limits_.get(), steps);
  }

  int search(size_t start) {
    const OnigUChar* begin = bytes_of(text_);
    const OnigUChar* end = begin + text_.size();
    return onig_search_with_param(regex_, begin, end, begin + start, end, region_.get(), ONIG_OPTION_NONE, limits_.get());
  }

  struct Free {
    void operator()(OnigRegion* region) const { onig_region_free(region, 1); }
    void operator()(OnigMatchParam* limits) const { onig_free_match_param(limits); }
  };
  regex_t* regex_;
  std::string_view text_;
  std::unique_ptr<OnigRegion, Free> region_;
  std::unique_ptr<OnigMatchParam, Free> limits_;
  size_t budget_;
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

void Regex::for_each(std::string_view text, FunctionRef<void(Match)> on_match) const { search(text, false, on_match); }

std::vector<Regex::Match> Regex::find_all(std::string_view text) const {
  std::vector<Match> matches;
  search(text, false, [&matches](Match match) { matches.push_back(match); });
  return matches;
}

std::vector<Regex::Match> Regex::find_all_captures(std::string_view text) const {
  std::vector<Match> matches;
  search(text, true, [&matches](Match match) { matches.push_back(match); });
  return matches;
}

void Regex::search(std::string_view text, bool captures, FunctionRef<void(Match)> on_match) const {
  SLUICE_CHECK(text.size() < INT_MAX, "text too long for Oniguruma");
  size_t last_end = std::string_view::npos;  // of the previous match
  Search search(regex_.get(), text);
  for (size_t start = 0; start <= text.size();) {
    const int status = search.from(start);
    if (status == ONIG_MISMATCH) break;
    if (status < 0) throw RegexGaveUp(where_ + ": the regular expression gave up on a text: " + reason(status));
    const Match match = search.match();
    const bool touches = match.begin == match.end && last_end == match.end;
    if (touches) {
      start = match.end + (match.end < text.size() ? code_point_at(text.data() + match.end).length : 1);
    } else {
      on_match(captures ? search.capture() : match);
      last_end = match.end;
      start = match.end;
    }
  }
}

}  // namespace sluice::text
