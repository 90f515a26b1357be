"""Show the examples of docstrings as code in the API reference (a griffe extension)."""

from typing import Any

import griffe


class FencedExamples(griffe.Extension):
    """Put doctests between code fences; Markdown would read >>> as a quotation."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:  # noqa: ARG002
        """Change the docstring of a module, class, function or attribute."""
        if obj.docstring is not None:
            obj.docstring.value = fence_examples(obj.docstring.value)


def fence_examples(docstring: str) -> str:
    """Return a docstring whose doctests are fenced; a doctest ends with a blank line."""
    lines: list[str] = []
    is_example = False
    for line in [*docstring.splitlines(), ""]:
        if line.startswith(">>>") and not is_example:
            lines.append("```pycon")
            is_example = True
        elif not line.strip() and is_example:
            lines.append("```")
            is_example = False
        lines.append(line)
    return "\n".join(lines).rstrip("\n")
