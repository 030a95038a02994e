#!/usr/bin/env python3
"""Holds the map of rooms in ARCHITECTURE.md against what the sources include and call.

check_rooms.py         a room uses only those that its line of the map allows; no circle across rooms,
                       none of more than two files inside one; no name of a file or tag occurs twice;
                       the list of states is that of the tables in the sources, and
                       every file that the text names is there
check_rooms.py states  the list of states, as ARCHITECTURE.md has to have it
check_rooms.py counts  lines of product code, the longest chain of includes, circles: for people
"""
import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)
# "| `daemon/net` | what it is | `common` `daemon/os` |"
MAP_LINE = re.compile(r"^\| `([\w/]+)` \|[^|]*\|([^|]*)\|$", re.MULTILINE)
# at the left margin, and no prototype: "int fd_open(const char *path)\n{"
FUNCTION = re.compile(r"^(static )?[a-z_][\w \t*]*?\b(\w+)\([^;{}]*\)\n\{", re.MULTILINE)
CALL = re.compile(r"(?<![.>\w])([a-z]\w+)\(")  # not by a pointer: on->say(...)
TAG = re.compile(r"^(?:struct|enum|union) (\w+) \{", re.MULTILINE)
# const struct sm worker_life = { "worker", states, WORKER_STATES };
LIFE = re.compile(r'^(?:static )?const struct sm \w+ = \{\s*"([^"]+)",\s*(\w+),', re.MULTILINE)
# [WORKER_KILLING] = { "killing", SM_TO(WORKER_ENDED) },
STATE = re.compile(r'\[(\w+)\] = \{\s*"([^"]+)",\s*([^}]*)\}')
NOT_CODE = re.compile(r'/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.DOTALL)
CIRCLE_MAX = 2


def product():
    """Every file of the product, by its path from the root."""
    return {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
            for top in ("common", "config", "daemon")
            for path in sorted((ROOT / top).rglob("*.[ch]"))
            if "docs" not in path.relative_to(ROOT).parts}


def module(path):
    """A source and its header are one: daemon/net/link.c and .h are daemon/net/link."""
    return path.rsplit(".", 1)[0]


def room(name):
    return str(pathlib.PurePosixPath(name).parent)


def uses(files):
    """What each module uses: {module: {other: a name or an include that shows it}}."""
    defined = {}
    for path, text in files.items():
        defined.update((name, module(path)) for static, name in FUNCTION.findall(text)
                       if not static)
    edges = collections.defaultdict(dict)
    for path, text in files.items():
        here = module(path)
        code = NOT_CODE.sub(" ", INCLUDE.sub("", text))
        for other in INCLUDE.findall(text):
            if other in files and module(other) != here:
                edges[here].setdefault(module(other), f'"{other}"')
        own = {name for _, name in FUNCTION.findall(text)}
        for name in set(CALL.findall(code)) - own if path.endswith(".c") else ():
            if defined.get(name, here) != here:
                edges[here].setdefault(defined[name], name)
    return edges


def circles(edges):
    """The strongly connected parts of more than one node, by Tarjan's algorithm."""
    number, low, stack, found = {}, {}, [], []

    def visit(node):
        number[node] = low[node] = len(number)
        stack.append(node)
        for other in edges.get(node, ()):
            if other not in number:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], number[other])
        if low[node] == number[node]:
            part = stack[stack.index(node):]
            del stack[stack.index(node):]
            if len(part) > 1:
                found.append(sorted(part))

    for node in sorted(edges):
        if node not in number:
            visit(node)
    return found


def between_rooms(edges):
    across = collections.defaultdict(dict)
    for here, others in edges.items():
        for other, why in others.items():
            if room(other) != room(here):
                across[room(here)].setdefault(room(other), f"{here} uses {why} of {other}")
    return across


def allowed(text):
    return {name: set(re.findall(r"`([\w/]+)`", may)) for name, may in MAP_LINE.findall(text)}


