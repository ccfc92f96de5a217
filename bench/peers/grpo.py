"""Peer: TRL's GRPOTrainer on a CPU. Each question is answered by the seconds of one iteration, optimizer step included.

usage: grpo.py --model FOLDER [--dtype float32|bfloat16] [--prompts 8] [--samples 8] [--new 64] [--threads 2]

No sample ends early. bfloat16: weights and optimizer in bfloat16 beside autocast, which is TRL's fastest. Batches of more than 64
samples are trained in parts, as memory has it; they are generated as one."""

import tempfile

import common
from harness import shapes
from datasets import Dataset
from transformers import TrainerCallback
from trl import GRPOConfig, GRPOTrainer

MOST_AT_ONCE = 64  # samples of a backward pass


class Clock(TrainerCallback):
    def __init__(self):
        self.iterations = common.Iterations()

    def on_train_begin(self, args, state, control, **kwargs):
        self.iterations.begin()

    def on_step_end(self, args, state, control, **kwargs):
        self.iterations.ended()


def has_a_seven(completions, **_):
    return [float("7" in completion) for completion in completions]


def main():
    options = common.options(__doc__, prompts=8, samples=8, new=64)
    batch = options.prompts * options.samples
    at_once = min(batch, MOST_AT_ONCE)
    with tempfile.TemporaryDirectory() as folder:
        config = GRPOConfig(
            output_dir=folder, use_cpu=True, bf16=options.dtype == "bfloat16", beta=0.0, num_generations=options.samples,
            per_device_train_batch_size=at_once, gradient_accumulation_steps=batch // at_once, max_completion_length=options.new,
            generation_kwargs={"min_new_tokens": options.new}, max_steps=100000, report_to="none", logging_strategy="no",
            save_strategy="no", learning_rate=1e-5, gradient_checkpointing=False, disable_tqdm=True)
        GRPOTrainer(model=common.language_model(options.model, options.dtype), reward_funcs=has_a_seven, args=config,
                    train_dataset=Dataset.from_list(shapes.sums()), processing_class=common.tokenizer(options.model),
                    callbacks=[Clock()]).train()


if __name__ == "__main__":
    main()
