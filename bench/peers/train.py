"""Peer: a training step of an eager transformers model: forward, loss of every next token, backward, fused AdamW. Each question
(tokens, length) is answered by the seconds of one step on tokens / length samples.

usage: train.py --model FOLDER [--dtype float32|bfloat16] [--threads 2] [--device cpu]"""

import common
import torch


def step(model, optimizer, tokens, length):
    ids = torch.randint(2, model.config.vocab_size, (tokens // length, length), device=model.device)
    start = common.now(model.device)
    model(input_ids=ids, labels=ids, use_cache=False).loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return common.now(model.device) - start


def main():
    options = common.options(__doc__)
    model = common.language_model(options.model, options.dtype, options.device).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
    while True:
        asked = common.question()
        common.answer(seconds=step(model, optimizer, asked["tokens"], asked["length"]))


if __name__ == "__main__":
    main()
