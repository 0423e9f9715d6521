# SPDX-License-Identifier: MIT
"""C source text as tokens with their places."""
import collections
import re

# kind: name, number, string, character or sign. Comments, blanks and preprocessor lines
# give no token. @depth is the number of braces around it.
Token = collections.namedtuple('Token', 'kind text start end depth')

PATTERN = re.compile(r'''
    (?P<comment>/\*.*?\*/|//(?:\\\n|[^\n])*)
  | (?P<string>(?:u8|[uUL])?"(?:\\.|[^"\\\n])*")
  | (?P<character>[uUL]?'(?:\\.|[^'\\\n])*')
  | (?P<number>\.?[0-9](?:[eEpP][+-]|[0-9A-Za-z_.])*)
  | (?P<name>[A-Za-z_][A-Za-z_0-9]*)
  | (?P<sign>\.\.\.|<<=|>>=|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|[^\s])
''', re.VERBOSE | re.DOTALL)

# A backslash carries a preprocessor line on, and so does a comment that is still open.
DIRECTIVE = re.compile(r'[ \t]*#(?:/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\\\n|[^\n])*', re.DOTALL)
BLANKS = re.compile(r'\s+')


def tokenise(text):
    tokens, place, depth = [], 0, 0
    at_line_start = True
    while place < len(text):
        directive = DIRECTIVE.match(text, place) if at_line_start else None
        if directive:
            place = directive.end()
            continue
        blanks = BLANKS.match(text, place)
        if blanks:
            at_line_start = '\n' in blanks[0] or at_line_start
            place = blanks.end()
            continue
        found = PATTERN.match(text, place)
        if found.lastgroup != 'comment':
            depth -= found[0] == '}'
            tokens.append(Token(found.lastgroup, found[0], place, found.end(), depth))
            depth += found[0] == '{'
            at_line_start = False
        place = found.end()
    return tokens


def closing(tokens, opening):
    """The index of what closes the bracket at index @opening; None without one."""
    pairs = {'(': ')', '[': ']', '{': '}'}
    wanted = []
    for index in range(opening, len(tokens)):
        if tokens[index].kind != 'sign':
            continue
        if tokens[index].text in pairs:
            wanted.append(pairs[tokens[index].text])
        elif wanted and tokens[index].text == wanted[-1]:
            wanted.pop()
            if not wanted:
                return index
    return None
