"""Small templates that cover the language, one idea each; the variables are those of random_templates.VARIABLES."""

PRINTED = """
1 + 2 * 3 - 4 / 2
7 // 2 ~ ' ' ~ -7 // 2 ~ ' ' ~ 7 % -3 ~ ' ' ~ -7 % 3 ~ ' ' ~ 7.5 // 2 ~ ' ' ~ -7.5 % 2
2 ** 3 ** 2
-2 ** 2
2 ** -1
1 / 3
10 / 5
1 / 0
1 % 0
'a' + 1
'a' * 3 ~ 2 * 'b' ~ [1] * 2
[1] + [2] + [3]
(1, 2) + (3,)
[1] + (2,)
1 < 2 < 3
1 < 3 < 2
3 > 2 >= 2 != 1
1 == 1.0 == true
'a' < 'b'
'a' < 1
[1, 2] < [1, 3]
none < 1
nil == none
1 in xs
'ell' in s
1 in s
'a' in d
'z' not in d
nil in missing
missing in xs
not 1 in xs
not not s
s and n
e or 'fallback'
zero or e or nil or 'last'
n and missing
1 if true
1 if false
(1 if false) is defined
'a' if n > 2 else 'b' if n > 1 else 'c'
true and not false or false
1 ~ 'a' ~ none ~ true ~ 2.0 ~ [1] ~ missing
'a' 'b' "c"
'tab\\t nl\\n q\\' dq\\" \\x41 \\u00e9 \\U0001F600 \\101 \\q'
'\\N{DASH}'
'\\ud800'
0x1f ~ ' ' ~ 0o17 ~ ' ' ~ 0b101 ~ ' ' ~ 1_000
1.5e3 ~ ' ' ~ 1e-7 ~ ' ' ~ 1E5 ~ ' ' ~ 123456789012345680.0 ~ ' ' ~ 1e16 ~ ' ' ~ 0.0001 ~ ' ' ~ 0.00001
0.1 + 0.2
1e308 * 10
-0.0
3.0 ~ 100.0 ~ 1e22
true
True ~ False ~ None ~ none
[]
[1, 'a', "it's", 'q"q', 'both\\'"', none, true, 1.0, {}, (), (1,)]
{'a': 1, 2: 'b', none: [], (1, 2): 3.5}
{1: 'a', 1.0: 'b', true: 'c'}
{[1]: 2}
('a', 'b')
(1)
()
'\\x00\\x1f\\x7f\\u200b\\u00ad\\u2028'|list
['é', '漢', '\\n', '\\\\', '\\x07', '\\u200b', '😀']
missing
missing.x
missing['x']
missing()
missing + 1
missing ~ 'x'
missing|upper
missing|default('d')
missing|d
e|default('x')
e|default('x', true)
nil|default('x')
nil|default('x', boolean=true)
none.x
none.x.y
n.x
s.x
d.x
d.a
d['a']
d.items
d.a.b.c
deep.items
deep['items']
deep.items()
deep.get
deep['get']
deep.x.y.1.z
deep.x.y[1]['z']
deep.x['y'][-1].z
xs[0] ~ xs[-1] ~ xs[5] ~ 'x'
xs.0
xs['0']
xs[1.0]
xs[true]
xs[nil]
s[0] ~ s[-1] ~ s[100] ~ 'x'
u[3] ~ u[-1] ~ u[2]
s[1:4] ~ '|' ~ s[:-3] ~ '|' ~ s[::-1] ~ '|' ~ s[-3:] ~ '|' ~ s[::3] ~ '|' ~ s[10:2] ~ '|' ~ s[8:2:-2]
u[1:4] ~ '|' ~ u[::-1] ~ '|' ~ u[-3:]
xs[1:] ~ xs[:1] ~ xs[::-1] ~ xs[5:] ~ xs[-2:]
range(10)[2:8:3]
range(10)[-1]
xs[::0]
xs[none:none]
d[1:2]
n[1:2]
xs['a':]
messages[0].role
messages[0]['role']
messages[-1].content
messages[1:][0].content
messages|map(attribute='role')|join(',')
people|map(attribute='nope')|list
people|map(attribute='name.0')|join
people|sum(attribute='age')
people|sort(attribute='age')|map(attribute='name')|list
people|sort(attribute='age', reverse=true)|map(attribute='name')|list
people|sort(attribute='city,age')|map(attribute='name')|list
people|sort
people|groupby('city')
people|groupby('age')|list|length
(people|groupby('city'))[0].grouper
(people|groupby('city'))[0].list|length
people|groupby('age')|map(attribute='grouper')|list
(people|groupby('city'))[0][0]
people|selectattr('age', '>', 30)|map(attribute='name')|list
people|selectattr('age', 'eq', 25)|list
people|rejectattr('name', 'in', ['Ann'])|map(attribute='name')|list
people|selectattr('nope')|list
people|selectattr('age', 'nosuch')|list
people|selectattr|list
people|max(attribute='age')
people|min(attribute='name')|tojson
xs|sort ~ xs|sort(reverse=true) ~ xs|max ~ xs|min ~ xs|sum ~ xs|first ~ xs|last
ys|sort ~ ys|sort(case_sensitive=true) ~ ys|max ~ ys|min
ys|unique|list
['a', 'A', 'b']|unique|list
['a', 'A', 'b']|unique(case_sensitive=true)|list
[1, 1.0, true, 2]|unique|list
[[1]]|unique|list
mixed|sort
[]|first
[]|last
[]|max
[]|min is defined
[]|sum
[]|first is defined
d|first ~ d|last ~ d|list ~ d|length
d|dictsort
d|dictsort(true)
d|dictsort(false, 'value')
d|dictsort(by='value', reverse=true)
d|dictsort(by='x')
d|items|list
xs|items|list
missing|items|list
d.items()
d.keys() ~ d.values()
d.items()|list ~ d.keys()|list ~ d.values()|list
d.items()[0]
d.keys()|first
d|tojson
mixed|tojson
deep|tojson(indent=2)
deep|tojson(indent=0)
deep|tojson(indent='\\t')
d|tojson(sort_keys=true)
d|tojson(separators=(',', ':'))
mixed|tojson(indent=1, separators=(',', ': '))
u|tojson
u|tojson(ensure_ascii=true)
'</script>&\\'"\\\\/\\b\\f\\n\\r\\t\\x01\\x7f'|tojson
'\\x7f\\x80\\uffff'|tojson(true)
{1: 2, none: 3, true: 4, 1.5: 5}|tojson
{(1, 2): 3}|tojson
missing|tojson
[missing]|tojson
range(3)|tojson
(1, 'a')|tojson
[1e100, 1.0, -0.0, 1e16, 0.1]|tojson
[]|tojson(indent=4) ~ {}|tojson(indent=4) ~ [[], {}]|tojson(indent=4)
xs|map('string')|tojson
[1, 2]|tojson|length
xs|join ~ xs|join(', ') ~ xs|join(1)
people|join(';', attribute='name')
d|join(',')
n|join
s|upper ~ s|lower ~ 'hELLO wORLD'|capitalize
u|upper ~ '|' ~ u|lower ~ '|' ~ u|capitalize
'ß ﬁ ŉ ΐ'|upper ~ '|' ~ 'ΑΣ ΑΣΑ Σ'|lower ~ '|' ~ 'İ'|lower|length
"they're bill's friends from the UK"|title
"they're bill's".title() ~ 'ﬁne ǆ'.title() ~ 'x1y'.title()
'foo-bar (baz) [qux] {a} <b> c_d'|title
n|upper ~ nil|upper ~ xs|upper
pad|trim ~ '|' ~ 'xxaxx'|trim('x') ~ '|' ~ ' a '|trim(none) ~ '|'
'\\u3000a\\u00a0\\x1c'|trim|length
s|replace('l', 'L') ~ s|replace('l', 'L', 1) ~ s|replace('', '-') ~ n|replace(3, 4) ~ s|replace('o', '', count=1)
s|replace('l')
s|length ~ u|length ~ xs|count ~ d|length ~ range(7)|length ~ missing|length
n|length
nil|length
s|reverse ~ xs|reverse|list ~ d|reverse|list ~ u|reverse
n|reverse
xs|list ~ s|list ~ d|list ~ range(3)|list
n|list
s|first ~ s|last ~ range(5)|last
xs|map('upper')|last
xs|string ~ n|string ~ nil|string ~ f|string
'42'|int ~ ' 42 '|int ~ '4_2'|int ~ '0x1F'|int ~ '0x1F'|int(base=16) ~ 'ff'|int(0, 16) ~ 'x'|int(-1) ~ '3.9'|int ~ 3.9|int ~ -3.9|int ~ nil|int ~ true|int ~ xs|int(7) ~ '1e3'|int ~ '0b11'|int(0, 2) ~ '0o17'|int(0, 0)
missing|int
'1e999'|int(5) ~ 'nan'|int(6)
'3.5'|float ~ ' 1e3 '|float ~ 'x'|float ~ 'x'|float(2.5) ~ 'inf'|float ~ '-Infinity'|float ~ 'nan'|float ~ 3|float ~ '1_0.5'|float
nil|float(1)
s|float ~ num|float
'inf'|float|int
2.5|round ~ ' ' ~ 3.5|round ~ ' ' ~ 2.675|round(2) ~ ' ' ~ 42.55|round(1) ~ ' ' ~ 42.55|round(1, 'floor') ~ ' ' ~ 42.1|round(0, 'ceil') ~ ' ' ~ 1234|round(-2) ~ ' ' ~ 1250|round(-2) ~ ' ' ~ 1350.0|round(-2) ~ ' ' ~ 7|round ~ ' ' ~ 7|round(1, 'ceil') ~ ' ' ~ -2.5|round ~ ' ' ~ 0.5|round|int
2.5|round(1, 'sideways')
'x'|round
-5|abs ~ 5.5|abs ~ true|abs
'x'|abs
xs|sum(start=10) ~ nested|sum(start=[])
ys|sum
xs|batch(2)|list ~ xs|batch(2, 'x')|list ~ []|batch(2)|list
xs|slice(2)|list ~ xs|slice(2, 'x')|list ~ xs|slice(5)|list
xs|slice(0)|list
xs|map('default', 1)|list ~ ['a', 'b']|map('upper')|list ~ [[1, 2], [3]]|map('length')|list ~ [[1, 2], [3]]|map('first')|join
xs|map|list
xs|map('nosuch')|list
xs|map(attribute='real')|list
nested|map(attribute=0)|list
people|map(attribute='zip', default='?')|list
people|map(attribute='zip', other='?')|list
xs|select('odd')|list ~ xs|reject('odd')|list ~ xs|select('gt', 1)|list ~ [0, 1, '', 'a', none]|select|list ~ [0, 1, '', 'a', none]|reject|list ~ xs|select('divisibleby', 3)|list ~ mixed|select('string')|list ~ xs|select('in', [1, 2])|list
n|select|list
zero|select|list
lines|indent ~ '|' ~ lines|indent(2, true) ~ '|' ~ lines|indent('> ', first=true, blank=true) ~ '|' ~ lines|indent(width=1)
n|indent
'one two  three-four don\\'t x_y'|wordcount
'foo bar baz qux'|truncate(9) ~ '|' ~ 'foo bar baz qux'|truncate(9, true) ~ '|' ~ 'foo bar baz qux'|truncate(11) ~ '|' ~ 'foo bar baz qux'|truncate(11, false, '...', 0) ~ '|' ~ 'foobarbazquxfoo'|truncate(5, false, '~')
'a'|center(7) ~ '|' ~ 'ab'|center(7) ~ '|' ~ 'abc'|center(2)
'%s, %s!'|format('a', 1) ~ '%(x)s'|format(x=2) ~ '%d%%'|format(5)
'%s'|format
'%s'|format(1, 2)
'%s'|format(1, x=2)
html|e ~ '|' ~ html|escape|length ~ '|' ~ '<'|e|e ~ '|' ~ '<'|forceescape|forceescape
('<'|safe) + '<'
'<' + ('>'|safe)
['<'|safe]
('<'|safe) ~ '<'
('<a>'|safe)|upper
('<'|safe) is escaped
('a'|safe) == 'a'
n|nosuchfilter
'%s' % 'a' ~ '%s %s' % (1, 'b') ~ '%5d|%-5d|%05d|%+d' % (1, 2, 3, 4) ~ '%.2f %e %g %G' % (1.005, 12345.678, 0.00001234, 1e20) ~ '%x %X %o %#x' % (255, 255, 8, 255) ~ '%r %s' % ('q', [1]) ~ '%c%c' % (65, 'b') ~ '%%' % () ~ '%(a)s' % d
'%d' % 'a'
'%s'% ()
'%s %s' % 1
'a' % 1
'%5.1f|' % 3.14159 ~ '%*d' % (5, 3) ~ '%.3s|' % 'abcdef' ~ '%i' % 3.9 ~ '%s' % none ~ '%s' % (missing,)
'%y' % 1
'%' % 1
'{} {}'.format(1, 'a') ~ '{1} {0}'.format(1, 2) ~ '{a}'.format(a=3) ~ '{0.real} {1[0]} {2[a]}'.format(1, xs, d) ~ '{{}}'.format() ~ '{!r:>5}'.format('a') ~ '{:{}}'.format('a', 4)
'{}'.format()
'{.real}'.format(1)
'{0.real} {}'.format(1, 2)
'{0[a]}'.format(d)
'{0} {}'.format(1, 2)
'{'.format()
'}'.format()
'{x}'.format(1)
'{:>6}|{:<6}|{:^6}|{:*^7}|{:06.2f}|{:+d}|{: d}|{:,}|{:_}|{:x}|{:#x}|{:b}|{:o}|{:e}|{:.3g}|{:%}|{:.1%}'.format('a', 'b', 'c', 'd', 3.14159, 5, 5, 1234567, 1234567, 255, 255, 5, 8, 12345.678, 12345.678, 0.5, 0.256)
'{:d}'.format('a')
'{:s}'.format(1)
'{:.2}'.format('abc') ~ '{:5}|{:5}|'.format('a', 1) ~ '{:05}|{:<05}'.format(7, 7) ~ '{:c}'.format(97) ~ '{:n}'.format(5) ~ '{:.3}'.format(1234.5) ~ '{}'.format(none) ~ '{}'.format([1]) ~ '{:010,}'.format(1234)
'{:5}'.format([1])
'{.__class__}'.format(1)
s.upper() ~ s.lower() ~ s.swapcase() ~ 'abc'.capitalize()
'  a b '.strip() ~ '|' ~ '  a '.lstrip() ~ '|' ~ ' a  '.rstrip() ~ '|' ~ 'xyaxy'.strip('yx') ~ '|' ~ '</think>a\\n'.rstrip('\\n')
'a,b,c'.split(',') ~ 'a,b,c'.split(',', 1) ~ 'a,b,c'.rsplit(',', 1) ~ ' a  b '.split() ~ ' a  b c '.split(none, 1) ~ ' a  b c '.rsplit(none, 1) ~ ''.split() ~ ''.split(',') ~ 'abc'.split('abc') ~ 'a--b'.split('--')
'a'.split('')
'<think>x</think>y'.split('</think>')[-1].lstrip('\\n') ~ '<think>x</think>y'.split('</think>')[0].split('<think>')[-1]
lines.splitlines() ~ lines.splitlines(true) ~ 'a\\x0bb\\x1cc\\u2028d\\x85e'.splitlines()
'abc'.startswith('a') ~ 'abc'.endswith(('x', 'c')) ~ 'abc'.startswith('b', 1) ~ 'abc'.startswith('') ~ 'abc'.startswith('abcd') ~ 'abc'.endswith('b', 0, 2)
'abc'.startswith(1)
'abcabc'.find('b') ~ 'abcabc'.find('z') ~ 'abcabc'.rfind('b') ~ 'abcabc'.find('b', 2) ~ 'abcabc'.index('c') ~ 'éaéb'.find('b') ~ 'abcabc'.count('bc') ~ 'aaa'.count('aa') ~ 'abc'.count('')
'abc'.index('z')
'a-b'.replace('-', '+') ~ 'aaa'.replace('a', 'b', 2) ~ 'abc'.replace('', '.')
', '.join(['a', 'b']) ~ '-'.join('abc') ~ ''.join([])
','.join([1])
'12'.isdigit() ~ '1a'.isdigit() ~ ''.isdigit() ~ '²'.isdigit() ~ '²'.isdecimal() ~ '½'.isnumeric() ~ 'aé'.isalpha() ~ 'a1'.isalnum() ~ ' \\t'.isspace() ~ 'aB'.islower() ~ 'AB1'.isupper() ~ 'Ab Cd'.istitle() ~ 'a_1'.isidentifier() ~ 'é'.isascii() ~ '\\n'.isprintable()
'7'.zfill(3) ~ '-7'.zfill(4) ~ 'a'.ljust(3) ~ '|' ~ 'a'.rjust(3, '.') ~ 'a'.center(4, '*') ~ 'a\\tb'.expandtabs(4)
'prefix-x'.removeprefix('prefix-') ~ 'x.txt'.removesuffix('.txt') ~ 'a=b=c'.partition('=') ~ 'a=b=c'.rpartition('=') ~ 'abc'.partition('=')
'Straße'.casefold() ~ 'ß'.upper() ~ 'ǆ'.title() ~ 'ŉa'.capitalize()
'a'.nope()
'a'.upper(1)
'a'.strip(chars='a')
d.get('a') ~ d.get('z') ~ d.get('z', 0) ~ d.get(missing)
d.get()
d.pop('a')
d.update({'x': 1})
d.setdefault('x', 1)
d.clear()
d.pop is defined
xs.append(1)
xs.append is defined
xs.pop()
xs.index(1) ~ xs.count(3) ~ (1, 2, 1).count(1) ~ ['a'].index('a')
xs.index(99)
xs.copy() ~ d.copy()
s.__class__
s.__class__.__mro__
''.__class__ is defined
range(3)|list ~ range(1, 4)|list ~ range(10, 0, -3)|list ~ range(0)|list ~ range(2, 1)|list
range(3)
range(1, 10, 2)
range(100001)
range(1.5)
range()
range(1, 2, 0)
range(3) == range(0, 3) ~ (2 in range(3)) ~ (3 in range(3))
dict(a=1, b=2) ~ dict([('x', 1)]) ~ dict({'y': 2}, z=3)
dict(1)
namespace(a=1).a ~ namespace({'b': 2}).b ~ namespace(a=1)
namespace(a=1).b is defined
namespace(_x=1)
namespace(a=1)['a']
joiner(', ') is callable
cycler('a', 'b').next()
raise_exception('no')
raise_exception()
strftime_now('%d %b %Y %H:%M:%S %j %A')
strftime_now()
n is defined and missing is not defined and missing is undefined
nil is none and n is not none and missing is none
s is string and n is not string and ('x'|safe) is string
n is number and f is number and true is number and s is not number
n is integer ~ f is integer ~ true is integer ~ f is float ~ n is float
true is boolean ~ n is boolean ~ true is true ~ 1 is true ~ false is false ~ 0 is false
d is mapping ~ xs is mapping ~ xs is sequence ~ s is sequence ~ d is sequence ~ n is sequence ~ missing is sequence ~ range(2) is sequence ~ d.items() is sequence
xs is iterable ~ s is iterable ~ n is iterable ~ nil is iterable ~ missing is iterable ~ d.keys() is iterable
range is callable ~ n is callable ~ s.upper is callable ~ missing is callable
3 is odd ~ 4 is even ~ 9 is divisibleby 3 ~ 9 is divisibleby(2) ~ 'A' is upper ~ 'a' is lower ~ 'aB' is lower
'a' is odd
1 is eq 1 ~ 1 is equalto(2) ~ 1 is ne 2 ~ 1 is lt 2 ~ 1 is gt(2) ~ 1 is ge 1 ~ 1 is le 0 ~ 1 is == 1
1 is in [1, 2] ~ 'a' is in 'abc' ~ 1 is not in xs
1 is sameas 1 ~ nil is sameas none ~ true is sameas true
'upper' is filter ~ 'nope' is filter ~ 'odd' is test
n is nosuchtest
n is defined is defined
n is divisibleby n
not n is odd
-n|abs
(-n)|abs
n|string|length * 2
1 + n|string|int
'a' ~ 'b' * 2 ~ 'c'
xs|length - 1
'a' in 'abc' and 'b' not in 'xyz'
n == 3 and s == 'Hello World' or missing.x
d['a'] + d.b
(n)
[n, f][0]
{'k': n}.k
{'k': n}['k']
[x for x in xs]
lambda: 1
a b
1 +
'unclosed
(1
[1, 2
{'a' 1}
)
n.
n[
|upper
n|
n is
1 if
f(a=1, 2)
dict(a=1, a=2)
dict(**d)
dict(**xs)
range(*xs)
range(*[1, 5])
"{}".format(*xs)
'%s' % xs
xs|tojson|e
messages[0]|tojson
messages|length
messages|last|attr('role')
n|attr('real')
d|attr('items') is callable
1.real
5 .real
xs == [3, 1, 2]
d == {'C': 3, 'a': 1, 'b': 2}
xs is sameas xs
'a' == 'a'|safe
[1, [2, [3, [4]]]]|string
{'a': {'b': {'c': [1, (2,)]}}}
true + true
true * 3
not none
nested[0][1]
nested|map('sum')|list
nested|map('join', '-')|join('/')
[3, 1]|sort|first
'b' > 'a' > 'A'
2 > 1 == true
'x' if missing else 'y'
(missing or 'x')|upper
"a" "b" ~ 'c'
'日本語'|length ~ '日本語'|first ~ '日本語'[::-1] ~ '日本語'.find('語') ~ '日本語'|center(9) ~ '%5s' % '語'
""".strip("\n").split("\n")

