"""Definitions: found in every language."""

from __future__ import annotations

import pytest

from codespec.index.selection import select
from codespec.languages.registry import parsed_languages
from codespec.syntax import symbols

# Source -> "name kind first-last signature" of each definition in it.
SOURCES = {
    "a.py": (
        """\
LIMIT = 10
lower = 3


@cached
class Tree(Base):
    FIELD = 1

    def find(self, key: int,
             default=None) -> int:
        def inner(): return 1
        return inner()

    @property
    def size(self): return 1


async def walk(tree): ...
""",
        [
            "LIMIT constant 1-1 LIMIT = 10",
            "Tree class 6-15 class Tree(Base)",
            "find method 9-12 def find(self, key: int, default=None) -> int",
            "size method 15-15 def size(self)",
            "walk function 18-18 async def walk(tree)",
        ],
    ),
    "a.js": (
        """\
export const MAX = 3;
const helper = (a, b) => { return a; };
function* gen(x) { yield x; }
export default class Box extends Base { open(lid) { return 1; } }
""",
        [
            "MAX constant 1-1 MAX = 3",
            "helper function 2-2 helper = (a, b)",
            "gen function 3-3 function* gen(x)",
            "Box class 4-4 class Box extends Base",
            "open method 4-4 open(lid)",
        ],
    ),
    "a.tsx": (
        """\
interface Props { title: string }
type Id = string | number;
export enum Mode { On, Off }
abstract class Shape { abstract area(): number; }
export const View = (p: Props): JSX.Element => { return <div/>; };
""",
        [
            "Props interface 1-1 interface Props",
            "Id type 2-2 type Id = string | number;",
            "Mode enum 3-3 enum Mode",
            "Shape class 4-4 abstract class Shape",
            "area method 4-4 abstract area(): number",
            "View function 5-5 View = (p: Props): JSX.Element",
        ],
    ),
    "a.go": (
        """\
package a
const Pi = 3
type Point struct { X int }
type Shape interface { Area() int }
type ID = string
func (p *Point) Move(dx int) error { return nil }
func New() *Point { return nil }
""",
        [
            "Pi constant 2-2 Pi = 3",
            "Point struct 3-3 Point struct { X int }",
            "Shape interface 4-4 Shape interface { Area() int }",
            "ID type 5-5 ID = string",
            "Move method 6-6 func (p *Point) Move(dx int) error",
            "New function 7-7 func New() *Point",
        ],
    ),
    "a.rs": (
        """\
pub const N: usize = 4;
pub struct Point<T> { x: T }
enum Kind { A, B }
pub trait Area { fn area(&self) -> f64; }
impl Area for Point<f64> { fn area(&self) -> f64 { 0.0 } }
type Result<T> = std::result::Result<T, Error>;
fn main() {}
""",
        [
            "N constant 1-1 pub const N: usize = 4;",
            "Point struct 2-2 pub struct Point<T>",
            "Kind enum 3-3 enum Kind",
            "Area trait 4-4 pub trait Area",
            "area method 4-4 fn area(&self) -> f64;",
            "area method 5-5 fn area(&self) -> f64",
            "Result type 6-6 type Result<T> = std::result::Result<T, Error>;",
            "main function 7-7 fn main()",
        ],
    ),
    "a.c": (
        """\
#define SIZE 10
struct node { int x; };
typedef unsigned int uint;
enum color { RED };
static char *name(int a) { return 0; }
int add(int a, int b);
""",
        [
            "SIZE constant 1-2 #define SIZE 10",
            "node struct 2-2 struct node",
            "uint type 3-3 typedef unsigned int uint;",
            "color enum 4-4 enum color",
            "name function 5-5 static char *name(int a)",
            "add function 6-6 int add(int a, int b);",
        ],
    ),
    "a.cpp": (
        """\
class Box { public: int area() const { return 1; } void open(); };
void Box::open() {}
using Id = int;
int main() {}
""",
        [
            "Box class 1-1 class Box",
            "area method 1-1 int area() const",
            "open method 1-1 void open();",
            "open method 2-2 void Box::open()",
            "Id type 3-3 using Id = int;",
            "main function 4-4 int main()",
        ],
    ),
    "A.java": (
        """\
public class A extends B {
    static final int MAX = 3;
    private int lower;
    public A(int x) {}
    int size() { return 1; }
}
interface Shape { int area(); }
enum Mode { ON }
record P(int x) {}
""",
        [
            "A class 1-6 public class A extends B",
            "MAX constant 2-2 static final int MAX = 3;",
            "A method 4-4 public A(int x)",
            "size method 5-5 int size()",
            "Shape interface 7-7 interface Shape",
            "area method 7-7 int area();",
            "Mode enum 8-8 enum Mode",
            "P class 9-9 record P(int x)",
        ],
    ),
    "a.cs": (
        """\
namespace Shop
{
    [Serializable]
    public class Box<T> : Base, IShape where T : new()
    {
        public const int MAX = 3;
        private readonly int lower = 2;
        public string Name { get; set; }

        public Box(int lid)
        {
        }

        public async Task<int> AreaAsync(int x) => await Get(x);
    }

    public interface IShape { void Draw(); }
    public record Point(int X, int Y);
    struct Pair { }
    enum Mode { On, Off }
    delegate void Handler(object sender);
}
""",
        [
            "Box class 3-15 [Serializable] public class Box<T> : Base, IShape where T : new()",
            "MAX constant 6-6 public const int MAX = 3;",
            "Name method 8-8 public string Name { get; set; }",
            "Box method 10-12 public Box(int lid)",
            "AreaAsync method 14-14 public async Task<int> AreaAsync(int x)",
            "IShape interface 17-17 public interface IShape",
            "Draw method 17-17 void Draw();",
            "Point class 18-18 public record Point(int X, int Y);",
            "Pair struct 19-19 struct Pair",
            "Mode enum 20-20 enum Mode",
            "Handler type 21-21 delegate void Handler(object sender);",
        ],
    ),
    "a.php": (
        """\
<?php
namespace App;

const LIMIT = 10;

abstract class Box extends Base implements Shape
{
    public const SIZE = 2;

    public function open(int $lid): bool
    {
        return true;
    }

    abstract protected function close();
}

interface Shape {}
trait Draws {}
enum Mode: string { case On = 'on'; }

function helper(array $items = []): ?string
{
    return null;
}
""",
        [
            "LIMIT constant 4-4 const LIMIT = 10;",
            "Box class 6-16 abstract class Box extends Base implements Shape",
            "SIZE constant 8-8 public const SIZE = 2;",
            "open method 10-13 public function open(int $lid): bool",
            "close method 15-15 abstract protected function close();",
            "Shape interface 18-18 interface Shape",
            "Draws trait 19-19 trait Draws",
            "Mode enum 20-20 enum Mode: string",
            "helper function 22-25 function helper(array $items = []): ?string",
        ],
    ),
    "a.rb": (
        """\
LIMIT = 10
lower = 3

module Shop
  class Box < Base
    SIZE = 2

    def open(lid, at: nil)
      @lid = lid
    end

    def self.empty?
      true
    end
  end
end

def helper(a) = a + 1
""",
        [
            "LIMIT constant 1-1 LIMIT = 10",
            "Shop class 4-16 module Shop",
            "Box class 5-15 class Box < Base",
            "SIZE constant 6-6 SIZE = 2",
            "open method 8-10 def open(lid, at: nil)",
            "empty? method 12-14 def self.empty?",
            "helper function 18-18 def helper(a)",
        ],
    ),
    "a.swift": (
        """\
struct Box<T>: Shape {
    let lid: Int

    init(lid: Int) {
        self.lid = lid
    }

    func open(with key: Int) throws -> Bool {
        return true
    }
}

final class Store: Base {
}

protocol Shape {
    func area() -> Double
}

enum Mode { case on, off }

extension Store {
    static func shared() -> Store { Store() }
}

typealias Id = String

func helper(_ a: Int) -> Int { a }
""",
        [
            "Box struct 1-11 struct Box<T>: Shape",
            "init method 4-6 init(lid: Int)",
            "open method 8-10 func open(with key: Int) throws -> Bool",
            "Store class 13-14 final class Store: Base",
            "Shape interface 16-18 protocol Shape",
            "area method 17-17 func area() -> Double",
            "Mode enum 20-20 enum Mode",
            "shared method 23-23 static func shared() -> Store",
            "Id type 26-26 typealias Id = String",
            "helper function 28-28 func helper(_ a: Int) -> Int",
        ],
    ),
    "a.lua": (
        """\
LIMIT = 10
local lower = 3
local M = {}

local function helper(a, b)
  return a
end

function M.open(lid)
  local function inner() end
end

function M:close()
end

M.size = function(self)
  return 1
end

return M
""",
        [
            "LIMIT constant 1-1 LIMIT = 10",
            "helper function 5-7 local function helper(a, b)",
            "open function 9-11 function M.open(lid)",
            "close method 13-14 function M:close()",
            "size function 16-18 M.size = function(self)",
        ],
    ),
}


@pytest.mark.parametrize("path", SOURCES)
def test_what_is_found(path: str) -> None:
    source, expected = SOURCES[path]
    found = select(path, source.encode()).symbols
    shown = [f"{s.name} {s.kind} {s.first_line}-{s.last_line} {s.signature}" for s in found]
    assert shown == expected


def test_every_language_has_a_query() -> None:
    for language in parsed_languages():
        symbols._query(language)


def test_files_left_out_define_nothing() -> None:
    text = SOURCES["a.py"][0]
    assert select("a.py", f"# @generated\n{text}".encode()).symbols == ()
    assert select("a.txt", text.encode()).symbols == ()
    assert select("a.py", text.encode(), parse=False).symbols == ()


def test_bounds() -> None:
    many = "".join(f"def f{i}(): pass\n" for i in range(symbols.MAX_PER_FILE + 50))
    assert len(select("a.py", many.encode()).symbols) == symbols.MAX_PER_FILE
    (long,) = select("a.py", ("def f(" + "ä, \n" * 400 + "): pass\n").encode()).symbols
    assert len(long.signature) <= symbols.MAX_SIGNATURE_CHARS
