"""Words in tables of the page."""

from __future__ import annotations

import re

import studies


def test_formats_are_not_broken_within_and_names_of_rows_stay_flush_left() -> None:
    page = studies.usual_page()
    formats = re.findall(r'<td role="cell" class="(\w+)" data-head="in">', page)
    assert formats
    assert set(formats) == {"number"}, "cells of that class are one line"
    assert re.findall(r'class="(\w*)">batch 1</th>', page) == [""]
