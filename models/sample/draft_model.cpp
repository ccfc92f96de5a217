#include "models/sample/draft_model.h"

#include <algorithm>

#include "base/error.h"

namespace sluice::models {
namespace {

// Tokens of a sample from `begin` to `end`, which lie in its prompt or after it.
std::span<const int64_t> text_of(const Sample& sample, int64_t begin, int64_t end) {
  const int64_t prompt = sample.prompt();
  const auto count = static_cast<size_t>(end - begin);
  if (begin < prompt) return sample.request.prompt.ids().subspan(static_cast<size_t>(begin), count);
  return std::span<const int64_t>(sample.result.tokens).subspan(static_cast<size_t>(begin - prompt), count);
}

}  // namespace

DraftModel::DraftModel(const DraftOptions& options, const SamplingOptions& sampling, int64_t block_size, int64_t blocks,
                       int64_t step_tokens)
    : config_(options.config),
      block_size_(block_size),
      step_tokens_(step_tokens),
      backend_(GenerationBackend::make(options.config, {.sampling = sampling,
                                                        .device = options.device,
                                                        .precision = options.precision,
                                                        .block_size = block_size,
                                                        .blocks = blocks})),
      blocks_(static_cast<size_t>(blocks)) {}

void DraftModel::copy_block(int32_t from, int32_t to, const BlockPool& pool) {
  const int64_t read = read_in(from, pool);
  if (read > 0) backend_->copy_block(from, to);
  blocks_[static_cast<size_t>(to)] = {.read = read, .taken = pool.times_taken(to)};
}

int64_t DraftModel::read_in(int32_t number, const BlockPool& pool) const {
  const Block& block = blocks_[static_cast<size_t>(number)];
  return block.taken == pool.times_taken(number) ? block.read : 0;
}

// What it has read of the sample's own text it notes with the sample; of prompts, which others may have, with their blocks.
int64_t DraftModel::read_of(const Sample& sample, const BlockPool& pool) const {
  if (sample.drafted >= sample.prompt()) return sample.drafted;
  int64_t read = 0;
  for (size_t i = 0; read < sample.prompt(); ++i) {
    const int64_t here = std::min(block_size_, sample.prompt() - read),
                  of_block = std::min(here, read_in(sample.blocks[i], pool));
    read += of_block;
    if (of_block < here) break;
  }
  return read;
}

void DraftModel::guess(const PackedWeights& weights, std::span<const std::unique_ptr<Sample>> running, const BlockPool& pool) {
  guessing_.clear();
  for (const auto& sample : running)
    if (!sample->drafts.empty()) guessing_.push_back({.sample = sample.get(), .stream = sample->request.stream});
  if (guessing_.empty()) return;
  while (read_texts(weights, pool)) {
  }
  size_t guessed = 0;
  while (guess_next(weights, guessed)) ++guessed;
  for (const Guessing& of : guessing_) {
    Sample& sample = *of.sample;
    sample.result.tokens.resize(sample.result.tokens.size() - (sample.drafts.size() - 1));
    sample.drafted = sample.cached + std::ssize(sample.drafts);
  }
}

// One round of reading what lies before the last two tokens, which are read when the first one is guessed. Where a block is
// another's in the same round, the others wait: they find it read in the next one.
bool DraftModel::read_texts(const PackedWeights& weights, const BlockPool& pool) {
  batch_.clear();
  ++round_;
  int64_t left = step_tokens_;
  for (Guessing& of : guessing_) {
    const Sample& sample = *of.sample;
    of.read = std::max(of.read, read_of(sample, pool));
    of.reads = 0;
    if (of.read >= sample.prompt() && sample.cached - of.read <= 1) continue;
    const int64_t end = std::min(of.read < sample.prompt() ? sample.prompt() : sample.cached, of.read + left);
    int64_t next = of.read;
    while (next < end) {
      Block& block = blocks_[static_cast<size_t>(sample.blocks[static_cast<size_t>(next / block_size_)])];
      if (block.round == round_) break;
      block.round = round_;
      next = std::min(end, (next / block_size_ + 1) * block_size_);
    }
    if (next == of.read) continue;
    of.reads = next - of.read;
    left -= of.reads;
    batch_.push_back(
        {.tokens = text_of(sample, of.read, next), .cached = of.read, .blocks = sample.blocks, .wants_logits = false});
  }
  if (batch_.empty()) return false;
  backend_->step(weights, batch_, {}, {});
  for (Guessing& of : guessing_) {
    if (of.reads == 0) continue;
    of.read += of.reads;
    note_read(of, pool);
  }
  return true;
}

void DraftModel::note_read(const Guessing& of, const BlockPool& pool) {
  Sample& sample = *of.sample;
  if (of.read > sample.prompt()) {
    sample.drafted = of.read;
    return;
  }
  for (int64_t begin = (of.read - of.reads) / block_size_ * block_size_; begin < of.read; begin += block_size_) {
    const int32_t block = sample.blocks[static_cast<size_t>(begin / block_size_)];
    blocks_[static_cast<size_t>(block)].read = std::min(block_size_, of.read - begin);
    blocks_[static_cast<size_t>(block)].taken = pool.times_taken(block);
  }
}

// The draft of this number, of all that have so many. Those before it stand after the response meanwhile, for the penalties.
bool DraftModel::guess_next(const PackedWeights& weights, size_t number) {
  batch_.clear();
  draws_.clear();
  for (Guessing& of : guessing_) {
    Sample& sample = *of.sample;
    if (sample.drafts.size() <= number) continue;
    if (number > 0) sample.result.tokens.push_back(sample.drafts[number - 1]);
    const int64_t end = sample.cached + 1 + static_cast<int64_t>(number), begin = number == 0 ? of.read : end - 1;
    draws_.push_back({.id = sample.request.id,
                      .row = std::ssize(batch_),
                      .uniform = of.stream.uniform(),
                      .greedy = sample.request.greedy,
                      .prompt = sample.request.prompt.ids(),
                      .response = sample.result.tokens});
    batch_.push_back({.tokens = text_of(sample, begin, end), .cached = begin, .blocks = sample.blocks});
  }
  if (batch_.empty()) return false;
  drawn_.resize(draws_.size());
  backend_->step(weights, batch_, draws_, drawn_);
  size_t drawn = 0;
  for (const Guessing& of : guessing_)
    if (of.sample->drafts.size() > number) of.sample->drafts[number] = drawn_[drawn++].id;
  return true;
}

}  // namespace sluice::models
