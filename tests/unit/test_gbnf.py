"""Which grammars are kept from llama.cpp: they would cost all time, all memory or the process."""

from __future__ import annotations

import pytest

from codespec.backends.llama import gbnf
from codespec.errors import InputError

JSON = r"""
root   ::= object
value  ::= object | array | string | number | ("true" | "false" | "null") ws
object ::= "{" ws ( string ":" ws value ("," ws string ":" ws value)* )? "}" ws
array  ::= "[" ws ( value ("," ws value)* )? "]" ws
string ::= "\"" ( [^"\\\x7F\x00-\x1F] | "\\" (["\\bfnrt] | "u" [0-9a-fA-F]{4}) )* "\"" ws # not "("
number ::= ("-"? ([0-9] | [1-9] [0-9]{0,15})) ("." [0-9]+)? ([eE] [-+]? [0-9] [1-9]{0,15})? ws
# Optional space: by convention, applied in this grammar after literal chars when allowed
ws ::= | " " | "\n" [ \t]{0,20}
"""
SQL = r"""
root ::= ws select (ws ("union" | "except") ws select)* ws ";"?
select ::= "select" ws columns ws "from" ws table where? (ws "limit" [0-9]+)?
columns ::= column (ws "," ws column)* | "*"
column ::= or (ws "as" ws name)?
table ::= name (ws name)? | "(" root ")" ws name | table2 ws "join" ws table
table2 ::= name | "(" root ")"
where ::= ws "where" ws or
or ::= and ws "or" ws or | and
and ::= not ws "and" ws and | not
not ::= "not" ws not | comparison
comparison ::= sum ws ("=" | "<>" | "<" | ">" | "like") ws sum | sum ws "in" ws "(" root ")" | sum
sum ::= product ws [-+] ws sum | product
product ::= unary ws [*/%] ws product | unary
unary ::= [-+] ws unary | primary
primary ::= name ("." name)? | [0-9]+ ("." [0-9]+)? | "'" [^']* "'" | call | "(" ws or ws ")"
call ::= name "(" ws (or (ws "," ws or)*)? ws ")"
name ::= [a-z_] [a-z0-9_]{0,62} | "\"" [^"]+ "\""
ws ::= [ \t\n]*
"""
STEPS = "".join(f"a{i} ::= a{i + 1} | a{i + 1}\n" for i in range(40))
LATER = STEPS[STEPS.index("a30 ::") :]
UNSEEN = "".join(f'a{i} ::= n a{i + 1} "x" | n a{i + 1} "y"\n' for i in range(40))
EMPTY = 'n ::= e\ne ::= "y" | ""\n'
"""llama.cpp does not see that n may be empty."""


@pytest.mark.parametrize(
    "grammar",
    [
        JSON,
        SQL,
        "root ::= " + " | ".join(f'"word{i}"' for i in range(5000)),
        "root ::= " + " ".join(f"s{i}" for i in range(200))
        + "".join(f'\ns{i} ::= "\\"" char{{1,100}} "\\""' for i in range(200))
        + '\nchar ::= [^"] | "\\\\" ["ntr]',
        "root ::= " + "a? " * 500 + '\na ::= "a"',
        'root ::= ("a"*)* ("b" ws)+',
        f'root ::= items\nitems ::= n items | [a]\n{EMPTY}',
        f'root ::= (n root)? | "x"\n{EMPTY}',
        'root ::= "x"\nroot ::= "a" root | "a"',
        'root ::= "a"{0} "b"{3,} "c"{0,3000} "d"{2}',
        'root ::= <think> !</think>* </think> .*',
        'root ::= "x" ' + "(" * 40 + '"a"' + "|)" * 40,
        "not a grammar",
        "root ::= )",
        "root ::= nowhere root",
        "root ::= a{1," + " " * 50_000,
        "root ::= a{" + "1" * 50_000 + "}",
    ],
)  # fmt: skip
def test_ordinary_grammars_and_wrong_ones_are_left_to_llama_cpp(grammar: str) -> None:
    gbnf.check(grammar)


@pytest.mark.parametrize(
    ("grammar", "words"),
    [
        (f'root ::= a0\n{STEPS}a40 ::= "z"', "rule a2[0-9] can begin"),
        (f'root ::= "x" a0\n{UNSEEN}{EMPTY}a40 ::= "z"', "rule a2[0-9] can begin"),
        ('root ::= "x" ' + "(" * 40 + '"a"?' + "){0,9}" * 40, "rule root can begin"),
        (f'root ::= n root "z" | "x"\n{EMPTY}', "root .*begin with itself"),
        (f'root ::= "x" list\nlist ::= (n list)*\n{EMPTY}', "list .*begin with itself"),
        (f'root ::= a\na ::= n b "z"\nb ::= n a | "x"\n{EMPTY}', "a .*begin with itself"),
        ('root ::= "a"{5,3}', "at least 5 .* at most 3"),
        ('root ::= ("a"{5,# }\n0})', "at least 5 .* at most 0"),
        ('root ::= "' + "a" * 30_000 + '"{1000}', "stands for"),
        ("root ::= " + '"a"{0,1999}' * 2000, "stands for"),
        ('root ::= ("a"|""){0,1999}', "stands for"),
        ("root ::= " + '"a"? ' * 600, "stands for"),
        (f'root ::= "x" {"(a26)" * 5000}\n{STEPS}a40 ::= "z"', "a2[0-9] can begin"),
        (f'root ::= "x" {"(a30)" * 5000}\n{LATER}a40 ::= "z"', "stands for"),
    ],
)  # fmt: skip
def test_what_llama_cpp_would_not_get_done_with_is_refused(grammar: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        gbnf.check(grammar)


@pytest.mark.parametrize(
    "grammar",
    [
        'root ::= "%s"',
        r'root ::= "\"%s" (([a]))',
        r"root ::= [\]%s] (([a]))",
        "root ::= <%s>",
        'root ::= "a" # %s',
        " ".join(['root ::= ("a")'] * 300) + "%.0s",
    ],
)
def test_brackets_that_are_not_nested_are_no_depth(grammar: str) -> None:
    gbnf.check(grammar % ("(" * 300))


@pytest.mark.parametrize(
    "grammar",
    [
        "root ::= %s",
        'root ::= "(" %s',
        r'root ::= [\]"] %s',
        'root ::= "\\\\" %s',
        "# a\nroot ::= %s",
    ],
)
def test_nested_brackets_are_depth(grammar: str) -> None:
    gbnf.check(grammar % ("(" * 256))
    with pytest.raises(InputError, match="deep"):
        gbnf.check(grammar % ("(" * 257))