def twice(names):
    return sorted(name for name, times in collections.Counter(names).items() if times > 1)


def faults(files):
    edges = uses(files)
    across = between_rooms(edges)
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    may = allowed(text)
    lives = list(machines(files))
    rooms = {room(path) for path in files}
    yield from (f"{name}: not in the map of ARCHITECTURE.md" for name in sorted(rooms - set(may)))
    yield from (f"{name}: in the map, but not in the tree" for name in sorted(set(may) - rooms))
    for here in sorted(rooms & set(may)):
        for other, why in sorted(across[here].items()):
            if other not in may[here]:
                yield f"{here} may not use {other}: {why}"
        for other in sorted(may[here] - set(across[here])):
            yield f"{here} may use {other}, but does not"
    yield from (f"a circle across rooms: {', '.join(c)}" for c in circles(across))
    yield from (f"a circle of {len(c)} files: {', '.join(c)}"
                for c in circles(edges) if len(c) > CIRCLE_MAX)
    yield from (f"two files {name}" for name in twice(pathlib.PurePath(p).name for p in files))
    yield from (f"two structs, unions or enums {name}"
                for name in twice(tag for text in files.values() for tag in TAG.findall(text)))
    listed = set(re.findall(r"^- \*\*[^*]+\*\* \(`daemon/.*$", text, re.MULTILINE))
    yield from (f"not in ARCHITECTURE.md: {line}" for line in lives if line not in listed)
    yield from (f"ARCHITECTURE.md names {name}, which isn't there"
                for name in sorted(set(re.findall(r"`([\w/]+\.[ch])`", text)))
                if not any((ROOT / top / name).exists() for top in ("", "daemon")))
    yield from (f"only in ARCHITECTURE.md: {line}" for line in sorted(listed - set(lives)))


def machines(files):
    """A line for each state machine: its states, and what may follow each."""
    for path, text in sorted(files.items()):
        for title, table in LIFE.findall(text):
            body = re.search(r"sm_state " + table + r"\[\w+\] = \{\n(.*?)\n\};", text, re.DOTALL)[1]
            body = re.sub(r"/\*.*?\*/", "", body, flags=re.DOTALL)
            for name, edges in re.findall(r"^#define (\w+) \((SM_TO.*)\)$", text, re.MULTILINE):
                body = re.sub(rf"\b{name}\b", edges, body)
            rows = STATE.findall(body)
            names = {constant: name for constant, name, _ in rows}
            edges = [f"{name} → " + ", ".join(names[to] for to in re.findall(r"SM_TO\((\w+)\)", next))
                     if "SM_TO" in next else name for _, name, next in rows]
            yield f"- **{title}** (`{path}`): {'; '.join(edges)}"


def longest_chain(files):
    depth = {}

    def down(path):
        if path not in depth:
            depth[path] = []  # a header that includes itself would not compile
            depth[path] = [path] + max((down(p) for p in INCLUDE.findall(files[path])
                                        if p in files), key=len, default=[])
        return depth[path]

    return max((down(path) for path in files), key=len)


def counts(files):
    edges = uses(files)
    lines = collections.Counter()
    for path, text in files.items():
        lines[room(path)] += text.count("\n")
    for name in sorted(lines):
        print(f"{lines[name]:6} {name}")
    print(f"{sum(lines.values()):6} lines in {len(files)} files")
    chain = longest_chain(files)
    print(f"{len(chain):6} files in the longest chain of includes: {' > '.join(chain)}")
    print(f"{len(circles(between_rooms(edges))):6} circles across rooms")
    for circle in circles(edges):
        print(f"{len(circle):6} files in a circle: {', '.join(circle)}")


def main(argv):
    files = product()
    if argv[1:] == ["counts"]:
        counts(files)
        return 0
    if argv[1:] == ["states"]:
        print("\n".join(machines(files)))
        return 0
    bad = list(faults(files))
    for line in bad:
        print(line, file=sys.stderr)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
