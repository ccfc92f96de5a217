"""Random small templates over a fixed set of variables, for the comparison of our interpreter with jinja2."""

VARIABLES = {
    "n": 3, "zero": 0, "neg": -7, "big": 123456789, "f": 2.5, "tiny": 1e-7, "huge": 1.5e22, "t": True, "no": False, "nil": None,
    "s": "Hello World", "e": "", "u": "naïve Straße ǆ ΑΣ 漢字 😀", "pad": "  two  words \n", "lines": "one\ntwo\r\nthree\n\n",
    "html": "<a href=\"x\">it's & co</a>",
    "num": "42", "hexa": "0x1F", "real": "3.50", "csv": "a,b,,c", "xs": [3, 1, 2], "ys": ["b", "A", "c", "a"],
    "mixed": [1, "x", None, 2.0, True, [4], {"k": 5}],
    "none_list": [], "nested": [[1, 2], [3, 4], [5]], "pairs": [["a", 1], ["b", 2]],
    "d": {"b": 2, "a": 1, "C": 3}, "empty": {}, "deep": {"x": {"y": [10, {"z": "end"}]}, "items": "shadow", "get": 7},
    "people": [{"name": "Ann", "age": 31, "city": "Rome"}, {"name": "bob", "age": 25, "city": "oslo"},
               {"name": "Cid", "age": 31, "city": "Oslo"}],
    "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"},
                 {"role": "assistant", "content": "Hello!", "tool_calls": []}],
}

STRINGS = ["s", "e", "u", "pad", "lines", "html", "num", "hexa", "real", "csv"]
LISTS = ["xs", "ys", "mixed", "none_list", "nested", "pairs", "people", "messages"]
DICTS = ["d", "empty", "deep"]
NUMBERS = ["n", "zero", "neg", "big", "f", "tiny", "huge"]
NAMES = STRINGS + LISTS + DICTS + NUMBERS + ["t", "no", "nil", "missing", "x", "y", "i"]

LITERALS = ["0", "1", "2", "-1", "10", "7", "1.5", "0.1", "1e3", "1e-5", "2.0", "100000.0", "'a'", "'abc'", "\"it's\"", "'x\\ny'",
            "'%s'", "'{}'", "'é'", "''", "' '", "','", "true", "false", "none", "[]", "{}", "()", "[1, 2, 3]", "['x', 'y']",
            "(1, 2)", "(1,)", "{'a': 1, 'b': [2]}", "{1: 'one', none: 2}", "[[1, 'a'], [2, 'b']]", "range(5)", "range(2, 9, 3)",
            "range(0)", "[true, false, none]", "'0b11'", "12345678901", "'\\u00e9\\t'"]

ATTRIBUTES = ["a", "b", "x", "y", "name", "role", "content", "items", "keys", "values", "get", "upper", "0", "1", "length",
              "count", "pop", "append", "update", "index", "real", "tool_calls", "copy", "__class__", "_private"]

FILTERS = ["upper", "lower", "title", "capitalize", "trim", "length", "count", "first", "last", "list", "string", "int", "float",
           "abs", "round", "sum", "min", "max", "sort", "reverse", "unique", "items", "dictsort", "tojson", "safe", "escape", "e",
           "default", "d", "join", "wordcount", "indent", "forceescape"]
