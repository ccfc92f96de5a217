"""Rewards of the example: 1 for the right sum, half of it for one that is nearly right."""


def reward(prompt, response, label):
    try:
        error = abs(int(response) - int(label))
    except ValueError:  # no number
        return 0.0
    return 1.0 if error == 0 else 0.5 if error <= 1 else 0.0
