"""Peer: TRL's PPOTrainer on a CPU, with policy, reference, critic and reward model of one size. Each question is answered by the
seconds of one iteration.

usage: ppo.py --model FOLDER [--dtype float32|bfloat16] [--batch 64] [--new 64] [--threads 2]
needs trl 1.12, the last version with this trainer, first in PYTHONPATH

No sample ends early. One epoch, one mini-batch, batches of more than 64 samples in parts."""

import os
import tempfile

os.environ["TRL_EXPERIMENTAL_SILENCE"] = "1"

import common
from harness import shapes
from datasets import Dataset
from transformers import AutoModelForSequenceClassification
from trl.experimental.ppo import PPOConfig, PPOTrainer

MOST_AT_ONCE = 64


def scalar_head(options):
    return AutoModelForSequenceClassification.from_config(common.config(options.model, num_labels=1),
                                                          dtype=common.DTYPES[options.dtype])


def main():
    options = common.options(__doc__, batch=64, new=64)
    tokenizer = common.tokenizer(options.model, padding_side="left")
    data = Dataset.from_list([{"input_ids": tokenizer(row["prompt"])["input_ids"]} for row in shapes.sums()])
    at_once = min(options.batch, MOST_AT_ONCE)
    with tempfile.TemporaryDirectory() as folder:
        config = PPOConfig(output_dir=folder, use_cpu=True, bf16=options.dtype == "bfloat16", per_device_train_batch_size=at_once,
                           gradient_accumulation_steps=options.batch // at_once, num_mini_batches=1, num_ppo_epochs=1,
                           total_episodes=options.batch * 10000, response_length=options.new, temperature=1.0, stop_token=None,
                           report_to="none", num_sample_generations=0, save_strategy="no", learning_rate=1e-5,
                           local_rollout_forward_batch_size=at_once, gradient_checkpointing=False, disable_tqdm=True)
        trainer = PPOTrainer(args=config, processing_class=tokenizer, model=common.language_model(options.model, options.dtype),
                             ref_model=common.language_model(options.model, options.dtype), reward_model=scalar_head(options),
                             value_model=scalar_head(options), train_dataset=data, eval_dataset=data.select(range(8)))
        iterations = common.Iterations()
        trainer.log = lambda *args, **kwargs: iterations.ended()  # the last thing that the loop does in each iteration
        iterations.begin()
        trainer.train()


if __name__ == "__main__":
    main()
