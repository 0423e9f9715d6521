# SPDX-License-Identifier: MIT
"""The mutants of a C source: each is one small change of its text.

Nothing inside `assert` changes: a weaker assertion is no wrong behaviour.
"""
import bisect
import collections
import itertools
import random
import re

from tokens import closing, tokenise

Mutant = collections.namedtuple('Mutant', 'path kind start end new')

OPERATORS = {
    '+': '-', '-': '+', '*': '/', '/': '*', '%': '/', '<<': '>>', '>>': '<<', '&': '|',
    '|': '&', '^': '|', '&&': '||', '||': '&&', '<': '>=', '<=': '>', '>': '<=',
    '>=': '<', '==': '!=', '!=': '==', '++': '--', '--': '++', '+=': '-=', '-=': '+=',
    '*=': '/=', '/=': '*=', '%=': '/=', '<<=': '>>=', '>>=': '<<=', '&=': '|=',
    '|=': '&=', '^=': '|=',
}
BOUNDARIES = {'<': '<=', '<=': '<', '>': '>=', '>=': '>'}
MAY_BE_UNARY = {'+', '-', '*', '&'}
KEYWORDS = {'if', 'else', 'for', 'while', 'do', 'switch', 'case', 'default', 'return',
            'break', 'continue', 'goto', 'sizeof', '_Alignof', '_Generic'}
TYPES = {'void', 'char', 'short', 'int', 'long', 'float', 'double', 'signed', 'unsigned',
         'bool', '_Bool', 'const', 'static', 'extern', 'struct', 'enum', 'union',
         'volatile', 'register', 'typedef'}
CHANGING = {'=', '(', '++', '--'} | {sign for sign in OPERATORS if sign[-1] == '='
                                     and sign not in ('<=', '>=', '==', '!=')}
ASSERTIONS = {'assert', '_Static_assert', 'static_assert'}
INTEGER = re.compile(r'(0[xX][0-9a-fA-F]+|[0-9]+)([uUlL]*)')
ZERO = re.compile(r'0*\.?0*(?:[eE][+-]?[0-9]+)?[fFlL]?')


def is_type(token):
    return token.kind == 'name' and (token.text in TYPES or token.text.endswith('_t'))


def is_operand(token):
    """Whether a value may end with @token, so that a sign after it joins two."""
    if token.kind == 'sign':
        return token.text in (')', ']')
    return not (token.kind == 'name' and (token.text in KEYWORDS or is_type(token)))


def names_type(tokens, index):
    tag = tokens[index - 1].text if index else ''
    return is_type(tokens[index]) or tag in ('struct', 'enum', 'union')


def operators(tokens, index):
    token = tokens[index]
    if token.kind != 'sign' or index == 0:
        return
    before = tokens[index - 1]
    if token.text in MAY_BE_UNARY and not is_operand(before):
        if token.text == '-':
            yield 'operator', token.start, token.end, ''
    elif token.text == '!':
        yield 'operator', token.start, token.end, ''
    elif token.text in OPERATORS and not names_type(tokens, index - 1):
        yield 'operator', token.start, token.end, OPERATORS[token.text]
    if token.text in BOUNDARIES:
        yield 'boundary', token.start, token.end, BOUNDARIES[token.text]


def constants(tokens, index):
    token = tokens[index]
    if token.kind != 'number':
        return
    integer = INTEGER.fullmatch(token.text)
    if not integer:
        new = '1.0' if ZERO.fullmatch(token.text) else f'({token.text} * 2)'
        yield 'constant', token.start, token.end, new
        return
    digits, suffix = integer.groups()
    is_hex = digits[:2] in ('0x', '0X')
    is_octal = not is_hex and digits[0] == '0'
    value = int(digits, 16 if is_hex else 8 if is_octal else 10)
    for new in {value + 1, abs(value - 1)}:
        text = f'{new:#x}' if is_hex else f'0{new:o}' if is_octal and value else str(new)
        yield 'constant', token.start, token.end, text + suffix


def conditions(tokens, index):
    if tokens[index].text not in ('if', 'while') or index + 1 == len(tokens):
        return
    last = closing(tokens, index + 1) if tokens[index + 1].text == '(' else None
    if last:
        start, end = tokens[index + 1].end, tokens[last].start
        yield 'condition', start, end, '!({})'


