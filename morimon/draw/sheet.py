"""A table as data, to leave the screen with: CSV, JSON, Markdown, or lines for the clipboard."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

Scalar: TypeAlias = str | float | int | None
Form: TypeAlias = Literal["csv", "json", "markdown"]
SUFFIX: dict[Form, str] = {"csv": ".csv", "json": ".json", "markdown": ".md"}


@dataclass(frozen=True, slots=True)
class Sheet:
    """Names of columns (units included) and rows of plain values; None is a figure that nobody told."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Scalar]]

    def text(self, form: Form) -> str:
        """The sheet in one of the forms that a file may have."""
        return {"csv": self.csv, "json": self.json, "markdown": self.markdown}[form]()

    def csv(self) -> str:
        """Comma-separated values with a line of names; a missing figure is empty."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows(self.rows)
        return out.getvalue()

    def json(self) -> str:
        """A list of objects; a missing figure is null."""
        return json.dumps([dict(zip(self.columns, row, strict=True)) for row in self.rows], indent=1) + "\n"

    def markdown(self) -> str:
        """A Markdown table."""
        rows = [[_cell(value) for value in row] for row in self.rows]
        rule = ["---:" if _is_figure(column, self.rows) else "---" for column in range(len(self.columns))]
        return "".join(f"| {' | '.join(cells)} |\n" for cells in (list(self.columns), rule, *rows))


def _cell(value: Scalar) -> str:
    return "" if value is None else str(value).replace("|", "\\|").replace("\n", " ")


def _is_figure(column: int, rows: Sequence[Sequence[Scalar]]) -> bool:
    values = [row[column] for row in rows if row[column] is not None]
    return bool(values) and all(isinstance(value, (int, float)) for value in values)