FILTERS_WITH = [
    "default({})", "default({}, true)", "d({})", "join({})", "join(', ')", "join('-', attribute='name')", "replace({}, {})",
    "replace({}, {}, 1)", "replace('l', 'L')", "replace('', '-')", "round(2)", "round(1, 'floor')", "round(0, 'ceil')",
    "round(-1)", "int({})", "int(0, 16)", "int(base=2)", "float({})", "indent(2)", "indent(2, true)", "indent('> ', true, true)",
    "indent(width=3, blank=true)", "batch(2)|list", "batch(2, {})|list", "slice(2)|list", "slice(3, {})|list",
    "sort(reverse=true)", "sort(attribute='age')", "sort(attribute='city,name')", "sort(true, true)", "sort(case_sensitive=true)",
    "dictsort(true)", "dictsort(false, 'value')", "dictsort(by='value', reverse=true)", "map('upper')|list",
    "map(attribute='name')|list", "map(attribute='nope', default='?')|list", "map('default', {})|list", "map('length')|list",
    "map('string')|join('+')", "map('replace', 'a', 'b')|list", "map(attribute=0)|list", "map(attribute='1')|list", "select|list",
    "select('odd')|list", "select('string')|list", "select('gt', 1)|list", "reject('none')|list", "reject|list",
    "selectattr('age', 'gt', 30)|list", "selectattr('name')|map(attribute='name')|list",
    "selectattr('role', 'equalto', 'user')|list", "rejectattr('city', 'eq', 'Rome')|list", "rejectattr('nope', 'defined')|list",
    "unique(true)|list", "unique(attribute='age')|list", "unique|list", "groupby('age')", "groupby('city', case_sensitive=true)",
    "groupby('nope', default='none')", "min(attribute='age')", "max(attribute='name')", "sum(attribute='age')", "sum(start={})",
    "sum('age', 5)", "tojson(indent=2)", "tojson(sort_keys=true)", "tojson(ensure_ascii=true)",
    "tojson(indent=1, separators=(',', ':'))", "tojson(separators=(',', ':'))", "trim({})", "trim('Hd')", "truncate(5)",
    "truncate(5, true)", "truncate(8, false, '..', 0)", "center(15)", "format({})", "format({}, {})", "attr('real')",
    "attr({})", "reverse|list", "items|list", "list|length", "list|last", "first|string", "title|replace(' ', '')"]

TESTS = ["defined", "undefined", "none", "string", "number", "integer", "float", "boolean", "true", "false", "mapping",
         "iterable", "sequence", "callable", "odd", "even", "lower", "upper", "escaped", "divisibleby 2", "divisibleby(3)",
         "eq 1", "equalto({})", "ne({})", "lt 2", "gt({})", "ge(1)", "le({})", "in({})", "in [1, 2]", "sameas none",
         "sameas true", "filter", "test", "== 1", "greaterthan 2", "lessthan({})"]

METHODS = ["upper()", "lower()", "title()", "capitalize()", "swapcase()", "strip()", "lstrip()", "rstrip()", "strip({})",
           "strip('Hd ')", "split()", "split({})", "split(',')", "split(' ', 1)", "split(maxsplit=1)", "rsplit(' ', 1)",
           "rsplit()", "rsplit(none, 1)", "splitlines()", "splitlines(true)", "startswith({})", "startswith('He')",
           "endswith(('d', 'x'))", "endswith({})", "replace({}, {})", "replace('l', '1', 2)", "find({})", "find('o')",
           "rfind('o')", "find('o', 5)", "index('o')", "rindex({})", "count({})", "count('l')", "count('l', 3, -1)", "join({})",
           "join(['a', 'b'])", "isdigit()", "isalpha()", "isspace()", "isalnum()", "isupper()", "islower()", "istitle()",
           "isnumeric()", "isdecimal()", "isidentifier()", "isascii()", "isprintable()", "zfill(8)", "center(15, '*')",
           "ljust(14)", "rjust(14, '.')", "removeprefix('He')", "removesuffix({})", "partition(' ')", "rpartition({})",
           "expandtabs(4)", "casefold()", "format({})", "format({}, {})", "get({})", "get('a')", "get('nope', {})", "items()",
           "keys()", "values()", "items()|list", "keys()|list", "values()|list", "count(1)", "index(1)", "copy()", "append(1)",
           "pop()", "update({})", "clear()", "setdefault('a')", "nope()", "bit_length"]

FORMATS = ["'%s'", "'%d'", "'%5.2f'", "'%-6s|'", "'%06d'", "'%x'", "'%r'", "'%s and %s'", "'%(a)s'", "'%%'", "'%e'", "'%g'",
           "'%+d'", "'%c'", "'%10s'", "'%.3s'", "'%o'", "'%#x'", "'% d'", "'%i'", "'%5s|%-5s|'"]
