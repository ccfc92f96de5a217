"""What lists of mutations share: each takes something out of a file, and the tests must find it."""

import sys


def chosen(mutations):
    """Those whose names, their first entries, have all words of the command line in them."""
    return [mutation for mutation in mutations if all(word in mutation[0] for word in sys.argv[1:])]


def spoilt(name, file, text, there, instead):
    """The text with the mutation, which has one place in it."""
    if text.count(there) != 1:
        raise SystemExit(f"{name}: {file} has it {text.count(there)} times: {there}")
    return text.replace(there, instead)


def report(findings):
    """Prints each name with whether it was found, as they come, and the sum. Returns the exit status."""
    found = []
    for name, is_found in findings:
        print(f"{'found ' if is_found else 'MISSED'}  {name}", flush=True)
        found.append(is_found)
    print(f"{sum(found)} of {len(found)} found")
    return not all(found)
