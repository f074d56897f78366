"""The first consequence of a rename: a definition alone got another name, and its uses are shown at
the usual eagerness, but not where the old name is somebody else's as well."""

from __future__ import annotations

import pytest

from codespec.next_edit import BARS
from tests.edit_sessions import EditingSession

PYTHON = '''\
import os


def fetch_data(url, timeout=3):
    """Read what stands at a place."""
    return os.read(url, timeout)


def first(a):
    rows = fetch_data(a, timeout=1)
    return rows


class Job:
    def run(self):
        if not fetch_data(self.url):
            return None
        return [fetch_data(item) for item in self.items]


DEFAULT = fetch_data("http://localhost/", 7)
'''
GO = """\
package store

import "net/http"

func fetchData(url string, retries int) ([]byte, error) {
\treturn read(url, retries)
}

func (s *Store) First(url string) error {
\tbody, err := fetchData(url, 1)
\tif err != nil {
\t\treturn err
\t}
\ts.body = body
\treturn nil
}

func Second(w http.ResponseWriter, urls []string) {
\tfor _, url := range urls {
\t\tif _, err := fetchData(url, 2); err != nil {
\t\t\thttp.Error(w, err.Error(), 500)
\t\t}
\t}
}
"""
TYPESCRIPT = """\
import { read } from './read';

export async function fetchData(url: string, retries = 1): Promise<Row[]> {
  return await read(url, retries);
}

export async function first(url: string) {
  const rows = await fetchData(url, 2);
  return rows[0];
}

class Job {
  async run() {
    if (!(await fetchData(this.url))) {
      return null;
    }
    return Promise.all(this.urls.map((url) => fetchData(url)));
  }
}
"""
METHODS = """\
class Client:
    def fetch_data(self, url):
        return self.get(url)

    def first(self):
        return self.fetch_data(self.urls[0])

    def rest(self):
        return [self.fetch_data(url) for url in self.urls[1:]]
"""
LANGUAGES = [
    ("py", PYTHON, "def fetch_data", "def load_data"),
    ("go", GO, "func fetchData", "func loadData"),
    ("ts", TYPESCRIPT, "function fetchData", "function loadData"),
    ("py", METHODS, "def fetch_data", "def load_data"),
]


def renamed(
    ending: str, text: str, old: str, new: str, others: dict[str, str] | None = None
) -> EditingSession:
    """A session after one change, of the first `old` in a document."""
    path = f"/w/a.{ending}"
    session = EditingSession(others)
    session.texts.opened = {path: text}
    session.edit(old, new, path)
    return session


@pytest.mark.parametrize(("ending", "text", "old", "new"), LANGUAGES)
def test_uses_of_a_renamed_definition_are_shown(ending: str, text: str, old: str, new: str) -> None:
    before, after = old.split()[-1], new.split()[-1]
    session = renamed(ending, text, old, new)
    uses = {i for i, line in enumerate(text.split("\n")) if f"{before}(" in line}
    definition = next(i for i in uses if old in text.split("\n")[i])
    left = uses - {definition}
    while left:
        first = session.proposed()[0]
        assert first.chance >= BARS["medium"]
        assert first.line in left
        assert first.new == (first.old[0].replace(before, after),)
        session.apply(first)
        left.remove(first.line)


OTHERS = [
    # Another class has a method of that name, and the calls do not say which one they mean.
    (
        "def fetch_data",
        "def load_data",
        METHODS + "\n\nclass Other:\n    def fetch_data(self, url):\n        return url\n",
    ),
    # The calls mean what is imported, and a method has its name.
    (
        "    def fetch_data",
        "    def load_data",
        "from lib import fetch_data\n\n\nclass Client:\n    def fetch_data(self, url):\n"
        "        return self.get(url)\n\n\nx = fetch_data(1)\ny = fetch_data(2)\n",
    ),
]


@pytest.mark.parametrize(("old", "new", "text"), OTHERS)
def test_nothing_is_shown_while_another_has_the_old_name(old: str, new: str, text: str) -> None:
    session = renamed("py", text, old, new)
    assert all(edit.chance < BARS["medium"] for edit in session.proposed())


def test_a_definition_in_another_file_counts() -> None:
    other = {"/w/b.py": "def fetch_data(url):\n    return url\n"}
    alone = renamed("py", PYTHON, "def fetch_data", "def load_data")
    session = renamed("py", PYTHON, "def fetch_data", "def load_data", other)
    # A function's uses beside it are its own, those elsewhere may be another's.
    assert {edit.path for edit in session.proposed()} == {"/w/a.py"}
    methods = renamed("py", METHODS, "def fetch_data", "def load_data", other)
    assert methods.proposed() == []
    (row, *_), (of_alone, *_) = session.features().values(), alone.features().values()
    assert (row["renames"], row["n_defining"] > 0) == (False, True)
    assert (of_alone["renames"], of_alone["n_defining"]) == (True, 0)
