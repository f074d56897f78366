"""People in a text, found by rule, and where a name stands."""

from __future__ import annotations

import pytest

from codespec.rules.person_names import stands_in
from codespec.rules.persons import may_list, may_name, mentions


def people(text: str, path: str = "") -> list[str]:
    return [text[start:end] for start, end in mentions(text, path)]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("# Copyright (c) 2012 The Foo Authors. All rights reserved.", ["Foo"]),
        ("// Copyright (C) 2015-2018, Acme Inc.", ["Acme"]),
        ("/* (c) 2019 Jane Doe */", ["Jane Doe"]),
        ("<p>&copy; 2020 Acme Ltd. All rights reserved.</p>", ["Acme"]),
        ("Copyright Acme", ["Acme"]),
        ("# Copyright 2019 Jane Doe <jane@doe.org>", ["Jane Doe", "jane@doe.org"]),
        (" * @author Jane Doe", ["Jane Doe"]),
        (" * @author jdoe", ["jdoe"]),
        ("// Author: Jane Doe, John Smith", ["Jane Doe", "John Smith"]),
        ("-- Author: jdoe", ["jdoe"]),
        ("Signed-off-by: Jane Doe <jane@doe.org>", ["Jane Doe", "jane@doe.org"]),
        ("Co-authored-by: J. van der Berg", ["J. van der Berg"]),
        ("Author: Jane Doe", ["Jane Doe"]),
        ("# Maintainer: Жанна Доу", ["Жанна Доу"]),
        ("__author__ = 'Jane Doe'", ["Jane Doe"]),
        ('__author__ = "Jane Doe', ["Jane Doe"]),
        ('__authors__ = ["Jane Doe", "jdoe"]', ["Jane Doe", "jdoe"]),
        ('__copyright__ = "Copyright 2019, Acme"', ["Acme"]),
        ('__license__ = "MIT"', ["MIT"]),
        ("# SPDX-FileCopyrightText: 2020 Jane Doe", ["Jane Doe"]),
        ("# SPDX-License-Identifier: Apache-2.0", ["Apache-2.0"]),
        ("# Licensed under the Apache License, Version 2.0", ["Apache License"]),
        (" * @license MIT", ["MIT"]),
        ('MODULE_AUTHOR("Jane Doe");', ["Jane Doe"]),
        (r"\author{Jane Doe}", ["Jane Doe"]),
        (":author: Jane Doe", ["Jane Doe"]),
        ('<meta name="author" content="Jane Doe">', ["Jane Doe"]),
        ("MAINTAINER Jane Doe", ["Jane Doe"]),
        ('LABEL maintainer="Jane Doe"', ["Jane Doe"]),
        ("//  Created by Jane Doe on 1/1/20.", ["Jane Doe"]),
        ('send(to="jane.doe+x@mail.doe.co.uk")', ["jane.doe+x@mail.doe.co.uk"]),
    ],
)
def test_people_are_found(line: str, expected: list[str]) -> None:
    assert may_name(line)
    assert people(line) == expected


@pytest.mark.parametrize(
    "line",
    [
        "# Copyright (c) 2019",
        "# Copyright 2019 the authors",
        "# Copyright (c) {year} {name}",
        "# Copyright (c) [yyyy] [name of copyright owner]",
        "# The above copyright notice and this permission notice shall be included in all",
        "# THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER",
        "# Permission is hereby granted, free of charge, to any person obtaining a copy",
        "# distributed under the License is distributed on an AS IS basis",
        "copyright = get_copyright()",
        "copyright: str",
        "author: string",
        "  author: User,",
        "    Author: Author,",
        " * author: the author of the post",
        "// author: the name",
        "self.author = author",
        "@author.setter",
        "  @author = Author.new(name)",
        "return @author if named",
        ".author:hover {",
        "#author: red;",
        'book = Book(title="Dune", author="Frank Herbert")',
        "author = models.ForeignKey(User)",
        "authors: Author[] = []",
        '"author": author.name,',
        "# TODO: add author",
        "# created by the factory",
        "# sorted by name",
        "y = x@weights.data",
        "this@Outer.method()",
        "git@github.com:foo/bar.git",
        "postgres://user:word@db.acme.com/x",
        "https://user@acme.com/x",
        "icon@2x.png lodash@4.17.21",
        "me@example.com you@mail.example.org it@host.test x@y.invalid z@a.localhost",
    ],
)
def test_nobody_is_found(line: str) -> None:
    assert people(line) == []


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        ("package.json", '"author": "Jane Doe"', ["Jane Doe"]),
        ("a/package.json", '"author": {\n  "name": "Jane Doe",\n  "url": "A B"\n}', ["Jane Doe"]),
        ("Cargo.toml", 'name = "x"\nauthors = [\n  "Jane Doe",\n]\nb = "C D"', ["Jane Doe"]),
        ("setup.py", 'setup(\n    name="foo",\n    author="Jane Doe",\n)', ["Jane Doe"]),
        ("setup.cfg", "name = Foo Bar\nauthor = Jane Doe", ["Jane Doe"]),
        ("books.json", '"author": "Frank Herbert"', []),
        ("a.py", "# Authors:\n#   Jane Doe\n#\n# This Module Reads", ["Jane Doe"]),
        ("a.py", '__credits__ = [\n    "Jane Doe",\n]\nx = "Foo Bar"', ["Jane Doe"]),
    ],
)
def test_files_that_describe_a_package_and_lists_say_more(
    path: str, text: str, expected: list[str]
) -> None:
    assert people(text, path) == expected


@pytest.mark.parametrize(
    ("name", "text", "is_there"),
    [
        ("Jane Doe", "# by jane   doe.", True),
        ("Jane Doe", "Jane Doering", False),
        ("Jane Doe", "Jane met John Doe", False),
        ("Doe", "Jane Doe", True),
        ("Will", "it will", False),
        ("jane@doe.org", "<Jane@Doe.org>", True),
        ("jane@doe.org", "maryjane@doe.org", False),
        ("Apache-2.0", 'license = "Apache-2.0"', True),
        ("...", "...", False),
    ],
)
def test_a_name_stands_in_a_text_word_by_word(name: str, text: str, is_there: bool) -> None:
    assert stands_in(name, text) is is_there


@pytest.mark.parametrize("text", ["#" * 9_000 + " author: a", "a@" * 9_000, " " * 9_000 + "author"])
def test_long_lines_end(text: str) -> None:
    assert people(text) == []


@pytest.mark.parametrize(
    ("above", "goes_on"),
    [
        ("authors = [\n", True),
        ("x = 1\n# Contributors:\n", True),
        ('author = "Jane Doe"\n', False),
        ("# the owner of a list\nnames = [\n", False),
    ],
)
def test_a_line_that_begins_a_list_of_people_is_told(above: str, goes_on: bool) -> None:
    assert may_list(above) is goes_on
    line = '    "Jane Doe",\n' if "[" in above else "#   Jane Doe\n"
    assert not may_name(line)
    assert len(people(above + line)) - len(people(above)) == goes_on
