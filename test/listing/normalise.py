"""What `nft list` prints, without what may differ between two listings of one table: the order of elements, and counters and
clocks that go on. Reads from stdin, writes to stdout: one element a line."""
import re
import sys

TOKEN = re.compile(r'"[^"]*"|[{},]|[^"{},]+')
RUNNING = re.compile(r"counter packets \d+ bytes \d+|expires [0-9a-z]+")
OPENING = re.compile(r"elements = $")


def elements(tokens):
    """The elements up to the closing brace, each as text. A name in quotes may hold anything."""
    found, current, depth = [], "", 0
    for token in tokens:
        if token == "}" and depth == 0:
            break
        if token == "," and depth == 0:
            found.append(current)
            current = ""
            continue
        depth += {"{": 1, "}": -1}.get(token, 0)
        current += token
    return found + [current]


def clean(text):
    return " ".join(RUNNING.sub("", text).split())


def main():
    tokens = iter(TOKEN.findall(sys.stdin.read()))
    text = ""
    for token in tokens:
        text += token
        if token == "{" and OPENING.search(text[:-1]):
            text += "\n" + "\n".join(sorted(clean(e) for e in elements(tokens))) + "\n}"
    lines = (clean(line) for line in text.splitlines())
    print("\n".join(line for line in lines if line))


main()