BRACES = ["'{}'", "'{0}'", "'{:>8}'", "'{:<8}|'", "'{:^9}'", "'{:05d}'", "'{:.2f}'", "'{:,}'", "'{!r}'", "'{0[0]}'", "'{:x}'",
          "'{:#b}'", "'{:e}'", "'{:%}'", "'{:+}'", "'{:*^12}'", "'{:g}'", "'{:.3}'", "'{:_}'", "'{:010.3f}'", "'{{}}'", "'{:c}'",
          "'{:>{}}'", "'{0.real}'", "'{:012,}'", "'{:n}'"]


TEXT_FILTERS = [f for f in FILTERS + FILTERS_WITH
                if f.split("(")[0] in ("upper", "lower", "title", "capitalize", "trim", "replace", "indent", "string", "truncate",
                                       "center", "escape", "default", "reverse", "forceescape", "e", "safe", "tojson", "d")]
TEXT_METHODS = [m for m in METHODS if m.split("(")[0] in
                ("upper", "lower", "title", "capitalize", "swapcase", "strip", "lstrip", "rstrip", "replace", "zfill", "center",
                 "ljust", "rjust", "removeprefix", "removesuffix", "expandtabs", "casefold", "format", "join")]
NUMBER_FILTERS = ["int", "float", "abs", "round", "round(2)", "round(1, 'floor')", "round(0, 'ceil')", "round(-1)", "int|abs",
                  "float|round(3)", "string|int", "default(5)"]
LIST_FILTERS = [f for f in FILTERS + FILTERS_WITH if f.endswith("list") or
                f.split("(")[0] in ("sort", "reverse", "unique", "groupby", "default", "list")]


