#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <utility>

#include "models/layers/sampling.h"
#include "models/portable/softened_rows.h"
#include "models/portable/texts.h"

namespace sluice::models {
struct OwnKernels;
}

namespace sluice::models::portable {

/// Draws token ids where the logits are, on any device: what models/sample/sampler.h draws from the same logits and numbers, but
/// for a number that falls, to rounding, between two tokens. A few numbers a draw come to the host, whatever the
/// vocabulary is.
///
/// Draws from so many rows at a time that its tensors take at most `scratch_bytes` on the device, or as much as one row needs: 20
/// bytes a logit, 8 more with penalties and 64 for each token of a text, 48 more with top_k, top_p or min_p. What a device's sort
/// takes inside is not counted. Keeps no memory between calls. May be used by several threads.
class Sampler {
 public:
  static constexpr int64_t kScratchBytes = int64_t{1} << 29;

  /// What sample() takes of the device at most, whatever the options, but for the texts.
  static int64_t most_bytes(int64_t rows, int64_t vocab_size);

  /// Throws UserError naming the option that is out of range.
  explicit Sampler(const SamplingOptions& options, int64_t scratch_bytes = kScratchBytes);

  /// tokens[i] for draws[i]. Waits for the device once.
  ///
  /// logits  [R,V] float32
  /// texts   of the R sequences, with penalties; their draws' prompts and responses are not read, but for a prompt's length
  ///
  /// Throws UserError naming the sample of the first draw whose row holds a NaN or an infinity.
  void sample(const at::Tensor& logits, const Texts& texts, std::span<const TokenDraw> draws,
              std::span<SampledToken> tokens) const;

 private:
  // Some draws of a step, on the device: [D,1] each.
  struct Draws {
    at::Tensor rows, prompts;  // of the logits; tokens of the prompt
    at::Tensor greedy;         // bool
    at::Tensor uniform;        // float64

    Draws narrow(int64_t first, int64_t count) const;
  };

  static void take(std::span<const TokenDraw> draws, const at::Tensor& numbers, std::span<SampledToken> tokens);
  at::Tensor drawn_by_own_kernels(const OwnKernels& kernels, const at::Tensor& logits, std::span<const TokenDraw> draws) const;
  Draws on_device(std::span<const TokenDraw> draws, at::Device device) const;
  int64_t rows_at_a_time(const at::Tensor& logits, const Texts& texts) const;
  at::Tensor drawn(const at::Tensor& logits, const Texts& texts, const Draws& draws, bool all_greedy) const;
  std::pair<at::Tensor, at::Tensor> drawn_with_penalties(const at::Tensor& logits, const Texts& texts, const Draws& draws) const;
  at::Tensor drawn_ids(const at::Tensor& logits, const at::Tensor& top, const SoftenedRows& rows, const Draws& draws) const;
  double scale() const { return options_.temperature == 0 ? 1.0 : 1.0 / options_.temperature; }

  SamplingOptions options_;
  int64_t scratch_bytes_;
};

}  // namespace sluice::models::portable
