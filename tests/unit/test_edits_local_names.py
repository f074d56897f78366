"""A parameter or variable that got another name in one function: where its old name stands in
another one, it is another variable."""

from __future__ import annotations

import pytest

from tests.edit_sessions import EditingSession

PYTHON = '''\
def read(
    url: str,
    timeout=3,
) -> bytes:
    """Read what stands at a url."""
    rows = open(url)
    if not url:
        return None
    return rows.get(url, timeout)


def write(url, text):
    rows = open(url)
    return rows.put(url, text)


class Job:
    def run(self):
        for url in self.urls:
            read(url=url)
'''
GO = """\
package store

// Read reads what stands at a url.
func (s *Store) Read(url string, retries int) ([]byte, error) {
\trows, err := open(url)
\tif err != nil {
\t\treturn nil, err
\t}
\treturn rows.Get(url, retries)
}

func Write(url string, text string) error {
\trows, err := open(url)
\tif err != nil {
\t\treturn err
\t}
\treturn rows.Put(url, text)
}
"""
TYPESCRIPT = """\
export async function read(url: string, retries = 1): Promise<Row[]> {
  const { rows } = await open(url);
  return rows.get(url, retries);
}

export async function write(url: string, text: string) {
  const { rows } = await open(url);
  return rows.put(url, text);
}
"""
RUST = """\
impl Store {
    fn read(&self, url: &str, retries: usize) -> Vec<u8>
    where
        Self: Sized,
    {
        let rows = open(url);
        rows.get(url, retries)
    }

    fn write(&self, url: &str, text: &str) {
        let rows = open(url);
        rows.put(url, text);
    }
}
"""
JAVA = """\
class Store {
    byte[] read(String url, int retries) {
        List<Row> rows = open(url);
        return rows.get(url, retries);
    }

    void write(String url, String text) {
        List<Row> rows = open(url);
        rows.put(url, text);
    }
}
"""
TEXTS = {"py": PYTHON, "go": GO, "ts": TYPESCRIPT, "rs": RUST, "java": JAVA}


def edited(ending: str, *edits: tuple[str, str]) -> EditingSession:
    session = EditingSession({f"/w/b.{ending}": TEXTS[ending]})
    session.texts.opened = {f"/w/a.{ending}": TEXTS[ending]}
    for old, new in edits:
        session.edit(old, new, f"/w/a.{ending}")
    return session


def lines_of(session: EditingSession) -> set[tuple[str, int]]:
    return {(path, line) for path, line, _ in session.said()}


@pytest.mark.parametrize(
    ("ending", "old", "new", "left"),
    [
        ("py", "url: str", "link: str", {4, 5, 6, 8}),
        ("go", "Read(url string", "Read(link string", {2, 4, 8}),
        ("ts", "read(url", "read(link", {1, 2}),
        ("rs", "read(&self, url", "read(&self, link", {5, 6}),
        ("java", "read(String url", "read(String link", {2, 3}),
        ("py", "rows = open", "data = open", {8}),
        ("go", "rows, err := open", "data, err := open", {8}),
        ("ts", "const { rows }", "const { data }", {2}),
        ("rs", "let rows", "let data", {6}),
        ("java", "List<Row> rows", "List<Row> data", {3}),
    ],
)
def test_uses_in_its_own_function_are_proposed_and_no_others(
    ending: str, old: str, new: str, left: set[int]
) -> None:
    session = edited(ending, (old, new))
    arguments = {("/w/a.py", 19), ("/w/b.py", 19)} if "url:" in old else set[tuple[str, int]]()
    assert lines_of(session) - arguments == {(f"/w/a.{ending}", line) for line in left}


def test_a_use_that_is_renamed_before_its_declaration_tells_as_much() -> None:
    session = edited("go", ("rows.Get", "data.Get"))
    assert lines_of(session) == {("/w/a.go", 4)}


def test_who_renames_it_in_a_second_function_goes_on() -> None:
    session = edited("py", ("rows = open", "data = open"), ("return rows.get", "return data.get"))
    assert lines_of(session) == set()
    path = "/w/a.py"
    text = session.texts.opened[path].replace("rows = open", "data = open")
    session.change(path, text, 12)
    assert ("/w/a.py", 13) in lines_of(session)
    assert ("/w/b.py", 5) in lines_of(session)


def test_an_argument_is_passed_by_its_new_name() -> None:
    session = edited("py", ("url: str", "link: str"))
    assert ("/w/a.py", 19) in lines_of(session)


def test_names_of_a_whole_module_are_no_functions_own() -> None:
    text = "LIMIT = 3\n\n\ndef f(a):\n    return a + LIMIT\n\n\ndef g(b):\n    return b + LIMIT\n"
    session = EditingSession(a=text)
    session.edit("a + LIMIT", "a + MOST")
    assert {line for _, line in lines_of(session)} == {0, 8}
    with_global = "def f():\n    global total\n    total = 1\n\n\ndef g():\n    return total + 2\n"
    session = EditingSession(a=with_global)
    session.edit("total = 1", "n_all = 1")
    assert 6 in {line for _, line in lines_of(session)}
