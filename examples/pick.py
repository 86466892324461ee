"""Prints fields of the JSON on standard input, named by JSON Pointer: what the README shows of an answer.

`pick.py /a/b /c` prints a line for each field; one pointer alone prints its bare value. `/list/*/a,b/c` prints a
line for each member of a list, with the named fields of it. Numbers are rounded to four digits, or to whole
ones from a thousand on. A problem document goes to standard error, whole sentence, and ends with 1.
"""

import itertools
import json
import sys


def text(value: object) -> str:
    """Return a value as it is printed."""
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False)
    return "-" if value is None else str(value)


def at(value: object, pointer: str) -> object:
    """Return what stands at a pointer; None where there is nothing."""
    for part in pointer.split("/")[1:]:
        if isinstance(value, list) and part.isdecimal():
            value = value[int(part)] if int(part) < len(value) else None
        else:
            value = value.get(part) if isinstance(value, dict) else None
    return value


def rows(document: object, pointer: str) -> list[list[str]]:
    """Return the lines of a pointer, each as its columns."""
    if "/*/" not in pointer:
        return [[pointer, text(at(document, pointer))]]
    place, names = pointer.split("/*/")
    members = at(document, place)
    return [
        [text(at(member, f"/{name}")) for name in names.split(",")]
        for member in (members if isinstance(members, list) else [])
    ]


def main() -> None:
    """Print what the arguments ask for."""
    document, pointers = json.load(sys.stdin), sys.argv[1:]
    if isinstance(document, dict) and "request_id" in document:
        sys.exit(f"{document['status']} {document['title']} {document['detail']}")
    if len(pointers) == 1 and "/*/" not in pointers[0]:
        print(text(at(document, pointers[0])))
        return
    for _, some in itertools.groupby(pointers, lambda pointer: pointer if "/*/" in pointer else ""):
        group = [row for pointer in some for row in rows(document, pointer)]
        widths = [max(map(len, column)) for column in zip(*group, strict=True)]
        for row in group:
            print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


if __name__ == "__main__":
    main()