def statements(tokens, index):
    """Takes away the call or the assignment that begins at @index."""
    token = tokens[index]
    if token.depth == 0 or index == 0 or is_type(token) or token.text in KEYWORDS:
        return
    before = tokens[index - 1]
    if before.text not in (';', '{', '}', ':', ')', 'else', 'do'):
        return
    if token.kind != 'name' and token.text not in ('*', '(', '++', '--'):
        return
    words, nesting = [], 0
    for word in itertools.islice(tokens, index, None):
        nesting += (word.text in ('(', '[')) - (word.text in (')', ']'))
        if word.text in ('{', '}', ';'):
            break
        words.append(word)
    changes = any(word.text in CHANGING for word in words)
    is_declaration = token.kind == 'name' and len(words) > 1 and words[1].kind == 'name'
    if word.text == ';' and nesting == 0 and changes and not is_declaration:
        yield 'statement', token.start, word.start, ''


def arguments(tokens, index):
    """Swaps two neighbours among the arguments of a call."""
    token = tokens[index]
    if token.kind != 'name' or token.text in KEYWORDS or token.depth == 0:
        return
    if index + 1 == len(tokens) or tokens[index + 1].text != '(':
        return
    last = closing(tokens, index + 1)
    if last is None:
        return
    parts, nesting = [[tokens[index + 1].end, None]], 0
    for inner in tokens[index + 2:last]:
        nesting += (inner.text in '([{') - (inner.text in ')]}')
        if inner.text == ',' and nesting == 0:
            parts[-1][1] = inner.start
            parts.append([inner.end, None])
    parts[-1][1] = tokens[last].start
    for (start, middle), (again, end) in zip(parts, parts[1:]):
        yield 'arguments', start, end, (middle, again)


def asserted(tokens):
    """For each token whether it belongs to an assertion."""
    inside = [False] * len(tokens)
    for index, token in enumerate(tokens[:-1]):
        if token.text in ASSERTIONS and tokens[index + 1].text == '(':
            last = closing(tokens, index + 1) or index + 1
            inside[index:last + 1] = [True] * (last + 1 - index)
    return inside


def new_text(text, start, end, new):
    old = text[start:end]
    if isinstance(new, tuple):
        first, second = text[start:new[0]], text[new[1]:end]
        return (first[:len(first) - len(first.lstrip())] + second.strip()
                + text[new[0]:new[1]] + second[:len(second) - len(second.lstrip())]
                + first.strip())
    return new.format(old) if '{}' in new else new


def of_text(path, text):
    """All mutants of the C source @text, in the order of their places."""
    tokens = tokenise(text)
    inside = asserted(tokens)
    found = []
    for index in range(len(tokens)):
        if inside[index]:
            continue
        for rule in (operators, constants, conditions, statements, arguments):
            for kind, start, end, new in rule(tokens, index):
                mutant = Mutant(path, kind, start, end, new_text(text, start, end, new))
                is_long = kind == 'statement' and '\n' in text[start:end]
                if mutant.new != text[start:end] and not is_long:
                    found.append(mutant)
    return sorted(found, key=lambda mutant: (mutant.start, mutant.end, mutant.kind,
                                             mutant.new))


def apply(mutant, text):
    return text[:mutant.start] + mutant.new + text[mutant.end:]


def line_range(mutant, text):
    """The first and the last line that @mutant changes."""
    first = text.count('\n', 0, mutant.start) + 1
    return first, first + text.count('\n', mutant.start, mutant.end)


def drawn(texts, seed):
    """Every mutant of @texts ({path: text}) once, in an order that @seed decides.

    Lines come in turns, so that a line of many tokens is not drawn more often.
    """
    order = random.Random(seed)
    lines = collections.defaultdict(list)
    for path in sorted(texts):
        starts = [0] + [found.end() for found in re.finditer('\n', texts[path])]
        for mutant in of_text(path, texts[path]):
            lines[path, bisect.bisect(starts, mutant.start)].append(mutant)
    queues = [lines[place] for place in sorted(lines)]
    for queue in queues:
        order.shuffle(queue)
    while queues:
        order.shuffle(queues)
        for queue in queues:
            yield queue.pop()
        queues = [queue for queue in queues if queue]
