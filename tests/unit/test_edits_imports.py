"""Imports of names from a module: on one line or on several, added, renamed, moved and removed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.edit_sessions import EditingSession


def edited(ending: str, here: str, there: str, old: str, new: str) -> EditingSession:
    """A session after one change in the first of two open documents."""
    session = EditingSession()
    session.texts.opened = {f"/w/a.{ending}": here, f"/w/b.{ending}": there}
    session.edit(old, new, f"/w/a.{ending}")
    return session


def made_there(session: EditingSession) -> set[str]:
    """The texts that the second document may become by one proposal."""
    path = next(path for path in session.texts.opened if "/b." in path)
    found: set[str] = set()
    for edit in session.proposed():
        if edit.path == path:
            lines = session.texts.opened[path].split("\n")
            lines[edit.line : edit.line + len(edit.old)] = edit.new
            found.add("\n".join(lines))
    return found


def python_list(*names: str, on_one_line: bool) -> str:
    if on_one_line:
        return f"from m import {', '.join(names)}\n"
    return "".join(("from m import (\n", *(f"    {name},\n" for name in names), ")\n"))


def typescript_list(*names: str, on_one_line: bool) -> str:
    if on_one_line:
        return f"import {{ {', '.join(names)} }} from './m';\n"
    return "".join(("import {\n", *(f"  {name},\n" for name in names), "} from './m';\n"))


def rust_list(*names: str, on_one_line: bool) -> str:
    if on_one_line:
        return f"use m::n::{{{', '.join(names)}}};\n"
    return "".join(("use m::n::{\n", *(f"    {name},\n" for name in names), "};\n"))


LISTS = [("py", python_list), ("ts", typescript_list), ("rs", rust_list)]
FORMS = [(False, False), (False, True), (True, False), (True, True)]


@pytest.mark.parametrize(("ending", "listed"), LISTS)
@pytest.mark.parametrize(("here", "there"), FORMS)
def test_a_name_joins_a_list_in_any_form(
    ending: str, listed: Callable[..., str], here: bool, there: bool
) -> None:
    use = "\nput(cc)\n"
    before, after = (
        listed(*names, on_one_line=here) for names in (("aa", "zz"), ("aa", "cc", "zz"))
    )
    ours, wanted = (
        listed(*names, on_one_line=there) for names in (("bb", "dd"), ("bb", "cc", "dd"))
    )
    session = edited(ending, before + use, ours + use, before, after)
    assert wanted + use in made_there(session)


def test_the_last_name_of_a_list_gets_a_comma() -> None:
    before = "import {\n  aa\n} from './m';\nput(cc);\n"
    ours = "import {\n  aa,\n  bb\n} from './m';\nput(cc);\n"
    session = edited("ts", before, ours, "  aa\n", "  aa,\n  cc\n")
    wanted = "import {\n  aa,\n  bb,\n  cc\n} from './m';\nput(cc);\n"
    assert wanted in made_there(session)


def test_names_are_sorted_by_kind_where_they_were() -> None:
    ours = "from m import ZONE, Area, area, line\n\nput(Line)\n"
    session = edited("py", "from m import aa\n", ours, "aa", "aa, Line")
    assert "from m import ZONE, Area, Line, area, line\n\nput(Line)\n" in made_there(session)


def test_a_name_that_is_imported_already_is_not_added() -> None:
    for use in ("from m import (\n    bb,\n    cc,\n)\n", "from k import (\n    cc,\n)\n"):
        session = edited("py", "from m import aa\n", f"{use}\nput(cc)\n", "aa", "aa, cc")
        assert made_there(session) == set()
    ours = "use k::{\n    aa, cc,\n    dd,\n};\n\nput(cc);\n"
    session = edited("rs", "use m::n::{aa};\n", ours, "aa", "aa, cc")
    assert made_there(session) == set()


def test_a_new_import_goes_behind_a_list_not_into_it() -> None:
    here = "from k import aa\n\nput(cc)\n"
    ours = "import os\nfrom a import (\n    bb,\n    dd,\n)\n\nput(cc)\n"
    session = edited("py", here, ours, "import aa\n", "import aa\nfrom m import cc\n")
    wanted = "import os\nfrom a import (\n    bb,\n    dd,\n)\nfrom m import cc\n\nput(cc)\n"
    assert wanted in made_there(session)


def test_a_line_of_gos_list_goes_to_its_place() -> None:
    use = "\nfunc f() { put(slices.Max(x)) }\n"
    here = f'package a\n\nimport (\n\t"errors"\n\t"fmt"\n)\n{use}'
    ours = f'package a\n\nimport (\n\t"bytes"\n\t"time"\n)\n{use}'
    session = edited("go", here, ours, '\t"fmt"\n', '\t"fmt"\n\t"slices"\n')
    assert ours.replace('\t"time"', '\t"slices"\n\t"time"') in made_there(session)


def test_a_renamed_name_takes_its_place_in_other_lists() -> None:
    here = "from m import fetch, give, zoom\n\nfetch(1)\n"
    ours = "from m import fetch, hold, zoom\n\nfetch(2)\n"
    session = edited("py", here, ours, "fetch, give, zoom", "give, load, zoom")
    made = made_there(session)
    assert "from m import hold, load, zoom\n\nfetch(2)\n" in made
    assert "from m import fetch, hold, zoom\n\nload(2)\n" in made


@pytest.mark.parametrize(("here", "there"), FORMS)
def test_a_name_that_moved_leaves_its_list_and_joins_the_other_module(
    here: bool, there: bool
) -> None:
    before = python_list("aa", "fetch_data", on_one_line=here)
    after = python_list("aa", on_one_line=here) + "from n import fetch_data\n"
    use = "\nput(fetch_data)\n"
    rest = f"from mm import x\nfrom n import bb\n{use}"
    ours = python_list("fetch_data", "zz", on_one_line=there) + rest
    session = edited("py", before + use, ours, before, after)
    without = python_list("zz", on_one_line=there) + rest
    assert without in made_there(session)
    session.change("/w/b.py", without, 0)
    assert without.replace("import bb", "import bb, fetch_data") in made_there(session)


def test_a_name_that_is_used_still_is_not_removed() -> None:
    here, ours = "from m import aa, cc\n", "from m import (\n    bb,\n    cc,\n)\n"
    unused = edited("py", here, ours, "aa, cc", "aa")
    assert "from m import (\n    bb,\n)\n" in made_there(unused)
    used = edited("py", here, f"{ours}\nput(cc)\n", "aa, cc", "aa")
    assert made_there(used) == set()
    alone = edited("py", here, "from m import (\n    cc,\n)\nx = 1\n", "aa, cc", "aa")
    assert "x = 1\n" in made_there(alone)
