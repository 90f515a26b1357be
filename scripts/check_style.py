"""Check the rules of CONTRIBUTING.md that no linter knows; print every violation with its line.

Everywhere: no vague names, no docstring that begins with "Of ". In src also: the length of files
and functions, and the number of parameters.

    python scripts/check_style.py            # src, tests, benchmarks and scripts
    python scripts/check_style.py src/tclgraph/events
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

VAGUE_NAMES = frozenset({"one", "found", "told", "which", "whole", "kept", "where"})
MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 60
MAX_KERNEL_LINES = 80
MAX_PARAMETERS = 8

Function = ast.FunctionDef | ast.AsyncFunctionDef


def check_file(path: Path) -> Iterator[str]:
    """Yield one line per violation."""
    text = path.read_text()
    tree = ast.parse(text)
    in_source = "src" in path.parts
    num_lines = text.count("\n")
    if in_source and num_lines > MAX_FILE_LINES:
        yield f"{path}:1: {num_lines} lines; the limit is {MAX_FILE_LINES}"
    for node in ast.walk(tree):
        for name, line in defined_names(node):
            if name in VAGUE_NAMES:
                yield f"{path}:{line}: {name!r} is not a name; say what it holds"
        is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if is_text and str(node.value.value).strip().startswith("Of "):
            yield f'{path}:{node.lineno}: docstring begins with "Of "'
        if in_source and isinstance(node, Function):
            yield from check_function(path, node)


def defined_names(node: ast.AST) -> Iterator[tuple[str, int]]:
    """Yield the names that a node introduces: variables, parameters, attributes, functions."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id, node.lineno
    elif isinstance(node, ast.arg):
        yield node.arg, node.lineno
    elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
        yield node.attr.strip("_"), node.lineno
    elif isinstance(node, Function | ast.ClassDef):
        yield node.name.strip("_"), node.lineno
    elif isinstance(node, ast.alias) and node.asname:
        yield node.asname, node.lineno
    elif isinstance(node, ast.MatchAs | ast.MatchStar) and node.name:
        yield node.name, node.lineno


def check_function(path: Path, node: Function) -> Iterator[str]:
    """Yield what is too long about a function."""
    length = (node.end_lineno or node.lineno) - node.lineno + 1
    limit = MAX_KERNEL_LINES if "kernels" in path.as_posix() else MAX_FUNCTION_LINES
    if length > limit:
        yield f"{path}:{node.lineno}: {node.name} has {length} lines; the limit is {limit}"
    arguments = node.args
    names = [
        argument.arg
        for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
        if argument.arg not in ("self", "cls")
    ]
    if len(names) > MAX_PARAMETERS:
        yield (
            f"{path}:{node.lineno}: {node.name} has {len(names)} parameters; "
            f"the limit is {MAX_PARAMETERS}"
        )


def main() -> int:
    """Check the files and folders named on the command line, or all."""
    places = sys.argv[1:] or ["src", "tests", "benchmarks", "scripts"]
    num_violations = 0
    for place in map(Path, places):
        for path in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            for violation in check_file(path):
                print(violation)
                num_violations += 1
    print(f"style: {num_violations} violations")
    return int(num_violations > 0)


if __name__ == "__main__":
    sys.exit(main())
