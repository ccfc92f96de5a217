#pragma once

#include <cstdint>

#include "models/kernels/instruction_set.h"

namespace sluice::models {

/// out[row, :] (+)= x[row, :] weight^T + bias, a linear layer, all float32.
///
/// x      [rows, inputs]     row stride x_stride
/// weight [outputs, inputs]  contiguous, as Hugging Face stores it; read afresh at each call, nothing about it is cached
/// bias   [outputs]          or null
/// out    [rows, outputs]    row stride out_stride; must not overlap x or weight
struct LinearArguments {
  const float* x = nullptr;
  int64_t x_stride = 0;
  const float* weight = nullptr;
  const float* bias = nullptr;
  float* out = nullptr;
  int64_t out_stride = 0;
  int64_t rows = 0, inputs = 0, outputs = 0;
  bool accumulate = false;  // add to what is in `out`: the residual connection
};

/// Every element is one chain of multiply-adds in the order of the inputs that starts from the bias, whatever the other rows and
/// the number of threads are: a row's result is bit-identical in every batch, which no library's matrix product promises.
/// `machine` is for tests of what runs elsewhere; it must not be better than this_machine().
void linear(const LinearArguments& arguments, Machine machine = this_machine());

}  // namespace sluice::models
