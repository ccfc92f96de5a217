"""Peer: a training step of an eager transformers model on a CPU: forward, loss of every next token, backward, fused AdamW. Each question (tokens,
length) is answered by the seconds of one step on tokens / length samples.

usage: train.py --model FOLDER [--dtype float32|bfloat16] [--threads 2]"""

import time

import common
import torch


def step(model, optimizer, tokens, length):
    ids = torch.randint(2, model.config.vocab_size, (tokens // length, length))
    start = time.perf_counter()
    model(input_ids=ids, labels=ids, use_cache=False).loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return time.perf_counter() - start


def main():
    options = common.options(__doc__)
    model = common.language_model(options.model, options.dtype).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
    while True:
        asked = common.question()
        common.answer(seconds=step(model, optimizer, asked["tokens"], asked["length"]))


if __name__ == "__main__":
    main()
