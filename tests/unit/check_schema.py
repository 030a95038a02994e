#!/usr/bin/env python3
"""Holds reports against their schema, and the schema against the man page.

check_schema.py SCHEMA MANPAGE COMMAND...   COMMAND prints a JSON list of reports

It knows the keywords that the schema uses and refuses others. It is stricter than the schema in one
thing: a name that the schema does not describe is an error.
"""
import json
import re
import subprocess
import sys

TYPES = {
    "object": lambda v: isinstance(v, dict),
    "array": lambda v: isinstance(v, list),
    "string": lambda v: isinstance(v, str),
    "integer": lambda v: isinstance(v, int) and not isinstance(v, bool),
    "number": lambda v: isinstance(v, (int, float)) and not isinstance(v, bool),
    "boolean": lambda v: isinstance(v, bool),
    "null": lambda v: v is None,
}
KNOWN = {"$schema", "$defs", "$ref", "title", "description", "type", "required", "properties",
         "items", "const", "enum", "minimum", "maximum", "pattern"}


def errors(value, schema, root, at):
    """Every way in which value is not what schema says."""
    if set(schema) - KNOWN:
        yield f"{at}: this checker does not know {sorted(set(schema) - KNOWN)}"
    if "$ref" in schema:
        yield from errors(value, root["$defs"][schema["$ref"].removeprefix("#/$defs/")], root, at)
    types = schema.get("type", [])
    types = [types] if isinstance(types, str) else types
    if types and not any(TYPES[t](value) for t in types):
        yield f"{at}: {value!r} is no {' or '.join(types)}"
        return
    if "const" in schema and value != schema["const"]:
        yield f"{at}: {value!r} is not {schema['const']!r}"
    if "enum" in schema and value not in schema["enum"]:
        yield f"{at}: {value!r} is none of {schema['enum']}"
    if TYPES["number"](value) and not (schema.get("minimum", value) <= value <=
                                       schema.get("maximum", value)):
        yield f"{at}: {value!r} is out of range"
    if isinstance(value, str) and not re.search(schema.get("pattern", ""), value):
        yield f"{at}: {value!r} does not match"
    if isinstance(value, dict):
        described = schema.get("properties", {})
        for name in set(schema.get("required", [])) - set(value):
            yield f"{at}: no {name}"
        for name, inner in value.items():
            if name not in described:
                yield f"{at}.{name}: the schema does not have it"
            else:
                yield from errors(inner, described[name], root, f"{at}.{name}")
    for i, inner in enumerate(value if isinstance(value, list) else []):
        yield from errors(inner, schema.get("items", {}), root, f"{at}[{i}]")


def names(schema):
    """All names and words that a program may find in a report."""
    for name, inner in schema.get("properties", {}).items():
        yield name
        yield from names(inner)
    yield from schema.get("enum", [])
    if "items" in schema:
        yield from names(schema["items"])


def main(argv):
    schema = json.load(open(argv[1], encoding="utf-8"))
    page = open(argv[2], encoding="utf-8").read()
    section = re.search(r"^\.Sh REPORT$(.*?)^\.Sh ", page, re.M | re.S)[1]
    reports = json.loads(subprocess.run(argv[3:], check=True, stdout=subprocess.PIPE).stdout)
    found = [e for i, report in enumerate(reports)
             for e in errors(report, schema, schema, f"report {i}")]
    found += [f"{argv[2]}: REPORT does not tell of {name}" for name in sorted(set(names(schema)))
              if not re.search(rf"\b{name}\b", section)]
    if not reports:
        found.append("there is no report")
    print("\n".join(found), file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