STATEMENTS = [
    "{% for x in xs %}{{ x }}{% endfor %}", "{% for x in xs %}{{ x }}{% else %}none{% endfor %}", "{% for x in [] %}{{ x }}{% else %}none{% endfor %}",
    "{% for x in xs %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.depth }}{{ loop.depth0 }};{% endfor %}",
    "{% for x in xs %}{{ loop.previtem }}<{{ x }}>{{ loop.nextitem }};{% endfor %}", "{% for x in xs %}{{ loop.previtem is defined }}{{ loop.nextitem is defined }}{% endfor %}",
    "{% for x in xs %}{{ loop.cycle('a', 'b') }}{% endfor %}", "{% for x in [1, 1, 2] %}{{ loop.changed(x) }}{% endfor %}", "{% for x in xs %}{{ loop.cycle() }}{% endfor %}", "{% for x in xs %}{{ loop }}{{ loop.nope }}{% endfor %}",
    "{% for x in xs|map('string') %}{{ loop.length }}{{ loop.last }}{{ x }}{% endfor %}", "{% for x in xs if x > 1 %}{{ loop.index }}/{{ loop.length }}:{{ x }} {% endfor %}", "{% for x in xs if x > 9 %}{{ x }}{% else %}nothing{% endfor %}",
    "{% for k, v in d.items() %}{{ k }}={{ v }},{% endfor %}", "{% for k, v in d|dictsort %}{{ k }}={{ v }},{% endfor %}", "{% for k in d %}{{ k }}{% endfor %}", "{% for a, b in pairs %}{{ a }}{{ b }}{% endfor %}", "{% for a, b in xs %}{{ a }}{% endfor %}",
    "{% for a, (b, c) in [(1, (2, 3))] %}{{ a }}{{ b }}{{ c }}{% endfor %}", "{% for a, b in nested %}{{ a }}{% endfor %}", "{% for c in s %}{{ c }}.{% endfor %}", "{% for c in u %}{{ c }}.{% endfor %}", "{% for x in n %}{% endfor %}", "{% for x in nil %}{% endfor %}", "{% for x in missing %}{{ x }}{% else %}empty{% endfor %}",
    "{% for x in 1, 2 %}{{ x }}{% endfor %}", "{% for x in range(3) %}{% for y in range(2) %}{{ loop.index }}{{ x }}{{ y }} {% endfor %}{{ loop.index }}{% endfor %}", "{% for x in xs %}{% set outer = loop %}{% for y in xs %}{{ outer.index }}{{ loop.index }} {% endfor %}{% endfor %}",
    "{% for x in xs %}{% if x == 1 %}{% continue %}{% endif %}{{ x }}{% endfor %}", "{% for x in xs %}{% if x == 1 %}{% break %}{% endif %}{{ x }}{% endfor %}", "{% for x in xs %}{% break %}{% else %}else{% endfor %}", "{% for x in [1] %}{% continue %}{% else %}else{% endfor %}", "{% break %}", "{% if true %}{% continue %}{% endif %}",
    "{% for x in xs %}{% macro m() %}{% break %}{% endmacro %}{% endfor %}", "{% for x in xs %}{% generation %}{% break %}{% endgeneration %}{% endfor %}", "{% for x in xs %}{% set y %}a{% break %}{% endset %}{{ y }}{% endfor %}!", "{% for x in xs %}{% filter upper %}a{% if x == 1 %}{% continue %}{% endif %}{{ x }}{% endfilter %}{% endfor %}!",
    "{% for x in [[1, [2, [3]]]] recursive %}{{ loop.depth }}{% if x is iterable %}({{ loop(x) }}){% else %}{{ x }}{% endif %}{% endfor %}", "{% for x in xs recursive %}{{ x }}{% if x == 1 %}[{{ loop([8, 9]) }}]{% endif %}{% endfor %}", "{% for x in xs %}{{ loop([1]) }}{% endfor %}", "{% for loop in xs %}{% endfor %}", "{% for x in xs %}{% set loop = 1 %}{% endfor %}",
    "{{ loop }}", "{% set x = 1 %}{% for i in xs %}{{ x }}{% set x = i %}{{ x }}{% endfor %}{{ x }}", "{% for i in xs %}{{ n }}{% set n = i %}{{ n }} {% endfor %}{{ n }}", "{% for i in [1] %}{{ n }}{% endfor %}{% set n = 5 %}{{ n }}", "{% if false %}{% set n = 5 %}{% endif %}{{ n }}", "{% if true %}{% set n = 5 %}{% endif %}{{ n }}", "{% if false %}{% set q = 5 %}{% endif %}{{ q is defined }}",
    "{% if true %}{% if true %}{% set q = 5 %}{% endif %}{% endif %}{{ q }}", "{% for i in xs %}{% if i == 1 %}{% set q = i %}{% endif %}{{ q }},{% endfor %}{{ q }}", "{% set ns = namespace(i=0) %}{% for x in xs %}{% set ns.i = ns.i + x %}{% endfor %}{{ ns.i }}", "{% set ns.x = 1 %}", "{% set d.x = 1 %}", "{% set ns = namespace() %}{% set ns.a, ns.b = 1, 2 %}{{ ns.a }}{{ ns.b }}{{ ns }}", "{% set ns = namespace() %}{% set ns._a = 1 %}", "{% set ns = namespace(x=1) %}{% set ns.x = ns %}{{ ns.x.x is defined }}",
    "{% set a, b = 1, 2 %}{{ a }}{{ b }}", "{% set a, b = xs %}{{ a }}", "{% set (a, b) = (1, 2) %}{{ a + b }}", "{% set a = 1, 2 %}{{ a }}", "{% set a %}x{{ n }}y{% endset %}{{ a }}{{ a|length }}", "{% set a | upper %}x{% endset %}{{ a }}", "{% set a | replace('x', 'y') | upper %}x{% endset %}{{ a }}", "{% set a | default(1) %}{% endset %}[{{ a }}]", "{% set 1 = 2 %}", "{% set true = 2 %}", "{% set a.b.c = 2 %}", "{% set a %}", "{% set = 1 %}",
    "{% if n > 2 %}a{% elif n > 1 %}b{% else %}c{% endif %}", "{% if n > 5 %}a{% elif n > 1 %}b{% else %}c{% endif %}", "{% if n > 5 %}a{% elif n > 4 %}b{% else %}c{% endif %}", "{% if missing %}a{% endif %}|", "{% if missing.x %}a{% endif %}", "{% if xs %}a{% endif %}{% if none_list %}b{% endif %}{% if 0.0 %}c{% endif %}{% if ' ' %}d{% endif %}", "{% if 1, 0 %}t{% endif %}", "{% if true: %}a{% endif %}", "{% if %}a{% endif %}", "{% if true %}a", "{% if true %}a{% endfor %}", "{% endif %}", "{% else %}", "{% nosuchtag %}", "{% %}", "{% if n|nosuch %}{% endif %}", "{% if false %}{{ n|nosuch }}{% endif %}ok", "{% if false %}{% for x in [] %}{{ n|nosuch }}{% endfor %}{% endif %}ok", "{{ 1 if true else n|nosuch }}", "{{ n|nosuch }}", "{% if false %}{{ n is nosuch }}{% endif %}ok",
    "{% macro m(a, b=2) %}{{ a }}-{{ b }};{% endmacro %}{{ m(1) }}{{ m(1, 3) }}{{ m(b=5, a=4) }}{{ m() }}{{ m(a=1) }}", "{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}", "{% macro m(a) %}{% endmacro %}{{ m(c=2) }}", "{% macro m(a) %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, 3, x=4) }}", "{% macro m(a, b=a) %}{{ b }}{% endmacro %}{{ m(7) }}", "{% macro m(a=b, b=1) %}{{ a }}{% endmacro %}[{{ m() }}]", "{% macro m(a, a) %}{% endmacro %}", "{% macro m(a=1, b) %}{% endmacro %}", "{% macro m() %}x{% endmacro %}{{ m }}{{ m.name }}{{ m.arguments }}", "{% macro fact(k) %}{{ 1 if k <= 1 else k * fact(k - 1)|int }}{% endmacro %}{{ fact(5) }}", "{% macro m() %}{{ n }}{% set n = 9 %}{{ n }}{% endmacro %}{{ m() }}{{ n }}", "{% macro m() %}{{ later }}{% endmacro %}{% set later = 3 %}{{ m() }}", "{% for i in xs %}{% macro m() %}{{ i }}{% endmacro %}{{ m() }}{% endfor %}", "{{ m() }}{% macro m() %}x{% endmacro %}", "{% macro m(x) %}{{ x }}{% endmacro %}{{ m(x=1)|upper ~ m(2)|length }}", "{% if true %}{% macro m() %}in if{% endmacro %}{% endif %}{{ m() }}", "{% macro m() %}a{% endmacro %}{% macro m() %}b{% endmacro %}{{ m() }}", "{% macro m(caller) %}{{ caller() }}{% endmacro %}{{ m() }}", "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
    "{% macro m() %}[{{ caller() }}]{% endmacro %}{% call m() %}body{{ n }}{% endcall %}", "{% macro m() %}[{{ caller(1, 2) }}]{% endmacro %}{% call(a, b=3) m() %}{{ a }}{{ b }}{% endcall %}", "{% macro m() %}x{% endmacro %}{% call m() %}{% endcall %}", "{% macro m() %}{{ caller() }}{% endmacro %}{{ m() }}", "{% macro m() %}{{ caller is defined }}{% endmacro %}{{ m() }}{% call m() %}{% endcall %}", "{% call n %}{% endcall %}", "{% call range(3) %}{% endcall %}",
    "{% filter upper %}abc{{ s }}{% endfilter %}", "{% filter replace('a', 'b')|upper %}aa{% endfilter %}", "{% filter nosuch %}{% endfilter %}", "{% with a = 1, b = n %}{{ a }}{{ b }}{% endwith %}{{ a }}", "{% with n = 9, m = n %}{{ n }}{{ m }}{% endwith %}{{ n }}", "{% with %}{% set q = 1 %}{{ q }}{% endwith %}{{ q }}", "{% with a, b = pairs %}{{ a }}{% endwith %}", "{% print 1, 'a' %}",
    "{% generation %}a{{ n }}{% endgeneration %}", "x{% generation %}é{% endgeneration %}y{% generation %}{% endgeneration %}z", "{% generation %}a{% generation %}b{% endgeneration %}c{% endgeneration %}", "{% set q %}abc{% generation %}def{% endgeneration %}{% endset %}{{ q }}{{ q }}", "{% generation %}{% set n = 7 %}{{ n }}{% endgeneration %}{{ n }}", "{% for x in xs %}{% generation %}{{ x }}{{ loop.index }}{% endgeneration %},{% endfor %}", "{% macro m() %}--{% generation %}g{% endgeneration %}{% endmacro %}a{{ m() }}b", "{% generation %}x", "é{{ '漢' }}{% generation %}😀{% endgeneration %}",
    "{# empty #}", "{# a comment #}x", "a{#- c -#} b", "{# {{ n }} {% if %} #}", "{# unclosed", "{{ unclosed", "{% unclosed", "{{ }}", "{{}}", "{{ n }", "{{ 'a}}b' }}", "{{ {'a': {'b': 1}}.a.b }}", "{{ {'a': {}}}}", "{% raw %}{{ n }}{% if %}{% endraw %}", "{% raw %}{{ n }}", "  {%- raw -%}  {{ x }}  {%- endraw -%}  b", "{% raw %}\n a\n{% endraw %}\nb", "{%raw%}a{%endraw%}", "{%- raw +%}a{% endraw %}",
    "a\n{% if true %}\nb\n{% endif %}\nc", "a\n  {% if true %}\n  b\n  {% endif %}\nc", "a\n  {%+ if true %}\n  b\n  {% endif +%}\nc", "a \n  {%- if true -%}  \n  b  {%- endif -%}\n c", "  {{ n }}  \n  {{- n -}}  \n x", "a {% set x = 1 %} b", "a {%- set x = 1 -%} b", "{% if true -%}\n\n x\n{%- endif %}\n", "\n\n{{ n }}\n", "{{ n }}\n\n", "{{ n }}\n", "a\r\nb\rc\n{{ 'x\r\ny' }}", "  {# c #}  \nx", "  {# c #}\nx", "a {#- c #}\n b", "\t {% if true %}\t\n\ty{% endif %}", "x{% if true %}   {% endif %}y", "  {% set a = 1 %}\n  {% set b = 2 %}\n  {{ a }}", "   {%- if true %} a {%- endif %}   ", "{{ n }}{{- n }} {{ n -}} {{ n }}", "\x0b{% if true %}a{% endif %}", "\u00a0{% if true %}a{% endif %}", "\u00a0{%- if true -%}\u00a0a{% endif %}", "a\n \u00a0 {% if true %}b{% endif %}", "{{ n }} }} %} #}", "{ { n } } {", "a {{ '{{' }} {% raw %}{%{% endraw %}", "{%if n%}x{%endif%}", "{%-if n-%} x {%-endif-%} ", "{{n}}{{-n-}}", "{{ n\n+\n1 }}", "{% for\n x\n in xs\n%}{{ x }}{% endfor\n%}",
    "{% set t = cycler('a', 'b') %}{{ t.next() }}{{ t.next() }}{{ t.next() }}{{ t.current }}{{ t.reset() }}{{ t.current }}", "{% set j = joiner() %}{% for x in xs %}{{ j() }}{{ x }}{% endfor %}", "{% set items = [] %}{% for x in xs %}{% set items = items + [x] %}{% endfor %}{{ items }}", "{% set ns = namespace(items=[]) %}{% for x in xs %}{% set ns.items = ns.items + [x * 2] %}{% endfor %}{{ ns.items }}", "{% set g = xs|map('string') %}{{ g|list }}{{ g|list }}", "{% set g = xs|map('nosuch') %}ok", "{% set r = xs|reverse %}{{ r|join }}{{ r|join }}", "{% set a = xs|select('odd') %}{{ 3 in a }}{{ a|list }}", "{% set it = d.items() %}{{ it|list|length }}{{ it|length }}{{ ('a', 1) in it }}",
    "{% for m in messages %}{% if m.role == 'user' %}U:{{ m.content }}{% elif m['role'] == 'assistant' and not m.tool_calls %}A:{{ m.content }}{% endif %}{% endfor %}", "{% for m in messages %}{{ m.role }}{% if not loop.last %},{% endif %}{% endfor %}", "{% for m in messages[::-1] %}{{ loop.index0 }}{{ m.role[0] }}{% endfor %}", "{% set last = (messages|selectattr('role', 'equalto', 'user')|list|last) %}{{ last.content }}", "{% if messages[0].role == 'system' %}{% set rest = messages[1:] %}{% else %}{% set rest = messages %}{% endif %}{{ rest|length }}", "{% if (messages[0].role == 'user') != (0 % 2 == 0) %}{{ raise_exception('roles must alternate') }}{% endif %}", "{{ 'x' }}{% if not add_generation_prompt is defined %}{% set add_generation_prompt = false %}{% endif %}{{ add_generation_prompt }}",
    "{% set x = 'a' -%}\n\n{{ x }}", "{% for x in xs -%} {{ x }} {%- endfor %}", "{% for x in xs %}\n{{ x }}\n{% endfor %}\n", "{% for x in xs %}{{ ',' if not loop.first }}{{ x }}{% endfor %}", "{% for i in range(3) %}{% for j in range(3) %}{% if j == 1 %}{% continue %}{% endif %}{% if i == 1 %}{% break %}{% endif %}{{ i }}{{ j }} {% endfor %}{% endfor %}", "{% for x in xs if loop.first %}{{ x }}{% endfor %}", "{% for x in xs %}{% for y in xs if loop.index > 1 %}{{ y }}{% endfor %}{% endfor %}", "{% for a, b in [(1, 2), (3, 4)] if a > 1 %}{{ a }}{{ b }}{{ loop.previtem }}{% endfor %}", "{% for a, b in pairs if b > 0 %}{{ loop.nextitem }}{% endfor %}", "{% for x in d.items()|list + [1] %}{{ x }}{% endfor %}", "{% for key in {'b': 1, 'a': 2}|sort %}{{ key }}{% endfor %}",
    "{% for x in range(200) %}{% for y in range(200) %}{% endfor %}{% endfor %}done", "{{ [1, 2, 3]|sum }} {{ xs }}\n{{ d }}\n", "{% macro m(l) %}{{ l.length }}{{ l.nextitem }}{{ l.last }}{% endmacro %}{% for x in xs if x > 1 %}{{ m(loop) }}{{ x }}{% endfor %}", "{% macro m(l, x) %}{% for y in xs if y > x %}{{ l.index }}{{ l.nextitem }}{% endfor %}{% endmacro %}{% for x in xs if x != 1 %}{{ m(loop, x) }}{{ x }}{% endfor %}", "{% set long = 'ab' * 50 %}{{ long|length }}{{ long[10:14] }}", "{% set x = namespace() %}{{ x.y }}{{ x is defined }}{{ x.y is defined }}", "{% macro outer() %}{% macro inner() %}i{{ q }}{% endmacro %}{% set q = 1 %}{{ inner() }}{% endmacro %}{{ outer() }}", "{% macro a(x) %}{{ b(x) if x > 0 }}a{% endmacro %}{% macro b(x) %}b{{ a(x - 1) }}{% endmacro %}{{ a(3) }}", "{% set f = range %}{{ f(2)|list }}", "{% set up = s.upper %}{{ up() }}", "{% set get = d.get %}{{ get('a') }}", "{{ caller }}{{ varargs }}{{ kwargs }}", "{{ true is sameas 1 }}", "{{ ''.join(['a', 'b']) }}{{ 'a'.join([]) }}", "{% set x = {'a': 1} %}{% set y = dict(x, b=2) %}{{ y }}{{ x }}", "{% set x = x %}{{ x is defined }}", "{% set n = n + 1 %}{{ n }}", "{% for n in [n] %}{{ n }}{% endfor %}{{ n }}", "{% for x in xs %}{% endfor %}{{ x }}", "{% extends_ %}", "{% include %}",
]

SNIPPETS = ["{{ " + line + " }}" for line in PRINTED] + STATEMENTS
