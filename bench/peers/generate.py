"""Peer: transformers' generate (sampling, KV cache). Each question (batch, context, steps) is answered by the seconds of `steps`
decoding steps: those between the first sampled token, which ends the reading of the prompt, and the last.

usage: generate.py --model FOLDER [--dtype float32|bfloat16] [--threads 2] [--device cpu]"""

import common
import torch
from transformers import StoppingCriteria, StoppingCriteriaList


class Clock(StoppingCriteria):
    """Is asked behind every token; stops nothing."""

    def __init__(self):
        self.moments = []

    def __call__(self, input_ids, scores, **kwargs):
        self.moments.append(common.now(input_ids.device))
        return torch.zeros(len(input_ids), dtype=torch.bool, device=input_ids.device)


def decode(model, batch, context, steps):
    prompt = torch.randint(2, model.config.vocab_size, (batch, context), device=model.device)
    clock = Clock()
    with torch.inference_mode():
        model.generate(prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=steps + 1, min_new_tokens=steps + 1,
                       do_sample=True, top_k=0, pad_token_id=0, stopping_criteria=StoppingCriteriaList([clock]))
    return clock.moments[-1] - clock.moments[0]


def main():
    options = common.options(__doc__)
    model = common.language_model(options.model, options.dtype, options.device).eval()
    while True:
        asked = common.question()
        common.answer(seconds=decode(model, asked["batch"], asked["context"], asked["steps"]))


if __name__ == "__main__":
    main()
