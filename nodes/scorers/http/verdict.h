#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/contract/contract.h"
#include "nodes/scorers/answer_text.h"

namespace sluice::nodes {

/// Where in the reply of a judge its verdict is, and which number that is. Parameters of nodes derive from it:
///
///   extract = '\[\[([^\[\]]*)\]\]'   # the last match of this regular expression; empty: the whole reply
///   field = "rating.overall"         # instead: a member of the JSON object in the reply
///   choices = ["right", "partly", "wrong"]    # the verdict is one of these words
///   choice_scores = [1.0, 0.5, 0.0]           # and this is its number
///   range = [1, 10]                  # without choices: a number within these two
///
/// What a reply says between <think> and </think> is no verdict, where something follows it.
///
/// By default a verdict stands in double brackets, "Rating: [[7]]", as judges are asked for it since Zheng et al. 2023, "Judging
/// LLM-as-a-Judge with MT-Bench and Chatbot Arena".
struct VerdictParams {
  std::string extract = R"(\[\[([^\[\]]*)\]\])";
  std::string field;
  std::vector<std::string> choices;
  std::vector<double> choice_scores;
  std::vector<double> range;
};

/// Reports what is wrong with them.
void check_verdict(const VerdictParams& params, engine::Findings& findings);

/// Declares the parameters.
template <class P>
void describe_verdict(engine::Contract<P>& c) {
  c.param("extract", &P::extract)
      .doc("regular expression whose last match (its group 1, if it has one) is the verdict; empty: the whole reply");
  c.param("field", &P::field)
      .doc("the verdict is this member of the JSON object in the reply, such as \"rating.overall\"; empty: see extract");
  c.param("choices", &P::choices).doc("words that a verdict may be, whatever their case; empty: it is a number");
  c.param("choice_scores", &P::choice_scores).doc("the score of each of them, in the same order");
  c.param("range", &P::range).doc("the least and the most that a number may be, else it is no verdict; empty: any");
  c.check([](const P& params, engine::Findings& findings) { check_verdict(params, findings); });
}

/// A verdict as a number, or why there is none: "has no match of extract".
struct Verdict {
  double score = 0;
  std::string fault{};  // empty: there is one
};

/// Immutable: const use from many threads.
class VerdictReader {
 public:
  /// Throws UserError for a regular expression that is none; `where` is how the message calls it.
  VerdictReader(const VerdictParams& params, const std::string& where);

  /// A number is decimal, "-1.5" or "2e3"; what is around it in the verdict makes it none. Of several JSON objects in the reply
  /// the last one counts that has the member. Never throws for what a reply says, but for a pattern that gives up (RegexGaveUp).
  Verdict read(std::string_view reply) const;

  /// Of a reply that has no end: a judge may have been about to repeat what it was asked, so it has a verdict only where that is
  /// the only one in it.
  Verdict read_cut(std::string_view reply) const;

 private:
  Verdict of_text(std::string_view text) const;
  Verdict of_number(double number) const;
  Verdict of_field(std::string_view reply) const;
  bool is_only_one_in(std::string_view reply) const;

  VerdictParams params_;
  AnswerFinder finder_;
};

}  // namespace sluice::nodes
