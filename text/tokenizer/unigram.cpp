#include "text/tokenizer/unigram.h"

#include <algorithm>
#include <limits>
#include <unordered_map>

#include "text/unicode/utf8.h"

namespace sluice::text {
namespace {

constexpr double kUnknownPenalty = 10;  // below the worst token

bool is_said(double score) { return score > -std::numeric_limits<double>::infinity(); }

std::vector<std::pair<std::string, int32_t>> said_tokens(const UnigramRules& rules) {
  std::vector<std::pair<std::string, int32_t>> entries;
  for (size_t id = 0; id < rules.pieces.size(); ++id) {
    if (is_said(rules.pieces[id].second)) entries.emplace_back(rules.pieces[id].first, static_cast<int32_t>(id));
  }
  return entries;
}

FallbackBytes fallback_of(const UnigramRules& rules) {
  if (!rules.byte_fallback) return {};
  std::unordered_map<std::string, int32_t> ids;
  for (size_t id = 0; id < rules.pieces.size(); ++id) ids[rules.pieces[id].first] = static_cast<int32_t>(id);
  return FallbackBytes(ids);
}

}  // namespace

Unigram::Unigram(const UnigramRules& rules)
    : tokens_(said_tokens(rules)),
      unknown_score_(std::numeric_limits<double>::infinity()),
      single_precision_(rules.single_precision),
      unknown_(rules.unknown),
      fallback_(fallback_of(rules)) {
  for (const auto& [token, score] : rules.pieces) {
    scores_.push_back(score);
    if (is_said(score)) unknown_score_ = std::min(unknown_score_, score);
  }
  unknown_score_ -= kUnknownPenalty;
  if (single_precision_) unknown_score_ = static_cast<float>(unknown_score_);
}

void Unigram::encode(std::string_view word, Workspace& workspace, std::vector<int32_t>& ids) const {
  ids.clear();
  find_best_paths(word, workspace);
  workspace.tokens.clear();
  for (auto end = static_cast<int32_t>(word.size()); end > 0; end = workspace.tokens.back().begin) {
    const auto& path = workspace.paths[static_cast<size_t>(end)];
    workspace.tokens.push_back({path.begin, end, path.id});
  }
  size_t run = 0, run_end = 0;  // of unknown characters
  const auto end_run = [&] {
    if (run < run_end) add_unknown(word.substr(run, run_end - run), ids);
  };
  std::ranges::reverse(workspace.tokens);  // they were found from the end
  for (const auto& token : workspace.tokens) {
    if (token.id == unknown_) {
      run_end = static_cast<size_t>(token.end);
      continue;
    }
    end_run();
    run = run_end = static_cast<size_t>(token.end);
    ids.push_back(token.id);
  }
  end_run();
}

// Scores are added from left to right and only a higher one replaces: what is a tie depends on that order.
void Unigram::find_best_paths(std::string_view word, Workspace& workspace) const {
  auto& paths = workspace.paths;
  paths.assign(word.size() + 1, {});
  const auto offer = [&](size_t begin, size_t end, int32_t id, double score) {
    double sum = score + paths[begin].score;
    if (single_precision_) sum = static_cast<float>(sum);  // of two floats: rounded twice is rounded once
    if (paths[end].begin < 0 || sum > paths[end].score) paths[end] = {sum, static_cast<int32_t>(begin), id};
  };
  for (size_t begin = 0; begin < word.size();) {
    const size_t character_end = begin + code_point_at(word.data() + begin).length;
    bool covers_character = false;
    int32_t node = ByteTrie::kRoot;
    for (size_t i = begin; i < word.size();) {
      node = tokens_.next(node, word[i++]);
      if (node == ByteTrie::kNone) break;
      const int32_t id = tokens_.value(node);
      if (id == ByteTrie::kNone) continue;
      offer(begin, i, id, scores_[static_cast<size_t>(id)]);
      covers_character |= i == character_end;
    }
    if (!covers_character) offer(begin, character_end, unknown_, unknown_score_);
    begin = character_end;
  }
}

// A token may hold what its characters alone do not: scores may be anything.
void Unigram::add_unknown(std::string_view run, std::vector<int32_t>& ids) const {
  const int32_t node = tokens_.find(run);
  const int32_t id = node == ByteTrie::kNone ? ByteTrie::kNone : tokens_.value(node);
  if (id != ByteTrie::kNone) {
    ids.push_back(id);
  } else if (!fallback_.append(run, ids)) {
    ids.push_back(unknown_);
  }
}

}  // namespace sluice::text