class Generator:
    def __init__(self, random):
        self.random = random

    def pick(self, values):
        return self.random.choice(values)

    def fill(self, pattern, depth):
        while "{}" in pattern:
            pattern = pattern.replace("{}", self.expression(depth), 1)
        return pattern

    def atom(self):
        return self.pick(NAMES) if self.random.random() < 0.6 else self.pick(LITERALS)

    def text(self, depth):
        """An expression that is probably a string."""
        kind = self.random.random()
        if depth <= 0 or kind < 0.3:
            return (self.pick(STRINGS) if self.random.random() < 0.7
                    else self.pick(["'a'", "'abc def'", "\"it's\"", "'x\\ny'", "'é'", "''"]))
        if kind < 0.5:
            return f"{self.text(depth - 1)}|{self.fill(self.pick(TEXT_FILTERS), 0)}"
        if kind < 0.7:
            return f"{self.text(0)}.{self.fill(self.pick(TEXT_METHODS), 0)}"
        if kind < 0.8:
            return f"({self.text(depth - 1)} {self.pick(['~', '+'])} {self.pick([self.text(0), self.number(0) + '|string'])})"
        if kind < 0.9:
            return (f"({self.pick(FORMATS)} % "
                    f"{self.pick([self.text(0), self.number(0), '(' + self.number(0) + ', ' + self.text(0) + ')', 'd'])})")
        return f"{self.pick(BRACES)}.format({self.pick([self.text(0), self.number(0)])}, {self.number(0)})"

    def number(self, depth):
        kind = self.random.random()
        if depth <= 0 or kind < 0.4:
            return self.pick(NUMBERS + ["1", "2.5", "10", "0.1", "7", "1e3", "3"])
        if kind < 0.7:
            return f"({self.number(depth - 1)} {self.pick(['+', '-', '*', '/', '//', '%'])} {self.number(depth - 1)})"
        if kind < 0.8:
            return f"({self.number(depth - 1)})|{self.pick(NUMBER_FILTERS)}"
        return f"{self.sequence(0)}|length"

    def sequence(self, depth):
        kind = self.random.random()
        if depth <= 0 or kind < 0.4:
            return self.pick(LISTS + ["range(4)", "[1, 2, 3]", "s.split()", "('b', 'a')", "d.items()|list", "csv.split(',')"])
        if kind < 0.85:
            return f"{self.sequence(depth - 1)}|{self.fill(self.pick(LIST_FILTERS), 0)}"
        part = lambda: self.pick(["", "", "0", "1", "-1", "2", "-3", "10", "n", "none"])
        return f"{self.pick(LISTS + STRINGS)}[{part()}:{part()}{self.pick(['', ':', ':2', ':-1', ':-2', ':n'])}]"

    def typed(self, depth):
        return self.pick([self.text, self.text, self.number, self.sequence, self.sequence])(depth)

    def primary(self, depth):
        kind = self.random.random()
        if depth <= 0 or kind < 0.35:
            return self.atom()
        if kind < 0.65:
            return self.typed(depth)
        base = self.primary(depth - 1)
        if base[0] in "-0123456789" and "." not in base:
            base = f"({base})"
        if kind < 0.70:
            return f"{base}.{self.pick(ATTRIBUTES)}"
        if kind < 0.77:
            return f"{base}[{self.pick([self.expression(0), '0', '-1', '1', repr(self.pick(ATTRIBUTES))])}]"
        if kind < 0.88:
            return f"{base}.{self.fill(self.pick(METHODS), 0)}"
        if kind < 0.93:
            return f"({self.expression(depth - 1)})"
        return self.pick([f"[{self.expression(depth - 1)}, {self.expression(0)}]", f"{{'k': {self.expression(depth - 1)}}}",
                          f"({self.expression(0)}, {self.expression(0)})"])

    def filtered(self, depth):
        value = self.primary(depth)
        while self.random.random() < 0.2:
            value += "|" + (self.pick(FILTERS) if self.random.random() < 0.5 else self.fill(self.pick(FILTERS_WITH), 0))
        return value

    def expression(self, depth):
        kind = self.random.random()
        if depth <= 0 or kind < 0.4:
            return self.filtered(depth)
        a, b = self.expression(depth - 1), self.expression(depth - 1)
        if kind < 0.5:
            return f"{a} {self.pick(['+', '-', '*', '/', '//', '%', '~', '~', '+'])} {b}"
        if kind < 0.70:
            return f"{a} {self.pick(['==', '!=', '<', '<=', '>', '>=', 'in', 'not in'])} {b}"
        if kind < 0.78:
            return f"{a} {self.pick(['and', 'or'])} {b}"
        if kind < 0.85:
            return f"{self.filtered(1)} is {self.pick(['', 'not '])}{self.fill(self.pick(TESTS), 0)}"
        if kind < 0.88:
            return f"{self.pick(['not ', '-', '+'])}{a}"
        if kind < 0.92:
            return f"({a} if {b} else {self.expression(0)})" if self.random.random() < 0.8 else f"({a} if {b})"
        if kind < 0.95:
            return f"{self.pick(FORMATS)} % {self.pick([a, f'({a}, {b})', 'd'])}"
        if kind < 0.98:
            return f"{self.pick(BRACES)}.format({a}, {b})"
        return (f"{a} < {b} <= {self.expression(0)}"
                if self.random.random() < 0.7 else f"2 ** {self.pick(['3', '-1', '0.5', 'n'])}")

    def sign(self):
        return self.pick(["", "", "", "", "-", "+"])

    def end(self):
        return self.pick(["", "", "", "-"])

    def tag(self, inside):
        return "{%" + self.sign() + " " + inside + " " + self.pick(["", "", "", "-", "+"]) + "%}"

    def data(self):
        return self.pick(["", "", " ", "\n", "text", " a b\n", "\n  ", "  \n\n", "<|im_start|>", "{ }", "%}", "ü\n", "{# note #}",
                          "{#- note -#}\n", "\t", "x\n  {#+ c +#}\n", "{% raw %}{{ no }}{% endraw %}\n",
                          "\n  {%- raw -%} r {%- endraw -%} z"])

    def output(self, depth=2):
        shown = self.expression(self.random.randint(0, depth)) if self.random.random() < 0.5 else self.typed(depth)
        return "{{" + self.pick(["", "", "-"]) + " " + shown + " " + self.end() + "}}"

    def body(self, depth):
        return "".join(self.data() + self.statement(depth) for _ in range(self.random.choice([1, 1, 2, 3]))) + self.data()

    def iterable(self):
        return self.pick(LISTS + DICTS +
                         ["s", "range(3)", "d.items()", "d|dictsort", "xs|sort", "messages[::-1]", "ys|map('upper')", "e",
                          "missing", "[1, 2, 3]", "people|selectattr('age', 'gt', 26)", "pairs", "nested", self.expression(1)])

    def statement(self, depth):
        kind = self.random.random()
        if depth <= 0 or kind < 0.45:
            return self.output(2)
        inner = depth - 1
        if kind < 0.6:
            loop = self.pick(["", "{{ loop.index }}", "{{ loop.last }}{{ loop.length }}", "{{ loop.revindex0 }}",
                              "{{ loop.cycle('o', 'e') }}", "{{ loop.previtem }}", "{{ loop.nextitem }}", "{{ loop.first }}",
                              "{{ loop.changed(x) }}", "{{ loop.depth }}{{ loop.index0 }}"])
            target = self.pick(["x", "x", "x", "x", "x, y", "i"])
            condition = self.pick(["", "", "", " if x", " if x is string", " if x != 2", " if loop.first", " if y"])
            jump = self.pick(["", "", "", self.tag("if x == 1") + self.tag(self.pick(["break", "continue"])) + self.tag("endif")])
            otherwise = self.pick(["", "", self.tag("else") + self.body(inner)])
            return (self.tag(f"for {target} in {self.iterable()}{condition}") + loop + jump + self.body(inner) + otherwise +
                    self.tag("endfor"))
        if kind < 0.72:
            middle = self.pick(["", "", self.tag(f"elif {self.expression(1)}") + self.body(inner)])
            otherwise = self.pick(["", self.tag("else") + self.body(inner)])
            return self.tag(f"if {self.expression(2)}") + self.body(inner) + middle + otherwise + self.tag("endif")
        if kind < 0.82:
            name = self.pick(["x", "y", "i", "n", "s"])
            return self.tag(self.pick([f"set {name} = {self.expression(2)}", f"set {name} = {self.expression(1)}",
                                       f"set x, y = {self.pick(['1, 2', 'pairs', 'xs', '(3, 4)', self.expression(1)])}"]))
        if kind < 0.86:
            name = self.pick(["x", "y"])
            return self.tag(f"set {name}{self.pick(['', ' | upper', ' | trim'])}") + self.body(inner) + self.tag("endset")
        if kind < 0.90:
            return (self.tag(f"set ns = namespace(v={self.expression(1)}, w=0)") + self.tag(f"for x in {self.iterable()}") +
                    self.tag(f"set ns.w = {self.pick(['ns.w + 1', 'x', 'loop.index'])}") + self.tag("endfor") +
                    "{{ ns.v }}{{ ns.w }}{{ ns.nope }}")
        if kind < 0.94:
            call = self.pick(["m(1)", "m()", "m(1, b=2)", "m(1, 2, 3)", "m(b=x, a=n)", "m(c=1)", "m(*xs)", "m(**d)",
                              "m('q') ~ m(y)"])
            extra = self.pick(["", "{{ varargs }}", "{{ kwargs }}", "{{ caller() }}"])
            return (self.tag(f"macro m(a, b={self.expression(0)})") + "{{ a }}-{{ b }}" + extra + self.pick(["", self.body(0)]) +
                    self.tag("endmacro") + "{{ " + call + " }}")
        if kind < 0.96:
            return (self.tag("macro w(a)") + "[{{ a }}{{ caller(a) }}]" + self.tag("endmacro") + self.tag(
                f"call{self.pick(['', '(x)', '(x, y=1)'])} w({self.expression(0)})") + self.body(inner) + self.tag("endcall"))
        if kind < 0.975:
            return (self.tag(f"filter {self.pick(['upper', 'trim', 'replace(1, 2)', 'upper|trim', 'indent(2)'])}") +
                    self.body(inner) + self.tag("endfilter"))
        if kind < 0.99:
            return (self.tag(f"with {self.pick(['x = 1', 'x = n, y = x', 'n = n * 2', f'x = {self.expression(1)}'])}") +
                    self.body(inner) + self.tag("endwith"))
        return self.tag("generation") + self.body(inner) + self.tag("endgeneration")

    def template(self):
        return self.body(self.random.choice([0, 1, 1, 2, 3]))
