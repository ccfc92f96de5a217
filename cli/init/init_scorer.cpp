#include "cli/init/init_scorer.h"

#include <algorithm>
#include <string_view>

#include "base/text/strings.h"
#include "nodes/scorers/math/math_text.h"
#include "nodes/scorers/math/number_in_text.h"
#include "nodes/scorers/math/numeric_match.h"

namespace sluice::cli {
namespace {

constexpr const char* kBoxedNumber = "\nThink step by step. Put the final number in \\boxed{}.";
constexpr const char* kLetter = "\nThink step by step. End with: The answer is LETTER.";
constexpr size_t kLongestExact = 60;  // bytes: nobody says more than that word for word

bool is_number(const std::string& answer) { return nodes::whole_number(nodes::plain_math(answer)).has_value(); }

// Text in which a number is marked, as in GSM8K and MATH.
bool has_marked_number(const std::string& answer) {
  const bool is_marked = answer.find("####") != std::string::npos || answer.find("\\boxed") != std::string::npos;
  return is_marked && nodes::number_of_label(answer, nodes::NumberPlace::kAuto).has_value();
}

// 1 for "A", "(a)" or " A."; 0: it is none.
int choice_of(std::string_view answer) {
  answer = trim(answer);
  if (answer.starts_with('(') && answer.ends_with(')')) answer = answer.substr(1, answer.size() - 2);
  if (answer.size() == 2 && answer.back() == '.') answer.remove_suffix(1);
  if (answer.size() != 1) return 0;
  const char letter = answer.front();
  return letter >= 'A' && letter <= 'Z' ? letter - 'A' + 1 : letter >= 'a' && letter <= 'z' ? letter - 'a' + 1 : 0;
}

}  // namespace

InitScorer scorer_for(const std::vector<std::string>& answers) {
  if (std::ranges::all_of(answers, is_number)) return {"numeric_match", {}, kBoxedNumber, "all answers are numbers"};
  if (std::ranges::all_of(answers, [](const std::string& a) { return is_number(a) || has_marked_number(a); }))
    return {"numeric_match", {}, kBoxedNumber, "all answers mark a number, after #### or in \\boxed{}"};
  const int highest = choice_of(*std::ranges::max_element(answers, {}, [](const std::string& a) { return choice_of(a); }));
  if (highest > 1 && std::ranges::all_of(answers, [](const std::string& a) { return choice_of(a) > 0; }))
    return {"multiple_choice", ", choices = " + std::to_string(highest), kLetter,
            "all answers are letters up to " + std::string(1, static_cast<char>('A' + highest - 1))};
  const size_t longest = std::ranges::max_element(answers, {}, &std::string::size)->size();
  std::string why = "answers are texts, which a response must be but for case and punctuation";
  if (longest > kLongestExact)
    why += "; the longest has " + plural(static_cast<int64_t>(longest), "byte") +
           ", so hardly any will: rlhf-run describe python_scorer, reward_model";
  return {"exact_match", ", normalize = \"text\"", {}, std::move(why)};
}

}  // namespace sluice::cli
