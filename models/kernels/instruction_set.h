#pragma once

namespace sluice::models {

/// Which registers and instructions a kernel may use, best first: AVX-512 with products of bfloat16 pairs (Zen 4, Sapphire
/// Rapids), AVX-512 (x86-64-v4), AVX2 with FMA (x86-64-v3), or what every x86-64 machine has. A kernel that computes in float32
/// has nothing to gain from the first and runs its v4 text there.
enum class InstructionSet { kV4Bfloat16, kV4, kV3, kBaseline };

/// The best that the machine the program runs on can do. No ifunc: its resolver would run before the sanitizers are ready.
inline InstructionSet best_instruction_set() {
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    return __builtin_cpu_supports("avx512bf16") ? InstructionSet::kV4Bfloat16 : InstructionSet::kV4;
  const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
  return v3 ? InstructionSet::kV3 : InstructionSet::kBaseline;
}

}  // namespace sluice::models
